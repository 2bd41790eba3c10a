"""Unpacks request bodies that come compressed, before anything reads them. The limit counts the unpacked bytes, so that
a small body cannot become a huge one."""

from __future__ import annotations

import asyncio
import zlib

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.model_server.errors import TOO_LARGE, ApiError

GZIP_WINDOW, ZLIB_WINDOW, RAW_WINDOW = 31, 15, -15  # zlib's `wbits`
CODINGS = ("gzip", "x-gzip", "deflate")


class UnpackedBodies:
    """Hands on a compressed body as a plain one of at most `most` bytes; other requests pass untouched."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        coding = Headers(scope=scope).get("content-encoding", "").strip().lower() if scope["type"] == "http" else ""
        if coding in ("", "identity"):
            await self._app(scope, receive, send)
        elif coding not in CODINGS:
            error = _refuse_coding(coding)
            await JSONResponse(error.document, error.status, error.headers)(scope, receive, send)
        else:
            try:
                await self._app(_without_coding(scope), self._unpack_from(receive, coding), send)
            except ApiError as error:  # where the body is read before a route is, whose handlers would answer
                await JSONResponse(error.document, error.status, error.headers)(scope, receive, send)

    def _unpack_from(self, receive: Receive, coding: str) -> Receive:
        unpacked = False

        async def receive_unpacked() -> Message:
            nonlocal unpacked
            if unpacked:
                return await receive()
            unpacked = True
            packed = bytearray()
            more = True
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    return message
                packed += message.get("body", b"")
                if len(packed) > self._most:
                    raise body_too_large(self._most)
                more = message.get("more_body", False)
            body = await asyncio.to_thread(unpack_body, bytes(packed), coding, self._most)
            return {"type": "http.request", "body": body, "more_body": False}

        return receive_unpacked


def unpack_body(packed: bytes, coding: str, most: int) -> bytes:
    """The plain bytes. Raises ApiError where they are more than `most`, or the body is not what its coding says."""
    if not packed:
        return b""
    stream = zlib.decompressobj(_choose_window(packed, coding))
    try:
        body = stream.decompress(packed, most + 1)
    except zlib.error as error:
        message = f"the body is not {coding}, as its header content-encoding says; send it plain or compress it again"
        raise ApiError(400, message, "invalid_encoding") from error
    if len(body) > most:
        raise body_too_large(most)
    if not stream.eof or stream.unused_data:
        what = "goes on after" if stream.eof else "ends before"
        raise ApiError(400, f"the body {what} the end of its {coding} data; send it again", "invalid_encoding")
    return body


def body_too_large(most: int) -> ApiError:
    """A body of more bytes than are read, plain or unpacked."""
    return ApiError(413, f"the request is larger than {most:,} bytes", TOO_LARGE)


def _choose_window(packed: bytes, coding: str) -> int:
    """What zlib has to expect. Clients send `deflate` with zlib's header, as the standard wants it, or without."""
    if coding != "deflate":
        return GZIP_WINDOW
    has_header = packed[0] & 0x0F == zlib.DEFLATED and int.from_bytes(packed[:2]) % 31 == 0
    return ZLIB_WINDOW if has_header else RAW_WINDOW


def _refuse_coding(coding: str) -> ApiError:
    message = f"a body in the coding {coding[:40]!r} cannot be read here; send it plain, as gzip or as deflate"
    return ApiError(415, message, "unsupported_encoding", headers={"accept-encoding": "gzip, deflate"})


def _without_coding(scope: Scope) -> Scope:
    headers = [pair for pair in scope["headers"] if pair[0].lower() not in (b"content-encoding", b"content-length")]
    return {**scope, "headers": headers}
