"""The routes of the Compare page: episodes side by side as one stream, and what evaluations and training say.

Every answer is `ok` with what the page draws, or not, with a `hint` that says what to do. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, StreamingResponse

from orchestrator.errors import EpisodeNotFound
from orchestrator.traces.store import EpisodeRow
from studio.pages.compare.commands import MOST
from studio.pages.compare.conditions import ablation_document, matrix_document
from studio.pages.compare.results import NoResults, ResultShelf, Selection
from studio.pages.compare.stream import ComparisonFollower
from studio.pages.compare.suite import suite_document, task_document
from studio.pages.compare.training_drift import DriftReader
from studio.runtime import Runtime
from trainer.errors import JobNotFound


def compare_routes(runtime: Runtime) -> APIRouter:
    """The routes, all below /api/compare."""
    router = APIRouter(prefix="/api/compare")
    shelf = ResultShelf(runtime.jobs)
    drift = DriftReader(runtime, runtime.jobs, shelf)

    @router.get("/stream")
    def stream(request: Request) -> StreamingResponse:
        asked = request.query_params.getlist("e")[:MOST]
        if not asked:
            raise HTTPException(404, "name the episodes to compare, as e=ID")
        rows = [_row(runtime, episode) for episode in asked]
        reference = number(request.query_params.get("reference"), len(rows) - 1)
        return StreamingResponse(
            ComparisonFollower(runtime, rows, reference).messages(request),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    @router.get("/jobs")
    def measured() -> JSONResponse:
        return JSONResponse({"ok": True, "jobs": shelf.jobs()})

    @router.get("/suite")
    def suite(request: Request) -> JSONResponse:
        return answer(lambda: suite_document(shelf, selection(request), _text(request, "reference")))

    @router.get("/tasks")
    def tasks(request: Request) -> JSONResponse:
        reference, orchestrator, which = (_text(request, name) for name in ("reference", "orchestrator", "which"))
        first = number(request.query_params.get("first"), 10_000_000)
        return answer(lambda: task_document(shelf, selection(request), reference, orchestrator, which, first))

    @router.get("/matrix")
    def matrix(request: Request) -> JSONResponse:
        return answer(lambda: matrix_document(shelf, selection(request)))

    @router.get("/ablation")
    def ablation(request: Request) -> JSONResponse:
        return answer(lambda: ablation_document(shelf, selection(request), _text(request, "orchestrator")))

    @router.get("/training")
    def training(job: str) -> JSONResponse:
        return answer(lambda: drift.document(job))

    return router


def answer(make: Callable[[], dict[str, Any]]) -> JSONResponse:
    """What `make` gives, or why there is nothing and what to do: that is an ordinary state of the page."""
    try:
        return JSONResponse(make())
    except (NoResults, JobNotFound) as reason:
        return JSONResponse({"ok": False, "hint": str(reason)})


def selection(request: Request) -> Selection:
    """Which rows the address asks for."""
    asked = request.query_params
    level = asked.get("level") or ""
    return Selection(
        jobs=tuple(asked.getlist("job")),
        orchestrators=tuple(asked.getlist("only")),
        condition=asked.get("condition") or "",
        family=asked.get("family") or "",
        level=int(level) if level.isascii() and level.isdigit() else None,
    )


def number(text: str | None, most: int) -> int:
    """A number of the address between 0 and `most`; 0 for anything else."""
    return min(int(text), most) if text and text.isascii() and text.isdigit() else 0


def _text(request: Request, name: str) -> str:
    return request.query_params.get(name) or ""


def _row(runtime: Runtime, episode: str) -> EpisodeRow:
    try:
        return runtime.store.traces.row(episode)
    except EpisodeNotFound as error:
        raise HTTPException(404, str(error)) from error
