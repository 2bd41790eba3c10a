"""What the pages show of tasks that are being made, or were: how far it is, what it has cost, what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from studio.frame import sse
from studio.frame.document import PageDocument
from trainer.tasks.practice.making import Making
from trainer.tasks.practice.stored import find_making


class MakingDocument(PageDocument):
    """`stage` says what is done now. The counts are of questions for agents: written, answered by all who are asked,
    agreed on (`settled`) and kept, of `count` that are to be kept; 0 where none are made. Costs in US dollars, times in
    seconds since 1970. `outcome` says what came of it, "" while it runs."""

    pool: str
    state: Literal["running", "stopped", "failed", "done", "interrupted"]
    stage: str
    written: int
    answered: int
    settled: int
    kept: int
    count: int
    cost: float
    max_cost: float | None
    started: float
    updated: float
    outcome: str
    can_go_on: bool


def build_making_document(pool: str) -> MakingDocument | None:
    """How the making of a pool's tasks goes, or went the last time; None where there was none."""
    making = find_making(pool)
    return None if making is None else _describe(pool, making)


def _describe(pool: str, making: Making) -> MakingDocument:
    progress = making.progress
    return MakingDocument(
        pool=pool,
        state=making.state,
        stage=progress.stage,
        written=progress.written,
        answered=progress.answered,
        settled=progress.settled,
        kept=progress.kept,
        count=progress.count,
        cost=progress.cost,
        max_cost=progress.max_cost,
        started=making.started,
        updated=making.updated,
        outcome=making.outcome,
        can_go_on=making.can_go_on,
    )


class MakingFollower:
    """One viewer of tasks that are being made. `poll` and `is_over` are for studio/frame/sse.py's `follow`."""

    def __init__(self, pool: str) -> None:
        self._pool = pool
        self._last: MakingDocument | None = None

    def poll(self) -> Sequence[str]:
        """The document, where it is another than the last one sent."""
        document = build_making_document(self._pool)
        if document is None or document == self._last:
            return []
        self._last = document
        return [sse.message(document.to_json(), "making")]

    def is_over(self) -> bool:
        """Whether nothing is being made."""
        return self._last is None or self._last.state != "running"
