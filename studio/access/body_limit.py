"""The limit on the body of a request: JSON is parsed on the event loop, and so long nobody else is answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """`marks` are the strings, commas and openings in its JSON, and every tenth backslash: parsing 200,000 of them
    takes a tenth of a second at most."""

    size: int
    marks: int = 200_000


CONVERSATION = BodyLimits(32 * 2**20)  # a picture that is left out comes along as text
PAGE = BodyLimits(24 * 2**20)  # the largest is a file of questions, as a text
DECISION = BodyLimits(2 * 2**20, 20_000)  # each name that a form does not know becomes an error
EVENT = BodyLimits(8 * 2**20, 20_000)  # of a form: its longest text is a query
_ESCAPES = 10  # take as long as a mark
_PIECE = 2**20  # what is looked at between two moments at which others may go on


class BodyTooLarge(Exception):
    """The sentence says which limit the body is beyond, and what to send."""


class LimitedBody:
    """Refuses bodies beyond PAGE, or beyond the limits of the first of `rows` whose path begins like the request's.
    None: the route reads its own piece by piece, by limits of its own."""

    def __init__(self, app: ASGIApp, rows: Mapping[str, BodyLimits | None]) -> None:
        self._app, self._rows = app, rows

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_body = scope["type"] == "http" and scope["method"] not in ("GET", "HEAD", "OPTIONS")
        limits = self._find_limits(scope["path"]) if has_body else None
        if limits is None:
            await self._app(scope, receive, send)
            return
        try:
            body = await read_limited(Request(scope, receive), limits)
        except BodyTooLarge as error:
            await _refuse(send, str(error))
            return
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        await self._app(scope, replay, send)

    def _find_limits(self, path: str) -> BodyLimits | None:
        return next((limits for start, limits in self._rows.items() if path.startswith(start)), PAGE)


async def read_limited(request: Request, limits: BodyLimits) -> bytes:
    """The body of a request. Raises BodyTooLarge before more of it is read than may be."""
    too_large = BodyTooLarge(f"the request is larger than {limits.size:,} bytes; send less at once")
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > limits.size:
        raise too_large
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > limits.size:
            raise too_large
    if len(body) > limits.marks and await run_in_threadpool(has_more_marks, body, limits.marks):
        what = f"the lists and objects of the request hold more than {limits.marks // 2:,} names and values"
        texts = f"its texts more than {limits.marks * _ESCAPES:,} escaped characters"
        raise BodyTooLarge(f"{what}, or {texts}; send fewer of them. Long texts count as one")
    return bytes(body)


def has_more_marks(body: bytes | bytearray, limit: int) -> bool:
    """Whether parsing would hold up every other client. Marks within strings count only where there are many."""
    pieces = range(0, len(body), _PIECE)
    marks = sum(body.count(b"\\", start, start + _PIECE) for start in pieces) // _ESCAPES
    if marks + sum(body.count(mark, start, start + _PIECE) for start in pieces for mark in b',[{"') <= limit:
        return False
    start = quotes = 0
    while start < len(body) and marks <= limit:
        end = start + _PIECE
        slashes = end - start - len(body[start:end].rstrip(b"\\"))
        end += slashes % 2  # what a backslash escapes stands in the same piece
        plain = body[start:end].replace(rb"\\", b"").replace(rb"\"", b"")
        texts = plain.split(b'"')
        outside = b"".join(texts[quotes % 2 :: 2])
        opened = (quotes + len(texts)) // 2 - (quotes + 1) // 2
        marks += opened + sum(outside.count(mark) for mark in b",[{")
        quotes += len(texts) - 1
        start = end
    return marks > limit


async def _refuse(send: Send, sentence: str) -> None:
    """Say it as pages and as clients of the OpenAI API read it."""
    error = {"message": sentence, "type": "invalid_request_error", "param": None, "code": "request_too_large"}
    body = json.dumps({"detail": sentence, "error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
