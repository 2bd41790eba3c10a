"""The routes of the Run page: live episodes as server-sent events, and what the page fetches.

An episode's stream is fed from the database, so a reload, a second viewer or a restarted server just goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, Field

from orchestrator.errors import DamagedTrace, EpisodeNotFound, OrchestratorError
from orchestrator.traces.store import EpisodeRow
from pool_registry.errors import PoolError
from studio.access.accounts import current_user
from studio.access.permissions import needs
from studio.episode_documents.final_answer import build_final_detail
from studio.episode_documents.trace import build_trace_document
from studio.episode_documents.view import build_step_detail, build_turn_detail
from studio.frame import sse
from studio.frame.document import PageDocument
from studio.orchestrators.choices import split_orchestrator_name
from studio.pages.run.approval_routes import approval_routes, list_routes
from studio.pages.run.credit_routes import credit_routes
from studio.pages.run.follow_up_routes import follow_up_routes
from studio.pages.run.share_routes import share_routes
from studio.pages.run.stream import POLL_S, EpisodeFeeds
from studio.pages.run.what_if_routes import what_if_routes
from studio.runtime import Runtime
from trainer.errors import TrainerError

T = TypeVar("T")
MAX_ANSWER_CHARS = 50_000


class Again(BaseModel):
    """A recorded query once more with another orchestrator, or another query; "" for the recorded one."""

    orchestrator: str
    query: str = ""


class Star(BaseModel):
    """Whether a trace is marked as worth imitating."""

    on: bool


class Judged(BaseModel):
    """What a person says of a run's answer: that it is right, or, as they typed it, which one is."""

    right: bool = False
    answer: str = Field(default="", max_length=MAX_ANSWER_CHARS)


def routes(runtime: Runtime) -> APIRouter:
    """The routes below /api/episodes, and the list of plans that wait."""
    router = APIRouter(prefix="/api/episodes")
    store = runtime.store
    feeds = EpisodeFeeds(store)

    @router.get("/{episode_id}/stream")
    @needs("viewer")
    def stream(episode_id: str, request: Request) -> StreamingResponse:
        viewer = feeds.open_viewer(find_row(runtime, episode_id))
        return sse.stream(sse.follow(request, viewer.poll, viewer.is_over, POLL_S))

    @router.get("/{episode_id}")
    @needs("viewer")
    def trace(episode_id: str) -> Response:
        row = find_row(runtime, episode_id)
        body = json.dumps(_read(build_trace_document, store, row), indent=1, ensure_ascii=False)
        headers = {"content-disposition": f'attachment; filename="podium-{row.id}.json"'}
        return Response(body, media_type="application/json", headers=headers)

    @router.get("/{episode_id}/loading")
    @needs("viewer")
    def is_loading(episode_id: str) -> JSONResponse:
        orchestrator = split_orchestrator_name(find_row(runtime, episode_id).orchestrator)
        return JSONResponse({"loading": runtime.is_loading(orchestrator.policy)})

    @router.get("/{episode_id}/star")
    @needs("viewer")
    def is_starred(episode_id: str) -> JSONResponse:
        return JSONResponse({"on": find_row(runtime, episode_id).id in store.traces.list_starred()})

    @router.post("/{episode_id}/star")
    @needs("editor")
    def set_star(episode_id: str, star: Star) -> JSONResponse:
        find_row(runtime, episode_id)
        store.traces.star(episode_id, star.on)
        return JSONResponse({"on": star.on})

    @router.get("/{episode_id}/steps/{step_id}")
    @needs("viewer")
    def step(episode_id: str, step_id: int) -> JSONResponse:
        row = find_row(runtime, episode_id)
        stored = store.pools.by_hash(row.pool, row.pool_hash)
        detail = build_step_detail(_read(store.traces.episode, episode_id), step_id, stored.pool if stored else None)
        return _respond(detail, f"episode {episode_id} has no step {step_id}")

    @router.get("/{episode_id}/final")
    @needs("viewer")
    def final(episode_id: str) -> JSONResponse:
        find_row(runtime, episode_id)
        detail = build_final_detail(_read(store.traces.episode, episode_id))
        return _respond(detail, f"no finalizer wrote an answer of episode {episode_id}")

    @router.get("/{episode_id}/turns/{number}")
    @needs("viewer")
    def turn(episode_id: str, number: int) -> JSONResponse:
        find_row(runtime, episode_id)
        detail = build_turn_detail(_read(store.traces.episode, episode_id), number)
        return _respond(detail, f"episode {episode_id} has no round {number}")

    @router.post("/{episode_id}/again")
    @needs("editor")
    def again(episode_id: str, change: Again) -> JSONResponse:
        row = find_row(runtime, episode_id)
        try:
            limits = _read(store.traces.episode, episode_id).run_limits
            query = change.query or row.query
            started = runtime.start_episode(row.pool, change.orchestrator, query, run_limits=limits)
        except (PoolError, OrchestratorError) as error:
            raise HTTPException(409, str(error)) from error
        return JSONResponse({"episode": started})

    @router.post("/{episode_id}/task")
    @needs("editor")
    def keep_task(episode_id: str, judged: Judged | None = None) -> JSONResponse:
        """Make a run one of its pool's own tasks; `problem` says why it cannot be one."""
        from trainer.demonstrations.episode_task import Judgement, keep_run  # imports what training needs

        pool = find_row(runtime, episode_id).pool
        judged = judged or Judged()
        judgement = Judgement(judged.right, judged.answer, current_user.get(), "page")
        try:
            keep_run(runtime.store, episode_id, pool, judgement)
            runtime.take_verdict(episode_id)
        except (PoolError, OrchestratorError, TrainerError) as error:
            return JSONResponse({"pool": pool, "problem": str(error)})
        return JSONResponse({"pool": pool, "problem": ""})

    @router.post("/{episode_id}/verdict")
    @needs("editor")
    def judge(episode_id: str, judged: Judged) -> JSONResponse:
        """Record what a person says of a run's answer; `problem` says why it cannot be judged."""
        from trainer.demonstrations.episode_task import Judgement, judge_run  # imports what training needs

        find_row(runtime, episode_id)
        try:
            judgement = Judgement(judged.right, judged.answer, current_user.get(), "page")
            verdict = judge_run(runtime.store, episode_id, judgement)
            runtime.take_verdict(episode_id)
        except (PoolError, OrchestratorError, TrainerError) as error:
            return JSONResponse({"problem": str(error)})
        return JSONResponse({"right": verdict.correct, "expected": verdict.expected, "problem": ""})

    router.include_router(what_if_routes(runtime))
    router.include_router(approval_routes(runtime))
    router.include_router(credit_routes(runtime))
    router.include_router(follow_up_routes(runtime))
    everything = APIRouter()
    everything.include_router(router)
    everything.include_router(list_routes(runtime))
    everything.include_router(share_routes(runtime))
    return everything


def find_row(runtime: Runtime, episode_id: str) -> EpisodeRow:
    """The summary of an episode. Raises HTTPException 404."""
    try:
        return runtime.store.traces.row(episode_id)
    except EpisodeNotFound as error:
        raise HTTPException(404, str(error)) from error


def _read(read: Callable[..., T], *arguments: Any) -> T:
    """Call `read` on a recorded episode. Raises HTTPException 409 with the reason when its trace is damaged."""
    try:
        return read(*arguments)
    except DamagedTrace as error:
        raise HTTPException(409, str(error)) from error


def _respond(document: PageDocument | None, otherwise: str) -> JSONResponse:
    if document is None:
        raise HTTPException(404, otherwise)
    return JSONResponse(document.to_json())
