"""The login of a studio that others can reach.

Everything but the login page, its stylesheet and links to one run each (shared_runs.py) needs a session. A session is a
cookie that scripts cannot read and that pages of other sites do not send. The database holds the cookie's hash, so that
a session can be ended there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import asdict
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Body, HTTPException, Request
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from assets import asset
from studio.access.accounts import SESSION_LASTS, AccountError, Accounts, current_user, make_session_id
from studio.access.login_brake import MAX_IN_LINE, MAX_WAIT_S, LoginBrake, Record, compute_wait_s
from studio.access.permissions import Permissions, needs
from studio.access.roles import Rights, RoleRefused, UserRole, current_rights
from studio.access.shared_runs import ADDRESS

COOKIE = "podium_session"
OPEN = ("/login", "/podium/web/", "/podium/fonts/")  # what the login page itself is made of
CHECKS_AT_ONCE = 2  # argon2 takes 64 MiB for each
MAX_FORM_BYTES = 8192  # the form is read before anybody is logged in


class LoginWall:
    """Passes on requests with a session whose user may send them; the user's name is put in `request.state.user`.

    `pages` are the addresses of pages, which everybody who logs in may open.
    """

    def __init__(self, app: ASGIApp, accounts: Accounts, permissions: Permissions, pages: Collection[str] = ()) -> None:
        self._app, self._accounts, self._permissions, self._pages = app, accounts, permissions, frozenset(pages)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or _is_open(scope):
            await self._app(scope, receive, send)
            return
        key = session_key(scope)
        visitor = await asyncio.to_thread(self._find_visitor, key) if key else None
        if visitor is None:
            await _refuse(scope)(scope, receive, send)
            return
        user, rights = visitor
        try:
            self._check(rights, scope)
        except RoleRefused as refusal:
            await refuse_role(refusal)(scope, receive, send)
            return
        scope.setdefault("state", {})["user"] = user
        tokens = current_user.set(user), current_rights.set(rights)
        try:
            await self._app(scope, receive, send)
        finally:
            current_user.reset(tokens[0])
            current_rights.reset(tokens[1])

    def _find_visitor(self, key: str) -> tuple[str, Rights] | None:
        user = self._accounts.session_user(key)
        try:
            return None if user is None else (user, self._accounts.find_rights(user))
        except AccountError:  # removed in this moment
            return None

    def _check(self, rights: Rights, scope: Scope) -> None:
        """Raise RoleRefused when the request needs another role."""
        method = scope.get("method", "WEBSOCKET")
        if not (method in ("GET", "HEAD") and scope["path"].rstrip("/") in self._pages):
            self._permissions.check_request(rights, method, scope["path"])


def refuse_role(refusal: RoleRefused) -> Response:
    """The response to a request that the role does not allow, as pages and as clients read it."""
    sentence = f"{str(refusal)[0].upper()}{str(refusal)[1:]}."
    return JSONResponse({"ok": False, "message": sentence, "detail": sentence, "problems": [["", sentence]]}, 403)


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


def login_routes(accounts: Accounts, permissions: Permissions) -> APIRouter:
    """The login page, logging in and out, sessions, and the accounts that owners look after."""
    router = APIRouter()
    brake, checks = LoginBrake(), asyncio.Semaphore(CHECKS_AT_ONCE)

    @router.get("/login")
    async def page() -> Response:
        return FileResponse(asset("web/login/login.html"), headers={"cache-control": "no-store"})

    @router.post("/login")
    async def login(request: Request) -> Response:
        fields = await _read_form(request)
        name, password = fields.get("name", ""), fields.get("password", "")
        address = request.client.host if request.client else ""
        record = brake.open_record(name, address)
        if record.waiting >= MAX_IN_LINE:
            return _report_problem("Several tries for this name are being checked. Try again in a moment.", 429)
        if not await _check_password(accounts, checks, record, name, password):
            return _report_problem("Name or password is wrong.", 401)
        answer = JSONResponse({"ok": True})
        browser = request.headers.get("user-agent", "")
        _set_cookie(answer, request, await asyncio.to_thread(accounts.open_session, name, address, browser))
        return answer

    @router.post("/logout")
    @needs("viewer")
    async def logout(request: Request) -> Response:
        await asyncio.to_thread(accounts.close_session, session_key(request.scope))
        answer = JSONResponse({"ok": True})
        answer.delete_cookie(COOKIE)
        return answer

    @router.get("/api/me")
    @needs("viewer")
    async def me(request: Request) -> JSONResponse:
        rights = current_rights.get()
        refused, read_only = permissions.list_refused(rights), permissions.list_refused_on_read_only(rights)
        return JSONResponse({"user": user_of(request), "role": rights.role, "refused": refused, "read_only": read_only})

    router.include_router(session_routes(accounts))
    router.include_router(account_routes(accounts))
    return router


async def _check_password(
    accounts: Accounts, checks: asyncio.Semaphore, record: Record, name: str, password: str
) -> bool:
    """Whether the password is right, after the wait that earlier wrong ones have earned."""
    record.waiting += 1
    try:
        async with record.turn:
            await asyncio.sleep(compute_wait_s(record.failures))
            async with checks:
                is_right = await asyncio.to_thread(accounts.check, name, password)
            record.note(is_right)
    finally:
        record.waiting -= 1
    return is_right


def session_routes(accounts: Accounts) -> APIRouter:
    """Open logins: a person's own, for owners everybody's."""
    router = APIRouter(prefix="/api/sessions")

    def name_whose(request: Request) -> str:
        return "" if current_rights.get().is_owner else user_of(request)

    @router.get("")
    @needs("viewer")
    def sessions(request: Request) -> JSONResponse:
        here = make_session_id(session_key(request.scope))
        listed = accounts.list_sessions(name_whose(request))
        return JSONResponse({"sessions": [{**asdict(session), "here": session.id == here} for session in listed]})

    @router.post("/{key}/end")
    @needs("viewer")
    def end(request: Request, key: str) -> JSONResponse:
        return _do(lambda: accounts.end_session(key, name_whose(request)))

    return router


def account_routes(accounts: Accounts) -> APIRouter:
    """The people who may log in, for owners."""
    router = APIRouter(prefix="/api/accounts")

    @router.get("")
    @needs("owner")
    def people() -> JSONResponse:
        return JSONResponse({"accounts": [asdict(person) for person in accounts.list()]})

    @router.post("")
    @needs("owner")
    def add(name: str = Body(), password: str = Body(), role: UserRole = Body()) -> JSONResponse:  # noqa: B008  FastAPI's way
        return _do(lambda: accounts.add(name, password, role, is_new=True))

    @router.post("/{name}/role")
    @needs("owner")
    def set_role(name: str, role: UserRole = Body(), based_on: UserRole | None = Body(None)) -> JSONResponse:  # noqa: B008  FastAPI's way
        return _do(lambda: accounts.set_role(name, role, based_on))

    @router.post("/{name}/remove")
    @needs("owner")
    def remove(name: str) -> JSONResponse:
        return _do(lambda: accounts.remove(name))

    return router


def _do(work: Callable[[], None]) -> JSONResponse:
    try:
        work()
    except AccountError as error:
        return _report_problem(f"{str(error)[0].upper()}{str(error)[1:]}.", 409)
    return JSONResponse({"ok": True})


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


def _report_problem(sentence: str, status: int) -> JSONResponse:
    headers = {"retry-after": str(int(MAX_WAIT_S))} if status == 429 else {}
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


def _is_open(scope: Scope) -> bool:
    """Whether a request needs no session: for the login page, or by a link to one run."""
    path = scope["path"]
    if scope.get("method") == "GET" and ADDRESS.fullmatch(path):
        return True
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
