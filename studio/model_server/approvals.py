"""Plans of served runs that wait for a person: the request for approval, and the routes that decide about it.

A request whose plan waits is answered with an error that says so and names the plan: no client takes it for an answer.
Whoever sent the request may show, edit, approve or reject the plan; so may any person in the studio.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal, Protocol

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.engine.edits import Edit
from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Decision
from orchestrator.errors import EpisodeNotFound, InvalidEdits, OrchestratorError
from orchestrator.traces.store import Store
from pool_registry.actions import Usage, as_text
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.errors import PoolError
from pool_registry.kinds import field_problems
from studio.access.permissions import needs
from studio.approvals import (
    NotWaiting,
    WaitingPlan,
    claim_plan,
    describe_plan,
    list_waiting,
    make_decision,
    read_waiting,
)
from studio.episode_documents.audit import list_audit
from studio.episodes import prepare_resumed
from studio.frame.sse import KEEP_ALIVE_S
from studio.model_server.client_tools import write_tool_call
from studio.model_server.errors import ApiError, ApprovalRequired

if TYPE_CHECKING:
    from studio.model_server.served_episode import ServedEpisode
    from studio.model_server.setup import EpisodeSetup

CALLS_TOOLS = "tool_calls"
MAX_EDITS = 1000


class ServedDecision(BaseModel):
    """The decision about a plan that waits, of `round` where the client names the one that it has seen."""

    model_config = ConfigDict(extra="forbid")

    round: int | None = None
    decision: Literal["approve", "edit", "reject"]
    note: str = Field(default="", max_length=2000)
    edits: list[Edit] = Field(default_factory=list, max_length=MAX_EDITS)


class HeldRuns(Protocol):
    """The runs of a server whose plan waits, with what their requests came with."""

    def find_held(self, episode_id: str, /) -> EpisodeSetup | None: ...
    def find_pool(self, pool_hash: str, /) -> LivePool | None: ...
    def resume_held(self, plan: WaitingPlan, decision: Decision, user: str, /) -> ServedEpisode: ...


class Approvals:
    """Decides about plans that wait, on the event loop of a served model."""

    def __init__(self, store: Store, held: HeldRuns) -> None:
        self._store, self._held = store, held
        self._running: set[asyncio.Task[Episode]] = set()

    def list(self, user: str) -> list[dict[str, Any]]:
        """The plans of this user that wait, newest first."""
        rows = [row for row in list_waiting(self._store) if row.user_name == user]
        return [describe_plan(read_waiting(self._store, row.id)) for row in rows]

    def show(self, episode_id: str, user: str) -> dict[str, Any]:
        """How far a run of this user is: its plan while that waits, its answer once there is one. Raises ApiError."""
        self._check_owner(episode_id, user)
        try:
            return describe_plan(read_waiting(self._store, episode_id))
        except NotWaiting:
            return self._describe_run(self._store.traces.episode(episode_id))
        except (PoolError, OrchestratorError) as error:
            raise ApiError(409, str(error), "cannot_decide") from error

    def count_usage(self, episode_id: str) -> tuple[Usage, int]:
        """What a run has used so far, and how many steps it has."""
        self._store.traces.flush()
        episode = self._store.traces.episode(episode_id)
        return episode.usage, len(episode.steps)

    async def decide(self, episode_id: str, user: str, decision: ServedDecision) -> dict[str, Any]:
        """Decide about a plan and return what came of its run: an answer, why there is none, or the next plan that
        waits. The run goes on when the client disconnects. Raises ApiError."""
        self._check_owner(episode_id, user)
        if (decision.decision == "edit") != bool(decision.edits):
            raise ApiError(400, "`edit` comes with `edits`, and `edits` with `edit`", "invalid_value", "edits")
        try:
            plan = await asyncio.to_thread(read_waiting, self._store, episode_id, decision.round)
            setup = self._held.find_held(episode_id)
            if setup is not None:
                made = _make_decision(plan, setup.pool, user, decision)
                return await self._describe_served(self._held.resume_held(plan, made, user))
            task = asyncio.create_task(await self._start(plan, user, decision))
        except InvalidEdits as error:
            raise ApiError(422, str(error), "invalid_edits", "edits") from error
        except (PoolError, OrchestratorError) as error:
            raise ApiError(409, str(error), "cannot_decide") from error
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        episode = await asyncio.shield(task)
        await asyncio.to_thread(self._store.traces.flush)
        return self.show(episode.id, user) if episode.ended is None else self._describe_run(episode)

    async def _describe_served(self, served: ServedEpisode) -> dict[str, Any]:
        """What came of a run that went on: its end, the next plan that waits, or calls of the client's tools."""
        async for event in served.events(KEEP_ALIVE_S):
            if event is not None:
                served.progress.describe(event)  # a later request of the run may stream
        if served.waits:
            calls = [write_tool_call(call) for call in (await served.answer()).calls]
            return {"id": served.id, "status": CALLS_TOOLS, "answer": None, "reason": None, "tool_calls": calls}
        try:
            episode, _ = await served.result()
        except ApprovalRequired as required:
            return required.plan
        return self._describe_run(episode)

    async def _start(self, plan: WaitingPlan, user: str, decision: ServedDecision) -> Any:
        open_pool = self._held.find_pool(plan.pool.hash)
        pool = open_pool or open_live_pool(plan.pool)
        made = _make_decision(plan, pool, user, decision)
        run = prepare_resumed(self._store, pool, plan.episode, made)
        claim_plan(self._store, plan)

        async def finish() -> Episode:
            try:
                return await run.run()
            finally:
                if open_pool is None:
                    await pool.close()

        return finish()

    def _check_owner(self, episode_id: str, user: str) -> None:
        try:
            row = self._store.traces.row(episode_id)
        except EpisodeNotFound:
            row = None
        if row is None or row.user_name != user:
            raise ApiError(404, f"there is no run {episode_id[:80]!r} of yours", "not_found")

    @staticmethod
    def _describe_run(episode: Episode) -> dict[str, Any]:
        ended = episode.ended
        return {
            "id": episode.id,
            "status": ended.outcome if ended else "in_progress",
            "answer": None if episode.final_answer is None else as_text(episode.final_answer),
            "reason": ended.reason if ended else None,
            "audit": [line.to_json() for line in list_audit(episode)],
        }


