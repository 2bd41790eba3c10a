"""The routes of the Compare page: its commands, episodes side by side as one stream, and the figures of evaluations
and training jobs.

A document is `ok` with what the page draws, or it has a `hint` that says what to do.
"""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, StreamingResponse

from studio.access.permissions import needs
from studio.frame import sse
from studio.frame.commands import command_routes
from studio.frame.document import PageDocument
from studio.pages.compare.commands import MOST, CompareCommands
from studio.pages.compare.conditions import build_ablation, build_matrix
from studio.pages.compare.results import NoResults, ResultShelf, Selection
from studio.pages.compare.schema import NoDocument
from studio.pages.compare.stream import ComparisonFollower
from studio.pages.compare.suite import build_suite, build_task_page
from studio.pages.compare.training_drift import DriftReader
from studio.pages.run.routes import find_row
from studio.pages.run.stream import POLL_S
from studio.runtime import Runtime
from trainer.errors import JobNotFound


def routes(runtime: Runtime) -> APIRouter:
    """The page's commands, and its documents below /api/compare."""
    router = APIRouter(prefix="/api/compare")
    shelf = ResultShelf(runtime.jobs)
    drift = DriftReader(runtime, runtime.jobs, shelf)

    @router.get("/stream")
    @needs("viewer")
    def stream(request: Request) -> StreamingResponse:
        episodes = request.query_params.getlist("e")[:MOST]
        if not episodes:
            raise HTTPException(404, "name the episodes to compare, as e=ID")
        rows = [find_row(runtime, episode) for episode in episodes]
        reference = parse_number(request.query_params.get("reference"), len(rows) - 1)
        follower = ComparisonFollower(runtime.store, rows, reference)
        return sse.stream(sse.follow(request, follower.poll, follower.is_over, POLL_S))

    @router.get("/jobs")
    @needs("viewer")
    def jobs() -> JSONResponse:
        return JSONResponse({"ok": True, "jobs": [line.to_json() for line in shelf.jobs()]})

    @router.get("/suite")
    @needs("viewer")
    def suite(request: Request) -> JSONResponse:
        return respond(lambda: build_suite(shelf, parse_selection(request), _text(request, "reference")))

    @router.get("/tasks")
    @needs("viewer")
    def tasks(request: Request) -> JSONResponse:
        reference, orchestrator, which = (_text(request, name) for name in ("reference", "orchestrator", "which"))
        first = parse_number(request.query_params.get("first"), 10_000_000)
        return respond(lambda: build_task_page(shelf, parse_selection(request), reference, orchestrator, which, first))

    @router.get("/matrix")
    @needs("viewer")
    def matrix(request: Request) -> JSONResponse:
        return respond(lambda: build_matrix(shelf, parse_selection(request)))

    @router.get("/ablation")
    @needs("viewer")
    def ablation(request: Request) -> JSONResponse:
        return respond(lambda: build_ablation(shelf, parse_selection(request), _text(request, "orchestrator")))

    @router.get("/training")
    @needs("viewer")
    def training(job: str) -> JSONResponse:
        return respond(lambda: drift.document(job))

    outer = command_routes("compare", CompareCommands(runtime))
    outer.include_router(router)
    return outer


def respond(make: Callable[[], PageDocument]) -> JSONResponse:
    """The document that `make` returns, or a hint why there is none yet: an ordinary state of the page."""
    try:
        return JSONResponse(make().to_json())
    except (NoResults, JobNotFound) as reason:
        return JSONResponse(NoDocument(hint=str(reason)).to_json())


def parse_selection(request: Request) -> Selection:
    """The rows that the query string selects."""
    query = request.query_params
    level = query.get("level") or ""
    return Selection(
        jobs=tuple(query.getlist("job")),
        orchestrators=tuple(query.getlist("only")),
        condition=query.get("condition") or "",
        family=query.get("family") or "",
        level=int(level) if level.isascii() and level.isdigit() else None,
    )


def parse_number(text: str | None, most: int) -> int:
    """A number of the query string between 0 and `most`; 0 for anything else."""
    return min(int(text), most) if text and text.isascii() and text.isdigit() else 0


def _text(request: Request, name: str) -> str:
    return request.query_params.get(name) or ""
