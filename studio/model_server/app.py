"""The web application of a served model: the OpenAI API's routes, the guard in front, MCP and A2A beside them.

Imports no Gradio: it is up in a fraction of the studio's time and memory.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from orchestrator.traces.store import Store
from pool_registry.secrets import resolve
from pool_registry.text import shorten
from pool_registry.validation_words import join_problems, list_problems
from studio.access.accounts import AccountError, Tokens
from studio.access.body_limit import CONVERSATION, DECISION, EVENT, LimitedBody
from studio.access.json_route import JsonRoute
from studio.access.permissions import Need, Permissions, needs
from studio.access.request_guards import LOOPBACK, SameOrigin
from studio.access.roles import Rights, RoleRefused, UserRole, current_rights
from studio.frame import sse
from studio.model_server.apis.a2a.routes import CARD_PATH, a2a_routes
from studio.model_server.apis.chat_completions import ChatCompletion
from studio.model_server.apis.completions import CompletionRequest, TextCompletion
from studio.model_server.apis.mcp import create_mcp_server
from studio.model_server.apis.responses import ModelResponse
from studio.model_server.apis.verdicts import verdict_routes
from studio.model_server.approvals import approval_routes
from studio.model_server.errors import IGNORED_HEADER, NO_RETRY, TRACE_HEADER, ApiError
from studio.model_server.http.allowed_origins import allow_origins
from studio.model_server.http.unpacked_bodies import UnpackedBodies
from studio.model_server.kept_responses import UNDER_WAY, KeptResponses, read_trace, write_input_items
from studio.model_server.request import (
    ChatRequest,
    EpisodeRequest,
    ResponsesRequest,
    read_request,
    unknown_model,
)
from studio.model_server.served_episode import ServedEpisode
from studio.model_server.service import ServedModel, Service, holds_plans

OPEN_PATHS = ("/health", CARD_PATH)  # need no token
CLIENT_CLOSED_REQUEST = 499  # nginx's code; the client does not read the response
ORIGIN_ADVICE = " Start the server with --allow-origin and the page's origin to let it in."
BODY_LIMITS = {
    "/v1/chat/completions": None,
    "/v1/completions": None,
    "/v1/responses": None,
    "/v1/approvals": DECISION,
    "/v1/verdicts": DECISION,
    "/mcp": EVENT,
    "/a2a": EVENT,
}
MAX_HEADER_CHARS = 4000  # of the names of ignored parameters: clients take some 8 to 16 kB of headers


def create_model_app(
    store: Store,
    model: ServedModel,
    *,
    loopback: bool,
    references: Sequence[str] = (),
    routers: Sequence[APIRouter] = (),
    origins: Sequence[str] = (),
) -> FastAPI:
    """Create the application, ready for uvicorn. `references` are references to tokens that are kept elsewhere,
    `routers` bring further routes behind the same guards. Pages of `origins` may use it from a browser.

    Raises SecretNotFound when a reference is not set. Starting the application raises what `Service` raises.
    """
    secrets = {name: resolve(name).get_secret_value() for name in references}
    tokens = Tokens(store.engine)

    def needs_token() -> bool:
        return bool(not loopback or secrets or tokens.list())

    service: list[Service] = []  # opened on the serving event loop
    mcp = create_mcp_server(lambda: service[0], holds_plans=holds_plans(store, model))
    mcp_routes = mcp.streamable_http_app(stateless_http=False, host="").routes

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.service = opened = Service(store, model)
        service.append(opened)
        async with mcp.session_manager.run():
            yield
            await opened.close()
        await asyncio.to_thread(store.close)

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.router.route_class = JsonRoute
    app.router.routes.extend(mcp_routes)
    app.add_exception_handler(ApiError, _handle_api_error)
    app.add_exception_handler(HTTPException, _handle_http_error)
    app.add_exception_handler(RequestValidationError, _handle_bad_request)
    app.add_exception_handler(Exception, _handle_unexpected_error)
    _add_routes(app, model)
    app.include_router(approval_routes())
    app.include_router(verdict_routes())
    app.include_router(a2a_routes(model.name, needs_token))
    for router in routers:
        app.include_router(router)
    permissions = Permissions((f"{method} /mcp", Need(UserRole.EDITOR)) for method in ("GET", "POST", "DELETE"))
    permissions.add_routes(app.routes)
    app.add_middleware(LimitedBody, rows=BODY_LIMITS)
    app.add_middleware(UnpackedBodies, most=CONVERSATION.size)
    app.add_middleware(BearerGuard, tokens=tokens, secrets=secrets, needs_token=needs_token, permissions=permissions)
    app.add_middleware(SameOrigin, allowed=origins, advice=ORIGIN_ADVICE)
    if origins:
        allow_origins(app, origins)
    if loopback:  # elsewhere a token is required, which a page under a rebound host name does not have
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(LOOPBACK))
    return app


def _add_routes(app: FastAPI, model: ServedModel) -> None:
    listing = {"id": model.name, "object": "model", "created": 0, "owned_by": "podium"}

    @app.get("/health")
    @needs("viewer")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/v1/models")
    @needs("viewer")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [listing]}

    @app.get("/v1/models/{name:path}")
    @needs("viewer")
    async def one_model(name: str) -> dict[str, Any]:
        if name != model.name:
            raise unknown_model(name, model.name)
        return listing

    @app.post("/v1/chat/completions")
    @needs("editor")
    async def chat(request: Request) -> Response:
        body = await read_request(request, ChatRequest, model.name)
        checked = await run_in_threadpool(body.episode_request)
        service, episode = await _start_episode(request, checked)
        completion = ChatCompletion(model.name, _fingerprint(service), episode)
        if checked.stream:
            return sse.stream(completion.stream(), _headers(episode))

        async def document() -> dict[str, Any]:
            async for event in episode.events(sse.KEEP_ALIVE_S):
                if event is not None:
                    episode.progress.describe(event)  # a later request of the episode may stream
            return completion.document(await episode.answer())

        return await _await_response(request, episode, document)

    @app.post("/v1/completions")
    @needs("editor")
    async def complete(request: Request) -> Response:
        body = await read_request(request, CompletionRequest, model.name)
        service: Service = request.app.state.service
        await service.refresh()

        def start(one: EpisodeRequest) -> ServedEpisode:
            return service.start_episode(one, request.state.user)

        completion = TextCompletion(model.name, _fingerprint(service), body.episode_requests(), bool(body.echo), start)
        if body.stream:
            return sse.stream(completion.stream(), _headers(completion))
        return await _await_response(request, completion, completion.document)

    @app.post("/v1/responses")
    @needs("editor")
    async def responses(request: Request) -> Response:
        body = await read_request(request, ResponsesRequest, model.name)
        kept, user = _kept(request), request.state.user
        earlier = kept.find(body.previous_response_id, user).conversation if body.previous_response_id else []
        checked = await run_in_threadpool(body.episode_request, earlier)
        service: Service = request.app.state.service
        if checked.background and not service.record:
            message = "this server keeps nothing, so there would be no response to fetch later; leave background out"
            raise ApiError(400, message, "unsupported_value", "background")
        _, episode = await _start_episode(request, checked)

        def keep(document: dict[str, Any]) -> None:
            if service.record and (checked.keep or checked.background):
                kept.keep(user, checked.messages, document)

        response = ModelResponse(model.name, episode, body, keep)
        if checked.stream:
            return sse.stream(response.stream(), _headers(episode))
        if checked.background:
            return JSONResponse(_start_in_background(request, response), headers=_headers(episode))
        return await _await_response(request, episode, response.document)

    _add_kept_responses(app)


def _add_kept_responses(app: FastAPI) -> None:
    """Add the routes of kept responses."""

    @app.get("/v1/responses/{name}")
    @needs("viewer")
    async def one_response(request: Request, name: str) -> dict[str, Any]:
        return _kept(request).find(name, request.state.user).document

    @app.get("/v1/responses/{name}/input_items")
    @needs("viewer")
    async def input_items(request: Request, name: str) -> dict[str, Any]:
        messages = _kept(request).find(name, request.state.user).messages
        return write_input_items(name, messages)

    @app.post("/v1/responses/{name}/cancel")
    @needs("editor")
    async def cancel(request: Request, name: str) -> dict[str, Any]:
        kept, user = _kept(request), request.state.user
        response = kept.find(name, user)
        if response.document["status"] not in UNDER_WAY:
            return response.document
        service: Service = request.app.state.service
        service.stop_episode(read_trace(name), user)
        document = {**response.document, "status": "cancelled"}
        kept.keep(user, response.messages, document)
        return document

    @app.delete("/v1/responses/{name}")
    @needs("editor")
    async def delete(request: Request, name: str) -> dict[str, Any]:
        _kept(request).delete(name, request.state.user)
        return {"id": name, "object": "response.deleted", "deleted": True}


def _kept(request: Request) -> KeptResponses:
    service: Service = request.app.state.service
    return service.responses


def _start_in_background(request: Request, response: ModelResponse) -> dict[str, Any]:
    """Answer at once, and go on without the client."""
    document = response.queued_document()
    service: Service = request.app.state.service
    service.keep_running(response.run_in_background())
    return document


async def _start_episode(request: Request, checked: EpisodeRequest) -> tuple[Service, ServedEpisode]:
    service: Service = request.app.state.service
    await service.refresh()
    return service, service.start_episode(await service.read(checked, request.state.user), request.state.user)


def _fingerprint(service: Service) -> str:
    return f"podium_{service.pool_hash[:16]}"


def _headers(episode: ServedEpisode | TextCompletion) -> dict[str, str]:
    """The headers of an answer: its trace, and the parameters without effect."""
    names = shorten(", ".join(episode.ignored), MAX_HEADER_CHARS)
    ignored = {IGNORED_HEADER: names.encode("ascii", "replace").decode()} if names else {}
    trace = {TRACE_HEADER: episode.trace} if episode.trace else {}
    return {**episode.headers, **trace, **ignored}


async def _await_response(
    request: Request, episode: ServedEpisode | TextCompletion, document: Callable[[], Awaitable[dict[str, Any]]]
) -> Response:
    """Wait for the document that answers the request. When the client disconnects first, stop the episode."""
    disconnect = asyncio.create_task(_wait_for_disconnect(request))
    result = asyncio.ensure_future(document())
    try:
        await asyncio.wait((disconnect, result), return_when=asyncio.FIRST_COMPLETED)
        if not result.done():
            episode.stop()
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        return JSONResponse(result.result(), headers=_headers(episode))
    finally:
        episode.release()
        disconnect.cancel()
        result.cancel()


async def _wait_for_disconnect(request: Request) -> None:
    """Return when the client disconnects. The body has been read, so no other message can come."""
    while (await request.receive())["type"] != "http.disconnect":
        continue


async def _handle_api_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError), "registered for ApiError"
    return JSONResponse(error.document, error.status, error.headers)


async def _handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "registered for HTTPException"
    message = f"{request.method} {request.url.path} is not served here: {error.detail}"
    return await _handle_api_error(request, ApiError(error.status_code, message, "not_found"))


async def _handle_bad_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError), "registered for RequestValidationError"
    message = join_problems(list_problems(error.errors()))
    return await _handle_api_error(request, ApiError(400, message, "invalid_value"))


async def _handle_unexpected_error(request: Request, error: Exception) -> Response:
    """Report a bug of ours by its type only: its text may hold anything, and is in the log."""
    message = f"the server failed on this request ({type(error).__name__}); its log says why"
    return await _handle_api_error(
        request, ApiError(500, message, "internal_error", headers={"x-should-retry": "false"})
    )


class BearerGuard:
    """Lets in clients with a token; without one only while `needs_token` says that none is needed.

    `secrets` are further tokens, by the reference that names them. The token's owner is put in `request.state.user`.
    """

    def __init__(
        self,
        app: ASGIApp,
        tokens: Tokens,
        secrets: Mapping[str, str],
        needs_token: Callable[[], bool],
        permissions: Permissions,
    ) -> None:
        self._app, self._tokens, self._secrets, self._needs_token = app, tokens, secrets, needs_token
        self._permissions = permissions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        user = "" if scope["path"] in OPEN_PATHS else await asyncio.to_thread(self._find_user, _bearer_token(scope))
        if user is None:
            await _refuse_without_token()(scope, receive, send)
            return
        try:
            rights = await asyncio.to_thread(self._find_rights, user)
            self._permissions.check_request(rights, scope["method"], scope["path"])
        except (RoleRefused, AccountError) as refusal:
            error = ApiError(403, str(refusal), "role", headers=NO_RETRY)
            await JSONResponse(error.document, error.status, error.headers)(scope, receive, send)
            return
        scope.setdefault("state", {})["user"] = user
        token = current_rights.set(rights)
        try:
            await self._app(scope, receive, send)
        finally:
            current_rights.reset(token)

    def _find_rights(self, user: str) -> Rights:
        """What a client may do; everything for one whose token is kept elsewhere, and where no token is needed."""
        return Rights() if user in ("", *self._secrets) else self._tokens.find_rights(user)

    def _find_user(self, token: str) -> str | None:
        """Find the token's owner; "" where no token is needed, None where one is missing or wrong."""
        for name, secret in self._secrets.items():
            if token and hmac.compare_digest(token.encode(), secret.encode()):
                return name
        owner = self._tokens.owner(token) if token else None
        if owner is not None:
            return owner
        return None if self._needs_token() else ""


def _bearer_token(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, token = value.decode("latin-1").partition(" ")
            return token.strip() if kind.lower() == "bearer" else ""
    return ""


def _refuse_without_token() -> Response:
    message = (
        "a valid token is needed: send `Authorization: Bearer TOKEN`. "
        "`podium tokens add NAME` makes one, and so does the Serve page"
    )
    error = ApiError(401, message, "invalid_api_key")
    return JSONResponse(error.document, error.status, {"www-authenticate": "Bearer"})
