"""Guards in front of the whole app: who may talk to it, and what a page may load.

Measured on Gradio 6.31 (see the project's notes): on its own it answers any Host and runs cross-origin
writes. Plain ASGI, so that event streams are not buffered.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Where Gradio's own routes are, but for those of its pages.
CLOSED_UNLESS_NEEDED = ("/gradio_api", "/openapi.json", "/monitoring", "/pwa_icon", "/svelte", "/config", "/login/")
# What the pages need of them.
GRADIO_ROUTES = (
    "GET /",
    "GET /config",
    "GET /theme.css",
    "GET /favicon.ico",
    "GET /manifest.json",
    "GET /robots.txt",
    "GET /static/{path:path}",
    "GET /assets/{path:path}",
    "GET /gradio_api/app_id",
    "GET /gradio_api/theme.css",
    "GET /gradio_api/startup-events",
    "GET /gradio_api/heartbeat/{session_hash}",
    "GET /gradio_api/queue/data",
    "POST /gradio_api/queue/join",
    "POST /gradio_api/run/predict",
    "POST /gradio_api/cancel",
    "POST /gradio_api/reset",
)
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
    """Refuses writes that another site's page asks for, unless its origin is `allowed`, and adds the security headers.
    `advice` says how to allow one."""

    def __init__(self, app: ASGIApp, allowed: Collection[str] = (), advice: str = "") -> None:
        self._app, self._allowed, self._advice = app, frozenset(allowed), advice

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] not in ("GET", "HEAD", "OPTIONS") and _is_cross_origin(scope, self._allowed):
            refusal = f"A page of another origin asked for this; refused.{self._advice}"
            await _answer_plainly(send, 403, refusal.encode())
        else:
            await self._app(scope, receive, _with_headers(send))


class GradioGate:
    """Closes what Gradio offers and no page needs: uploads, its proxy, files, calls by name, monitoring, editing."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(CLOSED_UNLESS_NEEDED):
            if not stands_in_gradio_rows(scope["method"], scope["path"]):
                await _answer_plainly(send, 404, b"Not found.")
                return
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        await self._app(scope, receive, send)


def stands_in_gradio_rows(method: str, path: str) -> bool:
    """Whether a request is one of those that the pages need of Gradio."""
    verb = "GET" if method == "HEAD" else method
    plain = path.rstrip("/") or "/"
    return any(
        row == f"{verb} {plain}" or (row.startswith(f"{verb} ") and compile_path(row.split()[1])[0].match(plain))
        for row in GRADIO_ROUTES
    )


def _is_cross_origin(scope: Scope, allowed: Collection[str]) -> bool:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    origin = headers.get("origin")
    if origin in allowed:
        return False
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        return True
    return headers.get("sec-fetch-site") in ("cross-site", "same-site")


async def _answer_plainly(send: Send, status: int, body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *HEADERS]
        await send(message)

    return sending
