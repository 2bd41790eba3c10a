"""Which task next: drawn by cell (family and level), more often where tasks are solved sometimes.

A group of episodes teaches most when about `target` of them succeed, and nothing when all or none do.
Each cell keeps a running success rate; its weight is p(1-p) shifted to peak at the target, and no cell
falls below the floor, so that one that has become possible meanwhile is noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from trainer.methods.grpo.section import CurriculumSettings as Settings
from trainer.tasks.task import Task

Cell = tuple[str, int]
MIN_WEIGHT = 1e-9  # without a floor, too: weights that are all 0 cannot be drawn by
DECAY = 0.8  # how much of the running rate one more group leaves


class Curriculum:
    """Draws tasks; `learn` tells it how a group went."""

    def __init__(self, tasks: Sequence[Task], settings: Settings, seed: int) -> None:
        self._settings = settings
        self._random = Random(seed)  # noqa: S311
        self._tasks: dict[Cell, list[Task]] = {}
        for task in tasks:
            self._tasks.setdefault(cell_of(task), []).append(task)
        self.rates: dict[Cell, float] = dict.fromkeys(self._tasks, settings.target)

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
        cell = cell_of(task)
        if cell in self.rates:
            self.rates[cell] = DECAY * self.rates[cell] + (1 - DECAY) * success


def cell_of(task: Task) -> Cell:
    return task.ref.family, task.ref.level
