"""The login of a studio that others can reach.

Everything but the login page and its stylesheet needs a session. A session is a cookie that scripts cannot read and
that pages of other sites do not send. The database holds the cookie's hash, so that a session can be ended there.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from assets import asset
from studio.access.accounts import SESSION_LASTS, Accounts, current_user

COOKIE = "podium_session"
OPEN = ("/login", "/podium/web/", "/podium/fonts/")  # what the login page itself is made of
MAX_FAILURES = 5
FORGET_S = 300.0
CHECKS_AT_ONCE = 2  # argon2 takes 64 MiB for each
MAX_FORM_BYTES = 8192  # the form is read before anybody is logged in


class LoginWall:
    """Passes on requests with a session; the user's name is put in `request.state.user`."""

    def __init__(self, app: ASGIApp, accounts: Accounts) -> None:
        self._app, self._accounts = app, accounts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or _is_open(scope["path"]):
            await self._app(scope, receive, send)
            return
        key = session_key(scope)
        user = await asyncio.to_thread(self._accounts.session_user, key) if key else None
        if user is None:
            await _refuse(scope)(scope, receive, send)
            return
        scope.setdefault("state", {})["user"] = user
        token = current_user.set(user)
        try:
            await self._app(scope, receive, send)
        finally:
            current_user.reset(token)


def session_key(scope: Scope) -> str:
    """The session cookie of a request, or ""."""
    for name, value in scope["headers"]:
        if name == b"cookie":
            try:
                cookie = SimpleCookie(value.decode("latin-1")).get(COOKIE)
            except CookieError:
                continue
            if cookie is not None:
                return cookie.value
    return ""


def user_of(request: Request) -> str:
    """The user of a request; "" without login."""
    return str(getattr(request.state, "user", ""))


@dataclass(slots=True)
class LoginThrottle:
    """Counts failed logins by name and by address. The fifth within five minutes blocks further tries until these five
    minutes are over. At most `max_entries` are kept, the newest."""

    max_entries: int = 10_000
    _failures: OrderedDict[str, tuple[int, float]] = field(default_factory=OrderedDict)

    def wait_s(self, *keys: str) -> float:
        """Seconds until the next try is allowed; 0 when it is allowed now."""
        now = time.monotonic()
        waits = [since + FORGET_S - now for count, since in map(self._failures_of, keys) if count >= MAX_FAILURES]
        return max(0.0, max(waits, default=0.0))

    def record_failure(self, *keys: str) -> None:
        now = time.monotonic()
        for key in keys:
            count, since = self._failures_of(key)
            self._failures[key] = (count + 1, since if count else now)
            self._failures.move_to_end(key)
        while len(self._failures) > self.max_entries:
            self._failures.popitem(last=False)

    def reset(self, *keys: str) -> None:
        for key in keys:
            self._failures.pop(key, None)

    def _failures_of(self, key: str) -> tuple[int, float]:
        count, since = self._failures.get(key, (0, 0.0))
        return (count, since) if time.monotonic() - since < FORGET_S else (0, 0.0)


def login_routes(accounts: Accounts) -> APIRouter:
    """The login page, logging in, logging out."""
    router = APIRouter()
    throttle, checks = LoginThrottle(), asyncio.Semaphore(CHECKS_AT_ONCE)

    @router.get("/login")
    async def page() -> Response:
        return FileResponse(asset("web/login/login.html"), headers={"cache-control": "no-store"})

    @router.post("/login")
    async def login(request: Request) -> Response:
        fields = await _read_form(request)
        name, password = fields.get("name", ""), fields.get("password", "")
        keys = (f"name {name[:64]}", f"address {request.client.host if request.client else ''}")
        async with checks:  # concurrent tries are counted one after the other
            wait = throttle.wait_s(*keys)
            if wait > 0:
                when = f"{wait / 60:.0f} min" if wait >= 60 else "a minute"
                return _report_problem(f"Too many failed logins. Try again in {when}.", 429, wait)
            if not await asyncio.to_thread(accounts.check, name, password):
                throttle.record_failure(*keys)
                return _report_problem("Name or password is wrong.", 401)
        throttle.reset(keys[0])
        answer = JSONResponse({"ok": True})
        _set_cookie(answer, request, await asyncio.to_thread(accounts.open_session, name))
        return answer

    @router.post("/logout")
    async def logout(request: Request) -> Response:
        await asyncio.to_thread(accounts.close_session, session_key(request.scope))
        answer = JSONResponse({"ok": True})
        answer.delete_cookie(COOKIE)
        return answer

    @router.get("/api/me")
    async def me(request: Request) -> JSONResponse:
        return JSONResponse({"user": user_of(request)})

    return router


async def _read_form(request: Request) -> dict[str, str]:
    """Read the login form. Raises HTTPException when the body is not a form or is too large."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_FORM_BYTES:
            raise HTTPException(413, "this is more than a name and a password")
    try:
        values = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=8)
    except ValueError as error:
        raise HTTPException(400, "send name and password as a form") from error
    return {name: entries[0] for name, entries in values.items()}


def _report_problem(sentence: str, status: int, wait_s: float = 0.0) -> JSONResponse:
    headers = {"retry-after": str(int(wait_s) + 1)} if wait_s else {}
    return JSONResponse({"ok": False, "message": sentence}, status, headers)


def _set_cookie(answer: Response, request: Request, key: str) -> None:
    answer.set_cookie(
        COOKIE,
        key,
        max_age=int(SESSION_LASTS.total_seconds()),
        httponly=True,
        samesite="lax",  # links from other sites find the person logged in; writes from other sites are refused anyway
        secure=request.url.scheme == "https",
    )


def _is_open(path: str) -> bool:
    return any(path == place or (place.endswith("/") and path.startswith(place)) for place in OPEN)


def _refuse(scope: Scope) -> Response:
    """Redirect to the login page when a browser opens a page; 401 for everything else."""
    if scope["type"] == "websocket":
        return Response(status_code=403)
    if scope["method"] == "GET" and b"text/html" in dict(scope["headers"]).get(b"accept", b""):
        query = scope["query_string"].decode("latin-1")
        there = quote(f"{scope['path']}{'?' if query else ''}{query}", safe="")
        return RedirectResponse(f"/login?next={there}", 303)
    return JSONResponse({"detail": "log in first: open /login in a browser"}, 401)
