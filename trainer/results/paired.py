"""Compares one orchestrator with another, task by task: the difference with its interval, and the tasks behind it.

`compute_difference` gives the figures alone. `select_tasks` and `describe_change` give the tasks behind them a few at
a time, because a page shows fifty of ten thousand. `compare_paired` gives all of it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal

from pydantic import BaseModel, ConfigDict

from trainer.results.by_task import PairKey, Samples, SamplesByTask, group_by_task
from trainer.results.rows import ResultRow, TaskKey
from trainer.results.statistics import Estimate, bootstrap_difference, sign_test

Direction = Literal["improved", "regressed", "equal"]
DIRECTIONS: dict[Direction, Callable[[float], bool]] = {  # by the score's difference
    "improved": lambda difference: difference > 0,
    "regressed": lambda difference: difference < 0,
    "equal": lambda difference: difference == 0,
}


class TaskChange(BaseModel):
    """The scores of one task under both orchestrators (shares of right samples), and the ids of its episodes."""

    model_config = ConfigDict(frozen=True)

    task: TaskKey
    condition: str
    query: str
    score: float
    reference_score: float
    episodes: tuple[str, ...]
    reference_episodes: tuple[str, ...]


class PairedDifference(BaseModel):
    """An orchestrator against a reference on the tasks that both have done.

    `difference` is the mean over tasks of score minus reference score, with a 95 % interval over tasks. `p` is the
    p-value of the exact sign test. `unpaired` counts tasks that only one of them has done; they are left out.
    """

    model_config = ConfigDict(frozen=True)

    tasks: int
    unpaired: int
    difference: Estimate
    wins: int
    losses: int
    ties: int
    p: float


class PairedComparison(PairedDifference):
    """The difference and every task behind it."""

    improved: tuple[TaskChange, ...]
    regressed: tuple[TaskChange, ...]
    equal: tuple[TaskChange, ...]


def compare_paired(
    rows: Collection[ResultRow], reference_rows: Collection[ResultRow], *, across_conditions: bool = False
) -> PairedComparison:
    """Compare one orchestrator's rows with a reference's, task by task. Exchanging the two changes every sign.

    With `across_conditions` a task is paired with itself in any other condition: the cost of an ablation or of a
    renamed pool.
    """
    mine = group_by_task(rows, across_conditions=across_conditions)
    theirs = group_by_task(reference_rows, across_conditions=across_conditions)
    tasks = {
        direction: tuple(describe_change(key, mine, theirs) for key in select_tasks(direction, mine, theirs))
        for direction in DIRECTIONS
    }
    return PairedComparison.model_validate({**dict(compute_difference(mine, theirs)), **tasks})


def compute_difference(mine: SamplesByTask, theirs: SamplesByTask) -> PairedDifference:
    """Compute what `compare_paired` does, without the tasks and from grouped rows: a fraction of the time."""
    differences = [samples.score - theirs[key].score for key, samples in mine.items() if key in theirs]
    wins, losses = sum(value > 0 for value in differences), sum(value < 0 for value in differences)
    return PairedDifference(
        tasks=len(differences),
        unpaired=len(mine) + len(theirs) - 2 * len(differences),
        difference=bootstrap_difference(differences),
        wins=wins,
        losses=losses,
        ties=len(differences) - wins - losses,
        p=sign_test(wins, losses),
    )


def select_tasks(direction: Direction, mine: SamplesByTask, theirs: SamplesByTask) -> list[PairKey]:
    """Select the tasks that improved, regressed or stayed equal, in the order of the tasks."""
    matches = DIRECTIONS[direction]
    return [key for key, samples in mine.items() if key in theirs and matches(samples.score - theirs[key].score)]


def describe_change(key: PairKey, mine: SamplesByTask, theirs: SamplesByTask) -> TaskChange:
    """Describe the change of a task that both have done."""
    return TaskChange(
        task=key.task,
        condition=key.condition,
        query=key.query,
        score=mine[key].score,
        reference_score=theirs[key].score,
        episodes=_list_episodes(mine[key]),
        reference_episodes=_list_episodes(theirs[key]),
    )


def _list_episodes(samples: Samples) -> tuple[str, ...]:
    return tuple(row.episode for row in sorted(samples.rows, key=lambda row: row.sample))
