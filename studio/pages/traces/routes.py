"""The route of the Traces page: one page of past runs, filtered by the database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from orchestrator.engine.events import Outcome
from orchestrator.traces.store import EpisodeRow, TraceFilter
from studio.runtime import Runtime

PAGE_SIZE = 50
STATES = ("running", "correct", "wrong", "interrupted", *get_args(Outcome))


def routes(runtime: Runtime) -> APIRouter:
    """The routes, all below /api."""
    router = APIRouter(prefix="/api")

    @router.get("/traces")
    def traces(request: Request) -> JSONResponse:
        return JSONResponse(search_traces(runtime, request.query_params))

    return router


def search_traces(runtime: Runtime, query: Mapping[str, str]) -> dict[str, Any]:
    """One page of runs, newest first, and what the filters can be set to."""
    traces = runtime.store.traces
    filters = TraceFilter(
        pool=query.get("pool", ""),
        orchestrator=query.get("orchestrator", ""),
        state=query.get("state", ""),
        text=query.get("text", "")[:500],
        user=query.get("user", ""),
        nested=query.get("nested") == "1",
        limit=PAGE_SIZE + 1,
        offset=_offset(query.get("offset")),
    )
    rows = traces.search(filters)
    starred = set(traces.list_starred())
    return {
        "rows": [{**_document(row), "starred": row.id in starred} for row in rows[:PAGE_SIZE]],
        "more": len(rows) > PAGE_SIZE,
        "pools": traces.distinct("pool"),
        "orchestrators": traces.distinct("orchestrator"),
        "states": STATES,
        "users": [name for name in traces.distinct("user_name") if name],
        "problem": traces.problem,
    }


def _document(row: EpisodeRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "started_at": row.started_at,
        "query": row.query[:300],
        "pool": row.pool,
        "user": row.user_name,
        "orchestrator": row.orchestrator,
        "state": row.state,
        "correct": row.correct,
        "answer": (row.answer or "")[:120],
        "depth": row.depth,
        "steps": row.steps,
        "failed_steps": row.failed_steps,
        "wall_s": row.wall_s,
        "tokens": row.tokens,
        "cost": row.cost,
    }


def _offset(text: str | None) -> int:
    return min(int(text), 10_000_000) if text and text.isascii() and text.isdigit() else 0
