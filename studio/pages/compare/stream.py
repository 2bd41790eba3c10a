"""Several episodes as one stream: the Compare page draws them side by side while they grow.

One stream for all, because a browser opens only a few connections to a host. Whenever a graph gets another shape
all are laid out anew as one, and the diff against the reference is told; until then only states and times change.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi import Request

from orchestrator.errors import DamagedTrace
from orchestrator.graphs.alignment import align
from orchestrator.traces.store import EpisodeRow
from studio.episode_documents.view import episode_view, view_patch
from studio.pages.compare.graph_diff import diff_document
from studio.pages.run.routes import GRADE_WAIT_S, KEEP_ALIVE_S, LOOK_FOR_DEAD_S, POLL_S, Follower
from studio.pages.train.routes import message
from studio.runtime import Runtime


class Side(Follower):
    """One of the episodes."""

    def __init__(self, runtime: Runtime, row: EpisodeRow) -> None:
        super().__init__(runtime, row)
        self.ended_s = 0.0

    @property
    def episode(self) -> Any:
        return self._episode

    @property
    def pool(self) -> Any:
        return self._pool

    def poll(self) -> str:
        """Take in what is new: "" for nothing, "patch" for states and times, "view" for another shape."""
        events = self._poll()
        if not (events or self._shape is None or self._was_interrupted()):
            return ""
        return "view" if self._reshaped(events) else "patch"

    def look(self) -> None:
        """Ask whether the process that runs it still lives."""
        if not self._is_over():
            self._look_for_dead()

    def over(self, passed_s: float) -> bool:
        """Whether nothing will come any more; a verdict follows the end at once, if one follows at all."""
        if not self._is_over():
            return False
        self.ended_s += passed_s
        return bool(self._episode.graded) or not self._expects_verdict() or self.ended_s > GRADE_WAIT_S

    def view(self, aligned: Any) -> dict[str, Any]:
        return episode_view(self._episode, self._row, self._pool, self._version, aligned)

    def patch(self) -> dict[str, Any]:
        """What changed without the shape; places stay as they are."""
        change = view_patch(self._episode, self._row, self._pool, self._version)
        return change | {"nodes": [{k: v for k, v in node.items() if k not in ("x", "y")} for node in change["nodes"]]}


class ComparisonFollower:
    """One viewer of several episodes; `reference` is the place of the one that the others are compared with."""

    def __init__(self, runtime: Runtime, rows: Sequence[EpisodeRow], reference: int) -> None:
        self._sides = [Side(runtime, row) for row in rows]
        self._reference = reference

    async def messages(self, request: Request) -> AsyncIterator[str]:
        """Server-sent events until every episode has ended or the viewer has gone."""
        quiet_s = 0.0
        while not await request.is_disconnected():
            try:
                told = await asyncio.to_thread(self._poll)
            except DamagedTrace as error:
                yield message("problem", str(error))
                return
            for each in told:
                yield each
            over = [side.over(POLL_S) for side in self._sides]
            if all(over):
                yield message("end", {})
                return
            quiet_s = POLL_S if told else quiet_s + POLL_S
            if quiet_s % LOOK_FOR_DEAD_S < POLL_S:
                await asyncio.to_thread(self._look)
            if quiet_s >= KEEP_ALIVE_S:
                quiet_s = 0.0
                yield ": keep-alive\n\n"
            await asyncio.sleep(POLL_S)

    def _poll(self) -> list[str]:
        news = [side.poll() for side in self._sides]
        if "view" in news:
            return [message("views", self.document())]
        changed = [(place, side) for place, side in enumerate(self._sides) if news[place]]
        return [message("patch", {"place": place, **side.patch()}) for place, side in changed]

    def _look(self) -> None:
        for side in self._sides:
            side.look()

    def document(self) -> dict[str, Any]:
        """Every graph in one system of coordinates, and what each has other than the reference."""
        episodes = [side.episode for side in self._sides]
        aligned = align(episodes, [side.pool for side in self._sides], self._reference)
        reference = (episodes[self._reference], aligned[self._reference])
        return {
            "reference": self._reference,
            "views": [side.view(each) for side, each in zip(self._sides, aligned, strict=True)],
            "slots": [{str(k): slot for k, slot in each.slots.items()} for each in aligned],
            "diffs": [
                None if place == self._reference else diff_document(reference, (episodes[place], each))
                for place, each in enumerate(aligned)
            ],
        }
