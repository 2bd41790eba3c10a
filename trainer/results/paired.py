"""One orchestrator against another, task by task: the difference with its interval, who won where, and why.

`gap` gives the figures of a pair alone; `changed` and `change` tell the tasks behind its counts, a few at a time,
because a page shows fifty of ten thousand; `paired` gives all of it at once.
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
    """One task under both: scores are shares of right samples, `episodes` the traces behind them."""

    model_config = ConfigDict(frozen=True)

    task: TaskKey
    condition: str
    query: str
    score: float
    reference_score: float
    episodes: tuple[str, ...]
    reference_episodes: tuple[str, ...]


class PairedDifference(BaseModel):
    """The figures of an orchestrator against a reference on the tasks that both have done.

    `difference` is the mean over tasks of score minus reference score, with a 95 % interval over tasks; `p` that
    of the exact sign test. `unpaired` counts tasks that only one of them has done: they count for nothing here.
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
    """The figures and every task behind them."""

    improved: tuple[TaskChange, ...]
    regressed: tuple[TaskChange, ...]
    equal: tuple[TaskChange, ...]


def compare_paired(
    rows: Collection[ResultRow], reference_rows: Collection[ResultRow], *, across_conditions: bool = False
) -> PairedComparison:
    """One orchestrator's rows against a reference's, task by task. The sides change places and every sign with
    them. With `across_conditions` a task pairs with itself in whatever condition it was done: what an ablation
    or a renamed pool costs."""
    mine = group_by_task(rows, across_conditions=across_conditions)
    theirs = group_by_task(reference_rows, across_conditions=across_conditions)
    tasks = {
        which: tuple(describe_change(unit, mine, theirs) for unit in select_tasks(which, mine, theirs))
        for which in DIRECTIONS
    }
    return PairedComparison.model_validate({**dict(compute_difference(mine, theirs)), **tasks})


def compute_difference(mine: SamplesByTask, theirs: SamplesByTask) -> PairedDifference:
    """`paired` without the tasks: of rows that were grouped already, in a fraction of the time."""
    differences = [each.score - theirs[unit].score for unit, each in mine.items() if unit in theirs]
    wins, losses = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    return PairedDifference(
        tasks=len(differences),
        unpaired=len(mine) + len(theirs) - 2 * len(differences),
        difference=bootstrap_difference(differences),
        wins=wins,
        losses=losses,
        ties=len(differences) - wins - losses,
        p=sign_test(wins, losses),
    )


def select_tasks(which: Direction, mine: SamplesByTask, theirs: SamplesByTask) -> list[PairKey]:
    """The tasks that were improved, regressed or left equal, in the order of the tasks."""
    counts = DIRECTIONS[which]
    return [unit for unit, each in mine.items() if unit in theirs and counts(each.score - theirs[unit].score)]


def describe_change(unit: PairKey, mine: SamplesByTask, theirs: SamplesByTask) -> TaskChange:
    """What became of a task that both have done."""
    return TaskChange(
        task=unit.task,
        condition=unit.condition,
        query=unit.query,
        score=mine[unit].score,
        reference_score=theirs[unit].score,
        episodes=_list_episodes(mine[unit]),
        reference_episodes=_list_episodes(theirs[unit]),
    )


def _list_episodes(samples: Samples) -> tuple[str, ...]:
    return tuple(row.episode for row in sorted(samples.rows, key=lambda row: row.sample))
