"""Where tasks come from, behind one interface: `source_named("ledger,atlas")`, `source_named("file:mine.jsonl")` ...

Every source draws the same tasks for the same split, count and seed; a smaller count gives the first of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from trainer.errors import UnknownTask, UnusableTasks
from trainer.tasks import SUITES, suite_named
from trainer.tasks.sources.hub import load_hub
from trainer.tasks.sources.jsonl import load_tasks
from trainer.tasks.sources.reasoning_gym import Family, open_family
from trainer.tasks.suite import MAX_INDEX, SPLITS, Suite, seeded
from trainer.tasks.task import Task

log = logging.getLogger(__name__)
SOURCES = (
    f"families with commas between them ({', '.join(SUITES)}), file:PATH.jsonl, "
    "hub:OWNER/NAME[:CONFIG] or reasoning_gym:FAMILY"
)


class TaskSource(Protocol):
    """Gives tasks. What it gives for one split it never gives for another."""

    @property
    def name(self) -> str: ...

    def tasks(self, split: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
        """At most `count` tasks, fewer only where there are no more. `levels` counts only where tasks have
        levels. Raises UnknownTask when there is no task like that, UnusableTasks when the source fails."""


class Generated:
    """Families of suites, drawn in turns: every family and level gets the same share."""

    def __init__(self, name: str, suites: Sequence[Suite[Any]]) -> None:
        self.name = name
        self._suites = suites

    def tasks(self, split: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
        cells = [(suite, level) for level in _levels(self._suites, levels) for suite in self._suites]
        cells = [(suite, level) for suite, level in cells if level in suite.levels]
        share = -(-count // len(cells))
        drawn = [
            [suite.task(level, split, index) for index in islice(_indices(key, MAX_INDEX), share)]
            for suite, level in cells
            for key in [f"{seed}/{suite.name}/{level}/{split}"]
        ]
        return [task for turn in zip(*drawn, strict=True) for task in turn][:count]


class Listed:
    """Tasks that all lie in memory; `seed` shuffles them."""

    def __init__(self, name: str, tasks: Sequence[Task]) -> None:
        self.name = name
        self._tasks: Mapping[str, list[Task]] = {
            split: [task for task in tasks if task.ref.split == split] for split in SPLITS
        }

    def tasks(self, split: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
        found = list(self._tasks[_known(split)])
        if not found:
            held = ", ".join(f"{name} {len(each):,}" for name, each in self._tasks.items() if each)
            raise UnknownTask(f"{self.name} has no task in the split {split!r}; it has: {held}")
        seeded(f"{seed}/{self.name}/{split}").shuffle(found)
        return found[:count]


class Gym:
    """A family of the reasoning-gym package."""

    def __init__(self, name: str, family: Family) -> None:
        self.name = name
        self._family = family

    def tasks(self, split: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
        family = self._family
        indices = _indices(f"{seed}/{self.name}/{_known(split)}", family.size)
        found = list(islice(family.tasks(split, indices), count))
        if not found:
            raise UnknownTask(f"{self.name} has no task in the split {split!r}; choose another family")
        return found


def source_named(text: str) -> TaskSource:
    """The source that a recipe or a command names. Raises UnknownTask, or UnusableTasks when it cannot be opened."""
    name = text.strip()
    kind, colon, rest = name.partition(":")
    match kind if colon else "":
        case "file":
            return _file(name, Path(rest).expanduser())
        case "hub":
            return Listed(name, load_hub(rest))
        case "reasoning_gym":
            return Gym(name, open_family(rest))
        case "suite" | "":
            families = [part.strip() for part in (rest or name).split(",") if part.strip()]
            if families and all(family in SUITES for family in families):
                return Generated(name, [suite_named(family) for family in dict.fromkeys(families)])
    raise UnknownTask(f"there is no source of tasks {text[:200]!r}; use {SOURCES}")


def _file(name: str, path: Path) -> Listed:
    read = load_tasks(path)
    if not read.tasks:
        line, what = read.problems[0] if read.problems else (1, "the file is empty")
        raise UnusableTasks(f"{path} holds no task (line {line}: {what}); see python -m trainer tasks check {path}")
    if read.problems:
        line, what = read.problems[0]
        log.warning(
            "%s: %d problems (line %d: %s); those lines are left out, %d tasks remain",
            path, len(read.problems), line, what, len(read.tasks),
        )  # fmt: skip
    return Listed(name, read.tasks)


def _levels(suites: Sequence[Suite[Any]], wanted: tuple[int, ...] | None) -> list[int]:
    there = sorted({level for suite in suites for level in suite.levels})
    if wanted is None:
        return there
    unknown = [level for level in wanted if level not in there]
    if unknown or not wanted:
        raise UnknownTask(f"the levels are {', '.join(map(str, there))}, not {unknown[0] if unknown else 'none'}")
    return list(dict.fromkeys(wanted))


def _known(split: str) -> str:
    if split not in SPLITS:
        raise UnknownTask(f"there is no split {split!r}; use one of: {', '.join(SPLITS)}")
    return split


def _indices(key: str, below: int) -> Iterator[int]:
    """Every index below `below` once, in an order that depends on `key` alone; never all of them in memory."""
    random = seeded(key)
    seen: set[int] = set()
    while len(seen) < below:
        index = random.randrange(below)
        if index not in seen:
            seen.add(index)
            yield index
