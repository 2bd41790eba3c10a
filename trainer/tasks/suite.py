"""A suite: a family of tasks as a function of (version, family, level, split, index).

A family says how to draw parameters, how to write them as a query, how to read them back from one, and
how to solve them: the answer from the data itself, the plan as steps. Splits cannot share a task because
each draws from its own part of the entities.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from random import Random
from typing import Generic, TypeVar

from orchestrator.engine.events import TaskRef
from orchestrator.plan import Turn
from trainer.errors import UnknownTask
from trainer.tasks.task import CUSTOM, Task
from trainer.tasks.verifier import Verifier

VERSION = 1
SPLITS = ("train", "validation", "test")
MAX_INDEX = 10_000_000
MAX_DRAWS = 200

P = TypeVar("P")


class Suite(ABC, Generic[P]):
    """One family. `P` are its parameters: everything a query says. `held_out`: kept for testing what an
    orchestrator does on a family it has not learnt from."""

    name: str
    description: str
    workers: tuple[str, ...]
    levels: tuple[int, ...] = (1, 2, 3)
    held_out: bool = False

    @abstractmethod
    def draw(self, level: int, split: str, random: Random) -> P:
        """Draw the parameters of a task from this split's part of the entities."""

    @abstractmethod
    def write(self, parameters: P) -> str:
        """The query."""

    @abstractmethod
    def read(self, query: str) -> P | None:
        """The parameters of a query that `write` could have written, else None."""

    @abstractmethod
    def level_of(self, parameters: P) -> int:
        """The level that these parameters belong to."""

    @abstractmethod
    def uses_new_words(self, parameters: P) -> bool:
        """Whether the query is worded as no training task is."""

    @abstractmethod
    def solve(self, parameters: P) -> tuple[Verifier, Turn] | None:
        """The answer, computed from the data and not by running the plan, and the reference plan.
        None when the parameters have no clear answer (a tie in rounding, an unknown entity)."""

    def task(self, level: int, split: str, index: int) -> Task:
        """The task at an index. Raises UnknownTask for a level, split or index there is not."""
        if level not in self.levels:
            raise UnknownTask(f"{self.name} has levels {', '.join(map(str, self.levels))}, not {level}")
        if split not in SPLITS:
            raise UnknownTask(f"there is no split {split!r}; use one of: {', '.join(SPLITS)}")
        if not 0 <= index < MAX_INDEX:
            raise UnknownTask(f"the index must lie between 0 and {MAX_INDEX - 1:,}")
        random = make_random(f"{VERSION}/{self.name}/{level}/{split}/{index}")
        for _ in range(MAX_DRAWS):
            parameters = self.draw(level, split, random)
            solved = self.solve(parameters)
            if solved is not None:
                ref = TaskRef(self.name, level, split, index, VERSION)
                return Task(ref, self.write(parameters), *solved)
        raise AssertionError(f"{self.name} level {level} drew {MAX_DRAWS} tasks without a clear answer")

    def recognize(self, query: str) -> Task | None:
        """The task behind any query in this family's words, also one that a person has edited."""
        parameters = self.read(query)
        solved = self.solve(parameters) if parameters is not None else None
        if parameters is None or solved is None:
            return None
        return Task(TaskRef(self.name, self.level_of(parameters), CUSTOM, -1, VERSION), query, *solved)


def make_random(key: str) -> Random:
    """A random source that depends on `key` alone, on every machine."""
    return Random(hashlib.blake2b(key.encode(), digest_size=16).digest())  # noqa: S311


def assign_split(name: str) -> str:
    """The split that an entity belongs to: about 60, 15 and 25 per cent of all names."""
    place = hashlib.blake2b(f"{VERSION}/{name}".encode(), digest_size=2).digest()
    share = int.from_bytes(place) / 65536
    return "train" if share < 0.60 else "validation" if share < 0.75 else "test"
