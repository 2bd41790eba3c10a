"""The routes of the Train page: its commands, jobs, their live figures, their rollouts, the recipes that ship, and how
far tasks are that are being made.

A job's stream is fed from its folder and row. The event id says how far in metrics.jsonl the viewer is, so that after
a lost connection or a restart of the studio only new rows are sent; a reload gets everything.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, StreamingResponse

from pool_registry.actions import JsonValue
from studio.access.permissions import needs
from studio.frame import sse
from studio.frame.commands import command_routes
from studio.pages.train.commands import TrainCommands, list_preset_documents
from studio.pages.train.curves import MetricsReader, read_whole_lines, round_figure
from studio.pages.train.job_document import LOG_CHARS, build_job_view
from studio.pages.train.rollouts import RolloutBrowser
from studio.pages.train.schema import JobDocument, LogText
from studio.pages.train.tasks.making_documents import MakingFollower
from studio.runtime import Runtime
from trainer.errors import JobNotFound
from trainer.jobs.job_folder import JobFolder
from trainer.jobs.queue import JobRow, JobStore

POLL_S = 0.5
STATE_S = 2.0  # how often the row, memory and advice are looked at


def routes(runtime: Runtime) -> APIRouter:
    """The page's commands, and its documents below /api."""
    commands, browser, store = TrainCommands(runtime), RolloutBrowser(runtime), runtime.jobs
    router = command_routes("train", commands)

    @router.get("/api/jobs")
    @needs("viewer")
    def jobs() -> JSONResponse:
        return JSONResponse({"jobs": [line.to_json() for line in commands.list()]})

    @router.get("/api/jobs/{job}")
    @needs("viewer")
    def job(job: str) -> JSONResponse:
        row = _find_job(store, job)
        reader = MetricsReader(store.folder(job).metrics)
        reader.poll()
        view = build_job_view(row, store, reader, time.time())
        curves = reader.columns.document()
        document = JobDocument(**dict(view), recipe=commands.recipe_text(job), curves=curves)
        return JSONResponse(document.to_json())

    @router.get("/api/jobs/{job}/stream")
    @needs("viewer")
    def stream(job: str, request: Request) -> StreamingResponse:
        _find_job(store, job)
        follower = JobFollower(store, job, request.headers.get("last-event-id", ""))
        return sse.stream(sse.follow(request, follower.poll, follower.is_over, POLL_S))

    @router.get("/api/jobs/{job}/rollouts")
    @needs("viewer")
    def rollouts(job: str, step: int | None = None, first: int = 0) -> JSONResponse:
        _find_job(store, job)
        path = store.folder(job).rollouts
        return JSONResponse(browser.document(job, path, step, max(0, min(first, 100_000))).to_json())

    @router.get("/api/tasks/{pool}/making")
    @needs("viewer")
    def making(pool: str, request: Request) -> StreamingResponse:
        follower = MakingFollower(pool)
        return sse.stream(sse.follow(request, follower.poll, follower.is_over, POLL_S))

    @router.get("/api/recipes")
    @needs("viewer")
    def recipes() -> JSONResponse:
        return JSONResponse({"recipes": [preset.to_json() for preset in list_preset_documents()]})

    return router


class JobFollower:
    """One viewer of one job: sends what was added to its folder and what changed about it.

    `last` is the `Last-Event-ID` that the viewer has. `poll` and `is_over` are for studio/frame/sse.py's `follow`.
    """

    def __init__(self, jobs: JobStore, job: str, last: str) -> None:
        self._jobs, self._job, self._last = jobs, job, last
        self._job_folder: JobFolder = jobs.folder(job)
        self._metrics = MetricsReader(self._job_folder.metrics)
        self._log = LogTail(self._job_folder.log)
        self._began = self._over = False
        self._state = ""
        self._next_state = 0.0

    def poll(self) -> list[str]:
        """The messages since the last poll; first the rows that the viewer lacks, or the whole curves."""
        if not self._began:
            self._began = True
            return [*self._first(), *self.poll()]
        rows, restarted = self._metrics.poll()
        messages = [self._curves()] if restarted else [self._rows(rows)] if rows else []
        self._over = False
        if rows or time.monotonic() >= self._next_state:
            self._next_state = time.monotonic() + STATE_S
            self._jobs.mark_lost()
            row = self._jobs.get(self._job)
            self._over = not (row.active or row.state == "queued" or rows)
            messages += self._state_messages(row)
        log = self._log.poll()
        if log is not None:
            messages.append(sse.message(log.to_json(), "log"))
        return messages

    def is_over(self) -> bool:
        """Whether the job has ended and everything was sent."""
        return self._over

    def _first(self) -> list[str]:
        self._metrics.poll()
        offset = self._metrics.knows(self._last)
        if offset is None:
            return [self._curves()]
        rows = read_whole_lines(self._job_folder.metrics, offset)[0] if offset < self._metrics.offset else []
        return [self._rows(rows)] if rows else []

    def _state_messages(self, row: JobRow) -> list[str]:
        """The job's document, if it is another than the last one sent."""
        state = sse.message(build_job_view(row, self._jobs, self._metrics, time.time()).to_json(), "job")
        if state == self._state:
            return []
        self._state = state
        return [state]

    def _curves(self) -> str:
        return sse.message(self._metrics.columns.document().to_json(), "curves", self._metrics.place)

    def _rows(self, rows: Sequence[Mapping[str, JsonValue]]) -> str:
        return sse.message([clean_row(row) for row in rows], "rows", self._metrics.place)


class LogTail:
    """The end of a log, then what is added to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset: int | None = None

    def poll(self) -> LogText | None:
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            return None
        if size == self._offset:
            return None
        start = max(0, size - LOG_CHARS) if self._offset is None or size < self._offset else self._offset
        whole = self._offset is None or size < self._offset
        with self._path.open("rb") as file:
            file.seek(start)
            text = file.read(size - start)
        self._offset = size
        return LogText(text=text.decode("utf-8", "replace"), whole=whole, cut=whole and start > 0)


def clean_row(row: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """A metric row as JSON can say it."""
    return {
        key: round_figure(value) if isinstance(value, float) and key != "at" else value
        for key, value in row.items()
        if not (isinstance(value, float) and math.isnan(value) and key == "at")
    }


def _find_job(jobs: JobStore, job: str) -> JobRow:
    try:
        return jobs.get(job)
    except JobNotFound as error:
        raise HTTPException(404, str(error)) from error
