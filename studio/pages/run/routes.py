"""The studio's own routes beside Gradio's: live episodes as server-sent events, and what the page fetches.

An episode's stream is fed from the database, so a reload, a second viewer or a restarted server just
goes on: the browser sends `Last-Event-ID` by itself and gets the present state.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EpisodeEnded, Event, TurnTaken
from orchestrator.errors import DamagedTrace, EpisodeNotFound
from orchestrator.traces.store import EpisodeRow
from pool_registry.errors import PoolNotFound
from pool_registry.pool import Pool, export_pool
from studio.episode_documents.trace import trace_document
from studio.episode_documents.view import episode_view, step_detail, turn_detail, view_patch
from studio.runtime import Runtime

T = TypeVar("T")
POLL_S = 0.1
KEEP_ALIVE_S = 15.0
LOOK_FOR_DEAD_S = 5.0  # how long an episode is quiet before we ask whether its process still lives
GRADE_WAIT_S = 2.0  # a verdict follows the end of an episode at once, if one follows at all


class Star(BaseModel):
    """Whether a trace is marked as worth imitating."""

    on: bool


def routes(runtime: Runtime) -> APIRouter:
    """The routes, all below /api."""
    router = APIRouter(prefix="/api")

    @router.get("/episodes/{episode_id}/stream")
    def stream(episode_id: str, request: Request) -> StreamingResponse:
        follower = Follower(runtime, _row(runtime, episode_id))
        return StreamingResponse(
            follower.messages(request),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    @router.get("/episodes/{episode_id}")
    def trace(episode_id: str) -> Response:
        row = _row(runtime, episode_id)
        body = json.dumps(_whole(trace_document, runtime.store, row), indent=1, ensure_ascii=False)
        disposition = f'attachment; filename="podium-{row.id}.json"'
        headers = {"content-disposition": disposition}
        return Response(body, media_type="application/json", headers=headers)

    @router.get("/episodes/{episode_id}/star")
    def starred(episode_id: str) -> JSONResponse:
        return JSONResponse({"on": _row(runtime, episode_id).id in runtime.store.traces.list_starred()})

    @router.post("/episodes/{episode_id}/star")
    def star(episode_id: str, wanted: Star) -> JSONResponse:
        _row(runtime, episode_id)
        runtime.store.traces.star(episode_id, wanted.on)
        return JSONResponse({"on": wanted.on})

    @router.get("/episodes/{episode_id}/steps/{step_id}")
    def step(episode_id: str, step_id: int) -> JSONResponse:
        row = _row(runtime, episode_id)
        detail = step_detail(_whole(runtime.store.traces.episode, episode_id), step_id, pool_of(runtime, row)[0])
        return _found(detail, f"episode {episode_id} has no step {step_id}")

    @router.get("/episodes/{episode_id}/turns/{number}")
    def turn(episode_id: str, number: int) -> JSONResponse:
        _row(runtime, episode_id)
        detail = turn_detail(_whole(runtime.store.traces.episode, episode_id), number)
        return _found(detail, f"episode {episode_id} has no round {number}")

    @router.get("/pools/{name}")
    def pool(name: str, version: int | None = None) -> Response:
        pools = runtime.store.pools
        try:
            stored = pools.get(name, version) if version else pools.latest(name)
        except PoolNotFound as error:
            raise HTTPException(404, str(error)) from error
        disposition = f'attachment; filename="{stored.pool.name}-v{stored.version}.json"'
        headers = {"content-disposition": disposition}
        return Response(export_pool(stored.pool), media_type="application/json", headers=headers)

    return router


def pool_of(runtime: Runtime, row: EpisodeRow) -> tuple[Pool | None, int | None]:
    """The pool version that an episode ran on, if this data folder keeps it."""
    stored = runtime.store.pools.by_hash(row.pool, row.pool_hash)
    return (stored.pool, stored.version) if stored else (None, None)


class Follower:
    """One viewer of one episode: folds its events and says what changed."""

    def __init__(self, runtime: Runtime, row: EpisodeRow) -> None:
        self._runtime = runtime
        self._row = row
        self._pool, self._version = pool_of(runtime, row)
        self._episode = Episode(row.id)
        self._last_id = 0
        self._shape: object = None
        self._told_interrupted = False

    async def messages(self, request: Request) -> AsyncIterator[str]:
        """Server-sent events until the episode has ended or the viewer has gone."""
        quiet_s, ended_s = 0.0, 0.0
        while not await request.is_disconnected():
            try:
                events = await asyncio.to_thread(self._poll)
            except DamagedTrace as error:
                yield f"event: problem\ndata: {json.dumps(str(error))}\n\n"
                return
            if events or self._shape is None or self._was_interrupted():
                quiet_s = 0.0
                yield self._message(events)
            if self._is_over():
                ended_s += POLL_S
                if self._episode.graded or not self._expects_verdict() or ended_s > GRADE_WAIT_S:
                    yield "event: end\ndata: {}\n\n"
                    return
            quiet_s += POLL_S
            if quiet_s % LOOK_FOR_DEAD_S < POLL_S:
                await asyncio.to_thread(self._look_for_dead)
            if quiet_s >= KEEP_ALIVE_S:
                quiet_s = 0.0
                yield ": keep-alive\n\n"
            await asyncio.sleep(POLL_S)

    def _poll(self) -> list[Event]:
        """Take in what was appended since the last time."""
        found = self._runtime.store.traces.events_after(self._episode.id, self._last_id)
        for event_id, event in found:
            self._last_id = event_id
            self._episode.apply(event)
        return [event for _, event in found]

    def _look_for_dead(self) -> None:
        """An episode whose process is gone will never end: say so instead of waiting."""
        self._runtime.store.traces.mark_interrupted()
        self._row = self._runtime.store.traces.row(self._episode.id)

    def _was_interrupted(self) -> bool:
        return self._row.state == "interrupted" and not self._told_interrupted

    def _is_over(self) -> bool:
        return self._episode.ended is not None or self._row.state == "interrupted"

    def _expects_verdict(self) -> bool:
        return self._row.family is not None and self._row.state != "interrupted"

    def _message(self, events: list[Event]) -> str:
        reshaped = self._reshaped(events)
        build = episode_view if reshaped else view_patch
        document = build(self._episode, self._row, self._pool, self._version)
        name = "view" if reshaped else "patch"
        return f"id: {self._last_id}\nevent: {name}\ndata: {json.dumps(document, ensure_ascii=False)}\n\n"

    def _reshaped(self, events: list[Event]) -> bool:
        """Whether the picture has another shape than the one that was told last; it is told now."""
        shape = (len(self._episode.steps), len(self._episode.rounds), self._row.state == "interrupted")
        reshaped = shape != self._shape or any(isinstance(event, TurnTaken | EpisodeEnded) for event in events)
        self._shape = shape
        self._told_interrupted = self._row.state == "interrupted"
        return reshaped


def _row(runtime: Runtime, episode_id: str) -> EpisodeRow:
    try:
        return runtime.store.traces.row(episode_id)
    except EpisodeNotFound as error:
        raise HTTPException(404, str(error)) from error


def _whole(read: Callable[..., T], *arguments: Any) -> T:
    """What `read` makes of a stored episode; 409 with the reason when its trace is damaged."""
    try:
        return read(*arguments)
    except DamagedTrace as error:
        raise HTTPException(409, str(error)) from error


def _found(detail: dict[str, Any] | None, otherwise: str) -> JSONResponse:
    if detail is None:
        raise HTTPException(404, otherwise)
    return JSONResponse(detail)
