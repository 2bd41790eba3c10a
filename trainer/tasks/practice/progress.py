"""How far the making of tasks is, for whoever watches it, and the wish of a person that it stops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pool_registry.text import count_of

CALLING, COMPOSING, SOLVING, ASKING = "Calling the workers", "Composing tasks", "An agent tries the tasks", "Questions"


@dataclass(frozen=True, slots=True)
class Progress:
    """`stage` says in words what is done now. The counts are of questions for agents: written, answered by all who are
    asked, settled (the answers agree) and kept, of `count` that are to be kept. `cost` and its cap are in US dollars.
    """

    stage: str = CALLING
    written: int = 0
    answered: int = 0
    settled: int = 0
    kept: int = 0
    count: int = 0
    cost: float = 0.0
    max_cost: float | None = None

    def describe(self) -> str:
        """The progress in one line."""
        if not self.count:
            return f"{self.stage} …"
        cap = "" if self.max_cost is None else f" of ${self.max_cost:,.2f}"
        questions = f"{count_of(self.written, 'question')} written, {self.answered:,} answered, {self.settled:,} agreed"
        return f"{self.kept:,} of {self.count:,} kept: {questions}, ${self.cost:,.4f}{cap} spent"


class Watch:
    """Passes progress on to `report`. `stop` may be called from any thread: no new call is made, those in flight end.

    `earlier_cost`: US dollars that were spent before what goes on now was stopped; progress counts them."""

    def __init__(self, report: Callable[[Progress], None] = lambda _progress: None, earlier_cost: float = 0.0) -> None:
        self.report = report
        self.earlier_cost = earlier_cost
        self.progress = Progress(cost=earlier_cost)
        self.is_stopped = False

    def stop(self) -> None:
        """Have nothing more asked."""
        self.is_stopped = True

    def update(self, **changes: Any) -> None:
        """Change fields of the progress and report it; `cost` is of what goes on now."""
        if "cost" in changes:
            changes["cost"] += self.earlier_cost
        self.progress = replace(self.progress, **changes)
        self.report(self.progress)
