"""Plans that wait for a person: what would be done, the check of edits, and the decision."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from orchestrator.engine.edits import Edit
from studio.access.permissions import needs
from studio.approvals import list_waiting, read_waiting
from studio.pages.run.edit_requests import MAX_EDITS, RoundEdits, respond_to_edits
from studio.pages.run.what_if_documents import DecidedPlan, WaitingPlan, WhatIfEditor
from studio.pages.run.what_if_routes import build_editor_of, describe_fates
from studio.runtime import Runtime


class PlanDecision(BaseModel):
    """The decision about a plan that waits, of `round` where the sender names the one that was seen."""

    model_config = ConfigDict(extra="forbid")

    round: int | None = None
    verdict: Literal["approve", "reject"]
    note: str = Field(default="", max_length=2000)
    edits: list[Edit] = Field(default_factory=list, max_length=MAX_EDITS)


def list_routes(runtime: Runtime) -> APIRouter:
    """The route that lists every plan that waits."""
    router = APIRouter()

    @router.get("/api/approvals")
    @needs("viewer")
    def waiting() -> JSONResponse:
        rows = list_waiting(runtime.store)
        return JSONResponse({"waiting": [WaitingPlan.model_validate(row).to_json() for row in rows]})

    return router


def approval_routes(runtime: Runtime) -> APIRouter:
    """The routes below /api/episodes."""
    router = APIRouter()

    @router.get("/{episode_id}/approval")
    @needs("viewer")
    def editor(episode_id: str) -> JSONResponse:
        return respond_to_edits(lambda: _build_plan_editor(runtime, episode_id))

    @router.post("/{episode_id}/approval/check")
    @needs("editor")
    def check(episode_id: str, request: RoundEdits) -> JSONResponse:
        return respond_to_edits(lambda: describe_fates(runtime.check_plan_edits(episode_id, request.edits)))

    @router.post("/{episode_id}/approval")
    @needs("editor")
    def decide(episode_id: str, decision: PlanDecision) -> JSONResponse:
        made = (decision.verdict, decision.note, decision.edits, decision.round)
        return respond_to_edits(lambda: DecidedPlan(episode=runtime.decide(episode_id, *made)))

    return router


def _build_plan_editor(runtime: Runtime, episode_id: str) -> WhatIfEditor:
    plan = read_waiting(runtime.store, episode_id)
    document = build_editor_of(plan.episode, runtime.open_pool(plan.pool))
    rounds = [item for item in document.rounds if item.round == plan.held.round]
    return document.model_copy(update={"rounds": rounds})
