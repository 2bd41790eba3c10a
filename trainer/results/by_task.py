"""Result rows by task: what every figure with an interval and every paired difference starts from.

Grouping is the dear part of comparing, so it is done once for a set of rows and what it finds is handed around.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from trainer.results.rows import ResultRow, TaskKey
from trainer.results.statistics import Estimate, bootstrap_mean


class PairKey(NamedTuple):
    """What is paired: a task, in a condition unless conditions are what is compared."""

    task: TaskKey
    condition: str
    query: str


@dataclass(frozen=True, slots=True)
class Samples:
    """The rows of one task, how many of them were right, and their share: the task's score."""

    rows: tuple[ResultRow, ...]
    right: int
    score: float


SamplesByTask = Mapping[PairKey, Samples]


def group_by_task(rows: Iterable[ResultRow], *, across_conditions: bool = False) -> SamplesByTask:
    """The rows apart by task, in the order of the tasks; of several conditions a task counts once in each, with
    `across_conditions` once in all."""
    found: dict[PairKey, list[ResultRow]] = {}
    for row in rows:
        unit = PairKey(row.task_key, "" if across_conditions else row.condition, row.query)
        found.setdefault(unit, []).append(row)
    return {unit: _count_right(found[unit]) for unit in sorted(found)}


def estimate_mean(tasks: SamplesByTask) -> Estimate:
    """mean@k and nothing else, in a fraction of the time of all figures: for tables of many cells."""
    return bootstrap_mean([each.score for each in tasks.values()])


def _count_right(rows: list[ResultRow]) -> Samples:
    right = sum([row.correct for row in rows])
    return Samples(tuple(rows), right, right / len(rows))