def _make_decision(plan: WaitingPlan, pool: LivePool, user: str, decision: ServedDecision) -> Decision:
    verdict: Literal["approve", "reject"] = "reject" if decision.decision == "reject" else "approve"
    return make_decision(plan, pool, verdict, user or "a client", decision.note, decision.edits)


def approval_routes() -> APIRouter:
    """The routes below /v1/approvals; `app.state.service` has the approvals."""
    router = APIRouter(prefix="/v1/approvals")

    @router.get("")
    @needs("viewer")
    def waiting(request: Request) -> JSONResponse:
        return JSONResponse({"object": "list", "data": _find_approvals(request).list(request.state.user)})

    @router.get("/{episode_id}")
    @needs("viewer")
    def show(episode_id: str, request: Request) -> JSONResponse:
        return JSONResponse(_find_approvals(request).show(episode_id, request.state.user))

    @router.post("/{episode_id}")
    @needs("editor")
    async def decide(episode_id: str, request: Request) -> JSONResponse:
        try:
            decision = ServedDecision.model_validate_json(await request.body())
        except ValidationError as error:
            where, what = field_problems(error)[0]
            raise ApiError(400, f"{where}: {what}", "invalid_value", where) from error
        return JSONResponse(await _find_approvals(request).decide(episode_id, request.state.user, decision))

    return router


def _find_approvals(request: Request) -> Approvals:
    approvals: Approvals = request.app.state.service.approvals
    return approvals
