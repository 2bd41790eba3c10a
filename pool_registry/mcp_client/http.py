"""MCP over streamable HTTP: the SDK's transport on a client of our own making.

The SDK brings its own HTTP client (httpx2), so this is the second way to the network beside network/http_client.py. The
same rules hold: every address is checked and then connected to as checked, nothing is proxied, no compressed
bodies, a size limit. What goes wrong with a request is noted on the call that made it (`Exchange`) and then
answered in the peer's place, so that one failing request does not tear down the session.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client

from pool_registry.errors import WorkerFault
from pool_registry.mcp_client.exchange import Exchange, exchange
from pool_registry.mcp_client.server import McpServer
from pool_registry.network import address_policy, provider_errors
from pool_registry.secrets import resolve_references

MAX_BYTES = 8 * 2**20
MAX_ERROR_BYTES = 64 * 2**10
CONNECT_S = 5.0
SESSION_HEADER = "mcp-session-id"


class HttpLink:
    """The transport to a server behind a URL. It never ends: each request connects by itself."""

    def __init__(self, server: McpServer) -> None:
        self._server = server

    @asynccontextmanager
    async def open(self) -> AsyncIterator[TransportStreams]:
        """Yield the two streams that the SDK's client needs. Raises WorkerFault."""
        client = httpx2.AsyncClient(
            headers={**resolve_references(self._server.headers), "accept-encoding": "identity"},
            timeout=httpx2.Timeout(None, connect=CONNECT_S),  # every call has a deadline of its own
            transport=CheckedTransport(self._server.reach),
            trust_env=False,
        )
        async with (
            client,
            streamable_http_client(self._server.url, http_client=client, max_sse_event_size=MAX_BYTES) as streams,
        ):
            yield streams

    async def trouble(self) -> str:
        """Describe a server that does not answer, for an error message."""
        return f"{httpx2.URL(self._server.url).netloc.decode()} gives no valid answer"


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Connects to checked addresses only, and turns every fault into a note and an error status."""

    def __init__(self, allowed: address_policy.AddressPolicy) -> None:
        self._allowed = allowed
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        note = exchange.get() or Exchange()
        note.fault, note.session_lost = None, False
        host = request.url.netloc.decode()
        try:
            response = await self._inner.handle_async_request(await self._pin_address(request))
        except address_policy.AddressRefused as error:
            note.fault = WorkerFault("bad_url", str(error))
        except (httpx2.TransportError, OSError) as error:
            sentence = f"{host} cannot be reached: {str(error) or type(error).__name__}"
            note.fault = WorkerFault("connection", sentence, retryable=True)
        else:
            return await self._check_response(response, request, note)
        return httpx2.Response(502, request=request)

    async def _pin_address(self, request: httpx2.Request) -> httpx2.Request:
        """Send the request to a checked address; the name stays in Host and in TLS."""
        url = request.url
        port = url.port or (443 if url.scheme == "https" else 80)
        first, *_ = await address_policy.addresses(url.host, port, self._allowed)
        return httpx2.Request(
            request.method,
            url.copy_with(host=first),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": url.host},
        )

    async def _check_response(
        self, response: httpx2.Response, request: httpx2.Request, note: Exchange
    ) -> httpx2.Response:
        """Check and limit a response before the SDK reads it."""
        status, headers = response.status_code, response.headers
        if headers.get("content-encoding", "identity") != "identity":
            note.fault = WorkerFault("invalid_response", "the server compresses its answers unasked")
            await response.aclose()
            return httpx2.Response(502, request=request)
        events = headers.get("content-type", "").lower().startswith("text/event-stream")
        stream = Watched(response, note, None if events and status < 300 else MAX_BYTES)
        if status < 400:
            return httpx2.Response(status, headers=headers, stream=stream, request=request)
        body = await _start_of(stream)
        _note_refusal(note, request, status, headers, body)
        kept = {name: value for name, value in headers.items() if name not in ("content-length", "transfer-encoding")}
        return httpx2.Response(status, headers=kept, content=body, request=request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class Watched(httpx2.AsyncByteStream):
    """A body with a size limit (None for a stream of events, whose events are limited one by one)."""

    def __init__(self, response: httpx2.Response, note: Exchange, limit: int | None) -> None:
        self._response, self._note, self._limit = response, note, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for part in self._response.aiter_raw():
                size += len(part)
                if self._limit is not None and size > self._limit:
                    self._note.fault = WorkerFault(
                        "output_too_large", f"the answer is larger than {self._limit:,} bytes"
                    )
                    raise httpx2.StreamError("too large")
                yield part
        except httpx2.TransportError as error:
            self._note.fault = WorkerFault("connection", f"the server broke off: {error}", retryable=True)
            raise httpx2.StreamError(str(error)) from error  # the kind that costs one request, not the session

    async def aclose(self) -> None:
        await self._response.aclose()


async def _start_of(stream: Watched) -> bytes:
    """Read the first MAX_ERROR_BYTES of an error body."""
    body = b""
    with contextlib.suppress(httpx2.StreamError):
        async for part in stream:
            body += part
            if len(body) > MAX_ERROR_BYTES:
                break
    await stream.aclose()
    return body[:MAX_ERROR_BYTES]


def _note_refusal(note: Exchange, request: httpx2.Request, status: int, headers: httpx2.Headers, body: bytes) -> None:
    """Note the error status, which the SDK hides; a JSON-RPC error in the body it reports itself."""
    note.session_lost = status == 404 and SESSION_HEADER in request.headers
    if status in (401, 403, 408, 429) or status >= 500 or (status == 404 and b'"jsonrpc"' not in body):
        host = request.url.netloc.decode()
        note.fault = provider_errors.fault(host, str(request.url.copy_with(query=None)), status, headers, body)
