"""Which task next: drawn by cell, more often where tasks are solved sometimes. A row of CELLS says what a cell is: a
family and level, or each task by itself.

A group of episodes teaches most when about `target` of them succeed, and nothing when all or none do.
Each cell keeps a running success rate; its weight is p(1-p) shifted to peak at the target, and no cell
falls below the floor, so that one that has become possible meanwhile is noticed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import mean

from trainer.methods.grpo.section import CurriculumSettings as Settings
from trainer.tasks.task import Task, normalize_query

Cell = tuple[str, int]
Past = Mapping[str, tuple[int, int]]  # by normalized query: how often a checkpoint was right, of how many tries
MIN_WEIGHT = 1e-9  # without a floor, too: weights that are all 0 cannot be drawn by


@dataclass(frozen=True, slots=True)
class CellKind:
    """What has one success rate. `decay` is how much of the running rate one more group leaves. `uses_past`: the first
    rates are those that the starting checkpoint had in recorded runs."""

    cell_of: Callable[[Task], Cell]
    decay: float
    uses_past: bool


def cell_of(task: Task) -> Cell:
    """The family and level of a task."""
    return task.ref.family, task.ref.level


def _find_task_cell(task: Task) -> Cell:
    return normalize_query(task.query), 0


# A task by itself has few groups: the last one has to count, where a level averages over its tasks.
CELLS: Mapping[str, CellKind] = {
    "level": CellKind(cell_of, decay=0.8, uses_past=False),
    "task": CellKind(_find_task_cell, decay=0.2, uses_past=True),
}


class Curriculum:
    """Draws tasks; `learn` tells it how a group went."""

    def __init__(self, tasks: Sequence[Task], settings: Settings, seed: int, past: Past | None = None) -> None:
        """`past`: what is recorded of the checkpoint that training starts from; a try weighs as much as the target."""
        self._settings = settings
        self._kind = CELLS[settings.by]
        self._random = Random(seed)  # noqa: S311
        self._tasks: dict[Cell, list[Task]] = {}
        for task in tasks:
            self._tasks.setdefault(self._kind.cell_of(task), []).append(task)
        self.rates: dict[Cell, float] = dict.fromkeys(self._tasks, settings.target)
        for query, (right, tries) in (past or {}).items() if self._kind.uses_past else ():
            if (query, 0) in self.rates:
                self.rates[query, 0] = (settings.target + right) / (1 + tries)

    def draw(self) -> Task:
        """The next task."""
        cells = list(self._tasks)
        cell = self._random.choices(cells, [self.weight(cell) for cell in cells])[0]
        return self._random.choice(self._tasks[cell])

    def weight(self, cell: Cell) -> float:
        """How often a cell is drawn, relative to others: between floor and 1."""
        if not self._settings.enabled:
            return 1.0
        floor, target = self._settings.floor, min(0.95, max(0.05, self._settings.target))
        rate = self.rates[cell]
        # How far the rate lies from the target, as a share of the way to 0 or 1, where the weight is the floor.
        distance = (target - rate) / target if rate < target else (rate - target) / (1 - target)
        return max(MIN_WEIGHT, floor + (1 - floor) * (1 - distance**2))

    def learn(self, task: Task, success: float) -> None:
        """A group on this task had this share of right answers."""
        cell = self._kind.cell_of(task)
        if cell in self.rates:
            self.rates[cell] = self._kind.decay * self.rates[cell] + (1 - self._kind.decay) * success

    def summarize_levels(self) -> dict[Cell, float]:
        """The mean success rate of each family and level."""
        rates: defaultdict[Cell, list[float]] = defaultdict(list)
        for cell, tasks in self._tasks.items():
            for level in dict.fromkeys(map(cell_of, tasks)):
                rates[level].append(self.rates[cell])
        return {level: mean(rows) for level, rows in rates.items()}
