"""Guards in front of the whole app: who may talk to it, and what a page may load.

Measured on Gradio 6.31 (see the project's notes): on its own it answers any Host and runs cross-origin
writes. Plain ASGI, so that event streams are not buffered.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")

# gr.HTML evaluates its js_on_load, so inline scripts and eval cannot be forbidden; other origins are.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "worker-src 'self' blob:",
        "frame-src 'self'",
        "frame-ancestors 'self'",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
    )
)
HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class SameOrigin:
    """Refuses writes that another site's page asks for, and adds the security headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] not in ("GET", "HEAD", "OPTIONS") and _is_cross_origin(scope):
            await _refuse(send)
        else:
            await self._app(scope, receive, _with_headers(send))


def _is_cross_origin(scope: Scope) -> bool:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        return True
    return headers.get("sec-fetch-site") in ("cross-site", "same-site")


async def _refuse(send: Send) -> None:
    start = {"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]}
    await send(start)
    await send({"type": "http.response.body", "body": b"A page of another origin asked for this; refused."})


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *HEADERS]
        await send(message)

    return sending
