"""The web application of a served model: the OpenAI API's routes, the guard in front, MCP beside them.

Imports no Gradio: it is up in a fraction of the studio's time and memory.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EpisodeEnded
from orchestrator.traces.store import Store
from pool_registry.secrets import resolve
from studio.access.accounts import Tokens
from studio.access.request_guards import LOOPBACK, SameOrigin
from studio.frame.sse import HEADERS
from studio.model_server.chat_completions import Completion
from studio.model_server.errors import TRACE_HEADER, ApiError, failure_of
from studio.model_server.mcp import mcp_server
from studio.model_server.request import ChatRequest, ResponsesRequest, Wanted, read, unknown_model
from studio.model_server.responses import Answer
from studio.model_server.service import Offer, ServedEpisode, Service

CLIENT_GONE = 499


def create_serve_app(store: Store, offer: Offer, *, loopback: bool, references: Sequence[str] = ()) -> FastAPI:
    """The application, ready for uvicorn. Raises SecretNotFound when a token's reference is not set.

    Starting it raises what `Service` raises.
    """
    referred = {name: resolve(name).get_secret_value() for name in references}
    service: list[Service] = []  # opened on the serving event loop
    mcp = mcp_server(lambda: service[0])
    mcp_routes = mcp.streamable_http_app(stateless_http=False, host="").routes

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.service = opened = Service(store, offer)
        service.append(opened)
        async with mcp.session_manager.run():
            yield
            await opened.close()
        await asyncio.to_thread(store.close)

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.router.routes.extend(mcp_routes)
    app.add_exception_handler(ApiError, _refused)
    app.add_exception_handler(HTTPException, _no_such_route)
    app.add_exception_handler(Exception, _broken)
    _add_routes(app, offer)
    app.add_middleware(BearerGuard, tokens=Tokens(store.engine), referred=referred, always=not loopback)
    app.add_middleware(SameOrigin)
    if loopback:  # elsewhere a token is needed, which a page that found its way here by a name does not have
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(LOOPBACK))
    return app


def _add_routes(app: FastAPI, offer: Offer) -> None:
    model = {"id": offer.name, "object": "model", "created": 0, "owned_by": "podium"}

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [model]}

    @app.get("/v1/models/{name:path}")
    async def one_model(name: str) -> dict[str, Any]:
        if name != offer.name:
            raise unknown_model(name, offer.name)
        return model

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        wanted = (await read(request, ChatRequest, offer.name)).wanted()
        service, running = _begun(request, wanted)
        completion = Completion(offer.name, f"podium_{service.pool_hash[:16]}", running.id)
        if wanted.stream:
            return _streamed(completion.stream(running, wanted.include_usage), running)
        return await _whole(request, running, completion.whole)

    @app.post("/v1/responses")
    async def responses(request: Request) -> Response:
        asked = await read(request, ResponsesRequest, offer.name)
        wanted = asked.wanted()
        _, running = _begun(request, wanted)
        answer = Answer(offer.name, running.id, asked.instructions)
        if wanted.stream:
            return _streamed(answer.stream(running), running)
        return await _whole(request, running, answer.whole)


def _begun(request: Request, wanted: Wanted) -> tuple[Service, ServedEpisode]:
    service: Service = request.app.state.service
    return service, service.start_episode(wanted.query, wanted.limits, request.state.user)


def _streamed(messages: AsyncIterator[str], running: ServedEpisode) -> StreamingResponse:
    headers = {**HEADERS, TRACE_HEADER: running.id}
    return StreamingResponse(messages, media_type="text/event-stream", headers=headers)


async def _whole(request: Request, running: ServedEpisode, document: Any) -> Response:
    """The document of the finished episode. The episode is stopped when the client does not wait for it."""
    gone = asyncio.create_task(_disconnected(request))
    ended = asyncio.create_task(running.result())
    try:
        await asyncio.wait((gone, ended), return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            return Response(status_code=CLIENT_GONE)
        episode, how = ended.result()
        return _answered(running, episode, how, document)
    finally:
        running.stop()
        gone.cancel()
        ended.cancel()


def _answered(running: ServedEpisode, episode: Episode, ended: EpisodeEnded, document: Any) -> Response:
    failure = failure_of(ended, running.id)
    if failure is not None:
        raise failure
    return JSONResponse(document(episode, ended), headers={TRACE_HEADER: running.id})


async def _disconnected(request: Request) -> None:
    """Return when the client has gone. The body has been read: nothing else can come."""
    while (await request.receive())["type"] != "http.disconnect":
        continue


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError), "registered for ApiError"
    return JSONResponse(error.document, error.status, error.headers)


async def _no_such_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "registered for HTTPException"
    message = f"{request.method} {request.url.path} is not served here: {error.detail}"
    return await _refused(request, ApiError(error.status_code, message, "not_found"))


async def _broken(request: Request, error: Exception) -> Response:
    """Our own fault: said without its text, which may hold anything; the log has it."""
    message = f"the server failed on this request ({type(error).__name__}); its log says why"
    return await _refused(request, ApiError(500, message, "internal_error", headers={"x-should-retry": "false"}))


class BearerGuard:
    """Lets in who has a token, and everybody as long as no token exists and `always` is off.

    `referred` are tokens that lie elsewhere, by their reference. Who it was is in `request.state.user`.
    """

    def __init__(self, app: ASGIApp, tokens: Tokens, referred: Mapping[str, str], always: bool) -> None:
        self._app, self._tokens, self._referred, self._always = app, tokens, referred, always

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        user = "" if scope["path"] == "/health" else await asyncio.to_thread(self._user, _bearer(scope))
        if user is None:
            await _unauthorized()(scope, receive, send)
            return
        scope.setdefault("state", {})["user"] = user
        await self._app(scope, receive, send)

    def _user(self, token: str) -> str | None:
        """Who this is; "" for everybody where no token is needed."""
        for name, secret in self._referred.items():
            if token and hmac.compare_digest(token.encode(), secret.encode()):
                return name
        owner = self._tokens.owner(token) if token else None
        if owner is not None:
            return owner
        needed = self._always or self._referred or self._tokens.list()
        return None if needed else ""


def _bearer(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, token = value.decode("latin-1").partition(" ")
            return token.strip() if kind.lower() == "bearer" else ""
    return ""


def _unauthorized() -> Response:
    message = (
        "a valid token is needed: send `Authorization: Bearer TOKEN`. "
        "`podium tokens add NAME` makes one, and so does the Serve page"
    )
    error = ApiError(401, message, "invalid_api_key")
    return JSONResponse(error.document, error.status, {"www-authenticate": "Bearer"})
