"""One orchestrator against another, task by task: the difference with its interval, who won where, and why.

`gap` gives the figures of a pair alone; `changed` and `change` tell the tasks behind its counts, a few at a time,
because a page shows fifty of ten thousand; `paired` gives all of it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal

from pydantic import BaseModel, ConfigDict

from trainer.results.by_task import Samples, Tasks, Unit, by_task
from trainer.results.rows import ResultRow, TaskKey
from trainer.results.statistics import Estimate, bootstrap_difference, sign_test

Which = Literal["improved", "regressed", "equal"]
WHICH: dict[Which, Callable[[float], bool]] = {  # by the score's difference
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


class Gap(BaseModel):
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


class Paired(Gap):
    """The figures and every task behind them."""

    improved: tuple[TaskChange, ...]
    regressed: tuple[TaskChange, ...]
    equal: tuple[TaskChange, ...]


def paired(
    rows: Collection[ResultRow], reference_rows: Collection[ResultRow], *, across_conditions: bool = False
) -> Paired:
    """One orchestrator's rows against a reference's, task by task. The sides change places and every sign with
    them. With `across_conditions` a task pairs with itself in whatever condition it was done: what an ablation
    or a renamed pool costs."""
    mine = by_task(rows, across_conditions=across_conditions)
    theirs = by_task(reference_rows, across_conditions=across_conditions)
    tasks = {which: tuple(change(unit, mine, theirs) for unit in changed(which, mine, theirs)) for which in WHICH}
    return Paired.model_validate({**dict(gap(mine, theirs)), **tasks})


def gap(mine: Tasks, theirs: Tasks) -> Gap:
    """`paired` without the tasks: of rows that were grouped already, in a fraction of the time."""
    differences = [each.score - theirs[unit].score for unit, each in mine.items() if unit in theirs]
    wins, losses = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    return Gap(
        tasks=len(differences),
        unpaired=len(mine) + len(theirs) - 2 * len(differences),
        difference=bootstrap_difference(differences),
        wins=wins,
        losses=losses,
        ties=len(differences) - wins - losses,
        p=sign_test(wins, losses),
    )


def changed(which: Which, mine: Tasks, theirs: Tasks) -> list[Unit]:
    """The tasks that were improved, regressed or left equal, in the order of the tasks."""
    counts = WHICH[which]
    return [unit for unit, each in mine.items() if unit in theirs and counts(each.score - theirs[unit].score)]


def change(unit: Unit, mine: Tasks, theirs: Tasks) -> TaskChange:
    """What became of a task that both have done."""
    return TaskChange(
        task=unit.task,
        condition=unit.condition,
        query=unit.query,
        score=mine[unit].score,
        reference_score=theirs[unit].score,
        episodes=_episodes(mine[unit]),
        reference_episodes=_episodes(theirs[unit]),
    )


def _episodes(samples: Samples) -> tuple[str, ...]:
    return tuple(row.episode for row in sorted(samples.rows, key=lambda row: row.sample))
