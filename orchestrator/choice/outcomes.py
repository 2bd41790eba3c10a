"""What is known of a worker: outcomes that a run has yielded, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a worker was needed for in an episode that it alone decided, and whether that was right."""

    need: str
    right: bool


class Record(Protocol):
    """The track record of a pool's workers."""

    def outcomes(self, worker: str) -> Sequence[Outcome]:
        """Everything known of a worker, oldest first."""

    def cost(self, worker: str) -> float:
        """Mean US dollars of a task; 0 without records."""

    def wall_s(self, worker: str) -> float:
        """Mean seconds of a task; 0 without records."""
