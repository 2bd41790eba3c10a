"""The route of the Traces page: one page of past runs, filtered by the database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import Field

from orchestrator.engine.events import Outcome
from orchestrator.policies.labels import label_orchestrator
from orchestrator.traces.step_counts import StepCounts
from orchestrator.traces.store import EpisodeRow, TraceFilter
from studio.access.permissions import needs
from studio.frame.commands import command_routes
from studio.frame.document import PageDocument
from studio.pages.traces.commands import TraceCommands
from studio.runtime import Runtime

PAGE_SIZE = 50
NEWEST = "-started_at"
STATES = ("running", "waiting", "correct", "wrong", "interrupted", *get_args(Outcome))


class TraceLine(PageDocument):
    """One run of the list; `state` is running, interrupted or the outcome, `side` that of a deployment."""

    id: str
    started_at: str
    query: str
    pool: str
    user: str
    orchestrator: str
    orchestrator_label: str
    state: str
    correct: bool | None
    answer: str
    depth: int
    counts: StepCounts
    wall_s: float
    tokens: int
    cost: float
    source: str
    side: str
    starred: bool


class TracePage(PageDocument):
    """One page of runs, newest first, and what the filters can be set to; `problem` of the recording, if any."""

    rows: list[TraceLine]
    more: bool
    pools: list[str]
    orchestrators: dict[str, str] = Field(description="Labels by name.")
    states: list[str]
    users: list[str]
    sources: list[str]
    problem: str | None


def routes(runtime: Runtime) -> APIRouter:
    """Make the routes, all below /api."""
    router = APIRouter()
    router.include_router(command_routes("traces", TraceCommands(runtime)))

    @router.get("/api/traces")
    @needs("viewer")
    def traces(request: Request) -> JSONResponse:
        return JSONResponse(search_traces(runtime, request.query_params).to_json())

    return router


def search_traces(runtime: Runtime, query: Mapping[str, str]) -> TracePage:
    """One page of runs, the newest first unless `sort` names another order, and what the filters can be set to."""
    traces = runtime.store.traces
    sort = query.get("sort") or NEWEST
    filters = TraceFilter(
        pool=query.get("pool", ""),
        orchestrator=query.get("orchestrator", ""),
        state=query.get("state", ""),
        text=query.get("text", "")[:500],
        user=query.get("user", ""),
        source=query.get("source", ""),
        sort=sort.removeprefix("-"),
        ascending=not sort.startswith("-"),
        nested=query.get("nested") == "1",
        limit=PAGE_SIZE + 1,
        offset=_offset(query.get("offset")),
    )
    rows = traces.search(filters)
    starred = set(traces.list_starred())
    return TracePage(
        rows=[_build_line(row, row.id in starred) for row in rows[:PAGE_SIZE]],
        more=len(rows) > PAGE_SIZE,
        pools=traces.list_pools(),
        orchestrators={name: label_orchestrator(name) for name in traces.distinct("orchestrator")},
        states=list(STATES),
        users=[name for name in traces.distinct("user_name") if name],
        sources=[name for name in traces.distinct("source") if name],
        problem=traces.problem,
    )


def _build_line(row: EpisodeRow, starred: bool) -> TraceLine:
    return TraceLine(
        id=row.id,
        started_at=row.started_at,
        query=row.query[:300],
        pool=row.pool,
        user=row.user_name,
        orchestrator=row.orchestrator,
        orchestrator_label=label_orchestrator(row.orchestrator),
        state=row.state,
        correct=row.correct,
        answer=(row.answer or "")[:120],
        depth=row.depth,
        counts=row.counts,
        wall_s=row.wall_s,
        tokens=row.tokens,
        cost=row.cost,
        source=row.source,
        side=row.side,
        starred=starred,
    )


def _offset(text: str | None) -> int:
    return min(int(text), 10_000_000) if text and text.isascii() and text.isdigit() else 0
