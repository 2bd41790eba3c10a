"""Groups result rows by task, the unit of every interval and of every paired difference.

Grouping is the slow part of a comparison, so it is done once for a set of rows and the groups are passed around.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from trainer.results.rows import ResultRow, TaskKey
from trainer.results.statistics import Estimate, bootstrap_mean


class PairKey(NamedTuple):
    """The key by which tasks are paired. `condition` is "" where conditions are compared with each other."""

    task: TaskKey
    condition: str
    query: str


@dataclass(frozen=True, slots=True)
class Samples:
    """The rows of one task, how many of them were right, and the share of those: the task's score in [0, 1]."""

    rows: tuple[ResultRow, ...]
    right: int
    score: float


SamplesByTask = Mapping[PairKey, Samples]


def group_by_task(rows: Iterable[ResultRow], *, across_conditions: bool = False) -> SamplesByTask:
    """Group rows by task, in the order of the tasks.

    Where rows are of several conditions a task counts once in each; with `across_conditions` it counts once.
    """
    groups: dict[PairKey, list[ResultRow]] = {}
    for row in rows:
        key = PairKey(row.task_key, "" if across_conditions else row.condition, row.query)
        groups.setdefault(key, []).append(row)
    return {key: _count_right(groups[key]) for key in sorted(groups)}


def estimate_mean(tasks: SamplesByTask) -> Estimate:
    """Estimate mean@k alone, in a fraction of the time of all figures: for tables of many cells."""
    return bootstrap_mean([samples.score for samples in tasks.values()])


def _count_right(rows: list[ResultRow]) -> Samples:
    right = sum([row.correct for row in rows])
    return Samples(tuple(rows), right, right / len(rows))
