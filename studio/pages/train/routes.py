"""The routes of the Train page: jobs, their live figures, their rollouts, the recipes that ship.

A job's stream is fed from its folder and row. The event id says how far in metrics.jsonl the viewer is, so
that after a lost connection or a restart of the studio only what is new comes; a reload gets everything.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, StreamingResponse

from pool_registry.actions import JsonValue
from studio.pages.train.commands import TrainDesk, preset_documents
from studio.pages.train.curves import MetricsReader, rounded, whole_lines
from studio.pages.train.job_document import LOG_CHARS, job_view
from studio.pages.train.rollouts import RolloutBrowser
from studio.runtime import Runtime
from trainer.errors import JobNotFound
from trainer.jobs.job_folder import JobFolder
from trainer.jobs.queue import JobRow, JobStore

POLL_S = 0.5
STATE_S = 2.0  # how often the row, memory and advice are looked at
KEEP_ALIVE_S = 15.0


def train_routes(runtime: Runtime) -> APIRouter:
    """The routes, all below /api."""
    router = APIRouter(prefix="/api")
    desk = TrainDesk(runtime)
    browser = RolloutBrowser(runtime)

    @router.get("/jobs")
    def jobs() -> JSONResponse:
        return JSONResponse({"jobs": desk.list()})

    @router.get("/jobs/{job}")
    def job(job: str) -> JSONResponse:
        row = _row(desk.jobs, job)
        reader = MetricsReader(desk.jobs.folder(job).metrics)
        reader.poll()
        view = job_view(row, desk.jobs, reader, time.time())
        return JSONResponse({**view, "recipe": desk.recipe_text(job), "curves": reader.columns.document()})

    @router.get("/jobs/{job}/stream")
    def stream(job: str, request: Request) -> StreamingResponse:
        _row(desk.jobs, job)
        follower = JobFollower(desk, job, request.headers.get("last-event-id", ""))
        return StreamingResponse(
            follower.messages(request),
            media_type="text/event-stream",
            headers={"cache-control": "no-store", "x-accel-buffering": "no"},
        )

    @router.get("/jobs/{job}/rollouts")
    def rollouts(job: str, step: int | None = None, first: int = 0) -> JSONResponse:
        _row(desk.jobs, job)
        path = desk.jobs.folder(job).rollouts
        return JSONResponse(browser.answer(job, path, step, max(0, min(first, 100_000))))

    @router.get("/recipes")
    def recipes() -> JSONResponse:
        return JSONResponse({"recipes": preset_documents()})

    return router


class JobFollower:
    """One viewer of one job: says what was added to its folder and what changed about it."""

    def __init__(self, desk: TrainDesk, job: str, last: str) -> None:
        self._desk, self._job, self._last = desk, job, last
        self._job_folder: JobFolder = desk.jobs.folder(job)
        self._metrics = MetricsReader(self._job_folder.metrics)
        self._log = LogTail(self._job_folder.log)
        self._state = ""
        self._next_state = 0.0

    async def messages(self, request: Request) -> AsyncIterator[str]:
        """Server-sent events until the job has ended or the viewer has gone."""
        quiet_s = 0.0
        for message in await asyncio.to_thread(self._first):
            yield message
        while not await request.is_disconnected():
            told, over = await asyncio.to_thread(self._poll)
            for message in told:
                yield message
            if over:
                yield "event: end\ndata: {}\n\n"
                return
            quiet_s = 0.0 if told else quiet_s + POLL_S
            if quiet_s >= KEEP_ALIVE_S:
                quiet_s = 0.0
                yield ": keep-alive\n\n"
            await asyncio.sleep(POLL_S)

    def _first(self) -> list[str]:
        """Where the viewer is: the rows it lacks, or the whole curves."""
        self._metrics.poll()
        known = self._metrics.knows(self._last)
        if known is None:
            return [self._curves()]
        rows = whole_lines(self._job_folder.metrics, known)[0] if known < self._metrics.offset else []
        return [self._rows(rows)] if rows else []

    def _poll(self) -> tuple[list[str], bool]:
        rows, renewed = self._metrics.poll()
        told = [self._curves()] if renewed else [self._rows(rows)] if rows else []
        over = False
        if rows or time.monotonic() >= self._next_state:
            self._next_state = time.monotonic() + STATE_S
            row = self._row()
            over = not row.active and row.state != "queued"
            told += self._changed(row)
        log = self._log.poll()
        if log is not None:
            told.append(message("log", log))
        return told, over and not rows

    def _row(self) -> JobRow:
        self._desk.jobs.mark_lost()
        return self._desk.jobs.get(self._job)

    def _changed(self, row: JobRow) -> list[str]:
        state = message("job", job_view(row, self._desk.jobs, self._metrics, time.time()))
        if state == self._state:
            return []
        self._state = state
        return [state]

    def _curves(self) -> str:
        return f"id: {self._metrics.place}\n{message('curves', self._metrics.columns.document())}"

    def _rows(self, rows: Sequence[Mapping[str, JsonValue]]) -> str:
        return f"id: {self._metrics.place}\n{message('rows', [plain(row) for row in rows])}"


class LogTail:
    """The end of a log, then what is added to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset: int | None = None

    def poll(self) -> dict[str, Any] | None:
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
        return {"text": text.decode("utf-8", "replace"), "whole": whole, "cut": whole and start > 0}


def plain(row: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """A metric row as JSON can say it."""
    return {
        key: rounded(value) if isinstance(value, float) and key != "at" else value
        for key, value in row.items()
        if not (isinstance(value, float) and math.isnan(value) and key == "at")
    }


def message(event: str, document: Any) -> str:
    """One server-sent event."""
    return f"event: {event}\ndata: {json.dumps(document, ensure_ascii=False)}\n\n"


def _row(jobs: JobStore, job: str) -> JobRow:
    try:
        return jobs.get(job)
    except JobNotFound as error:
        raise HTTPException(404, str(error)) from error
