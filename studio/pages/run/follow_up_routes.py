"""Follow-up questions on the Run page: what one means, the run of it, and the runs that go on with one."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from orchestrator.errors import EpisodeNotFound, OrchestratorError
from orchestrator.follow_up.readings import Understanding
from pool_registry.deployment_mode import tighten_mode
from pool_registry.errors import PoolError
from studio.access.permissions import needs
from studio.follow_ups import MAX_TEXT_CHARS, load_origin, read_follow_up
from studio.frame.document import PageDocument
from studio.orchestrators.default import list_chat_models
from studio.runtime import Runtime

MOST_CHARS = 4 * MAX_TEXT_CHARS  # longer ones are refused unread; those between by a sentence


class TypedFollowUp(BaseModel):
    """A follow-up as it was typed; `question` is what the person chose of what it may mean, or wrote in full."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(max_length=MOST_CHARS)
    question: str = Field(default="", max_length=MOST_CHARS)


class FollowUpReply(PageDocument):
    """The run that was started; else the questions to choose from, or why there is none."""

    episode: str = ""
    readings: list[str] = []
    problem: str = ""


class FollowUpLine(PageDocument):
    """A run that goes on with another."""

    episode: str
    query: str
    answer: str | None


class FollowUpRuns(PageDocument):
    """The runs that go on with one, oldest first."""

    runs: list[FollowUpLine]


def follow_up_routes(runtime: Runtime) -> APIRouter:
    """The routes below /api/episodes."""
    router = APIRouter()

    @router.post("/{episode_id}/follow-up")
    @needs("editor")
    def follow_up(episode_id: str, typed: TypedFollowUp) -> JSONResponse:
        try:
            return JSONResponse(_start(runtime, episode_id, typed).to_json())
        except EpisodeNotFound as error:
            raise HTTPException(404, str(error)) from error
        except (PoolError, OrchestratorError) as error:
            return JSONResponse(FollowUpReply(problem=str(error)).to_json())

    @router.get("/{episode_id}/follow-ups")
    @needs("viewer")
    def list_runs(episode_id: str) -> JSONResponse:
        rows = runtime.store.traces.list_follow_ups(episode_id)
        lines = [FollowUpLine(episode=row.id, query=row.query, answer=row.answer) for row in rows]
        return JSONResponse(FollowUpRuns(runs=lines).to_json())

    return router


def _start(runtime: Runtime, episode_id: str, typed: TypedFollowUp) -> FollowUpReply:
    origin = load_origin(runtime.store, episode_id)
    started = origin.started
    assert started is not None, "load_origin has read a run that has ended"
    pool = runtime.store.pools.latest(started.pool).pool
    ready = runtime.run(
        read_follow_up(origin, typed.text, runtime.open_pool(pool), list_chat_models(pool), typed.question)
    )
    if isinstance(ready, Understanding):
        return FollowUpReply(readings=[reading.question for reading in ready.readings], problem=ready.problem)
    mode = tighten_mode(pool.mode, started.mode.name if started.mode else None).name
    key = runtime.start_episode(
        started.pool, started.orchestrator, ready.query, mode=mode, run_limits=origin.run_limits,
        follow_up=ready.follow_up,
    )  # fmt: skip
    return FollowUpReply(episode=key)
