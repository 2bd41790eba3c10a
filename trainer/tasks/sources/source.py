"""Sources of tasks behind one interface, whatever the tasks are made from.

Every source draws the same tasks for the same split, count and seed; a smaller count gives the first of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Protocol, runtime_checkable

from trainer.errors import TrainerError, UnknownTask, UnusableTasks
from trainer.tasks.suite import MAX_INDEX, SPLITS, Suite, make_random
from trainer.tasks.task import Task

BLOCK = 4  # tasks that a mixed source takes from one of its sources at a time


class TaskSource(Protocol):
    """Gives tasks. What it gives for one split it never gives for another."""

    @property
    def name(self) -> str: ...

    def tasks(self, split: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
        """At most `count` tasks, fewer only where there are no more. `levels` counts only where tasks have
        levels. Raises UnknownTask when there is no task like that, UnusableTasks when the source fails."""


@runtime_checkable
class HasLevels(Protocol):
    """A source whose tasks have levels."""

    @property
    def levels(self) -> tuple[int, ...]: ...


def choose_own_levels(source: TaskSource, levels: tuple[int, ...]) -> tuple[int, ...]:
    """Those of the levels that a source has; all of them where it has none, for it to say so."""
    own = tuple(level for level in levels if level in source.levels) if isinstance(source, HasLevels) else levels
    return own or levels


def check_levels(levels: tuple[int, ...] | None, there: Sequence[int]) -> tuple[int, ...]:
    """The levels to draw from, each once; None is all that are there. Raises UnknownTask."""
    chosen = tuple(there) if levels is None else tuple(dict.fromkeys(levels))
    unknown = [level for level in chosen if level not in there]
    if unknown or not chosen:
        raise UnknownTask(f"the levels are {', '.join(map(str, there))}, not {unknown[0] if unknown else 'none'}")
    return chosen


class SuiteSource:
    """Families of suites, drawn in turns: every family and level gets the same share."""

    def __init__(self, name: str, suites: Sequence[Suite[Any]]) -> None:
        self.name = name
        self._suites = suites

    @property
    def levels(self) -> tuple[int, ...]:
        return _list_levels(self._suites)

    def tasks(self, split: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
        cells = [(suite, level) for level in _choose_levels(self._suites, levels) for suite in self._suites]
        cells = [(suite, level) for suite, level in cells if level in suite.levels]
        share = -(-count // len(cells))
        drawn = [
            [suite.task(level, split, index) for index in islice(draw_indices(key, MAX_INDEX), share)]
            for suite, level in cells
            for key in [f"{seed}/{suite.name}/{level}/{split}"]
        ]
        return [task for turn in zip(*drawn, strict=True) for task in turn][:count]


class TaskList:
    """Tasks that all lie in memory; `seed` shuffles them. Where not all are wanted a person's own come first: no made
    one stands for what was asked for in a person's words."""

    def __init__(self, name: str, tasks: Sequence[Task]) -> None:
        """Raises UnusableTasks where a task names workers of a pool that it does not come with."""
        if any(task.offered and task.pool is None for task in tasks):
            raise UnusableTasks(
                f"{name} has tasks that name the workers which they are run with; make them tasks of their pool "
                "(podium tasks add --pool POOL --file FILE), and name those as practice:POOL"
            )
        self.name = name
        self._tasks: Mapping[str, list[Task]] = {
            split: [task for task in tasks if task.ref.split == split] for split in SPLITS
        }

    def tasks(self, split: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
        drawn = list(self._tasks[check_split(split)])
        if not drawn:
            sizes = ", ".join(f"{name} {len(tasks):,}" for name, tasks in self._tasks.items() if tasks)
            raise UnknownTask(f"{self.name} has no task in the split {split!r}; it has: {sizes or 'none at all'}")
        make_random(f"{seed}/{self.name}/{split}").shuffle(drawn)
        if count < len(drawn):
            drawn.sort(key=lambda task: task.origin == "made")
        return drawn[:count]


class MixedSource:
    """Several sources with a share of draws each, in blocks: tasks of one source that share a pool stay together.

    A source is asked for those levels that it has, and not at all where it has none of them; a level that no source has
    is an error.
    """

    def __init__(self, name: str, shares: Sequence[tuple[TaskSource, int]]) -> None:
        self.name = name
        self._shares = shares

    def tasks(self, split: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
        parts = [(source, share, self._narrow_levels(source, levels)) for source, share in self._shares]
        if any(narrowed != () for _, _, narrowed in parts):
            parts = [row for row in parts if row[2] != ()]  # the others have none of the levels
        turns = [place for place, (_, share, _) in enumerate(parts) for _ in range(share)]
        make_random(f"mixed/{self.name}").shuffle(turns)
        blocks = -(-count // BLOCK)
        order = [turns[number % len(turns)] for number in range(blocks)]
        rows = [
            _cut_blocks(source.tasks(split, order.count(place) * BLOCK, seed, narrowed) if place in order else [])
            for place, (source, _, narrowed) in enumerate(parts)
        ]
        return [task for place in order for task in next(rows[place], ())][:count]

    def _narrow_levels(self, source: TaskSource, levels: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """The levels to ask a source for: those that it has, and those that no source has, for it to refuse."""
        if levels is None or not isinstance(source, HasLevels):
            return levels
        there = {level for other, _ in self._shares if isinstance(other, HasLevels) for level in other.levels}
        return tuple(level for level in levels if level in source.levels or level not in there)


class ExtensionSource:
    """A source of another package. Whatever goes wrong in it is told with the package's name."""

    def __init__(self, name: str, package: str, source: TaskSource) -> None:
        self.name = name
        self._package = package
        self._source = source

    def tasks(self, split: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
        with explain_failure(self.name, self._package):
            tasks = list(self._source.tasks(split, count, seed, levels))
            if not all(isinstance(task, Task) for task in tasks):
                raise TypeError("its `tasks` must return objects of class Task")
        return tasks


class LevelledExtensionSource(ExtensionSource):
    """A source of another package whose tasks have levels: it is asked for those that it has."""

    @property
    def levels(self) -> tuple[int, ...]:
        assert isinstance(self._source, HasLevels), "guard_source makes one of sources with levels only"
        return self._source.levels


def guard_source(name: str, package: str, source: TaskSource) -> ExtensionSource:
    """The source of another package, so that a failure names this package; with its levels where it has some."""
    guard = LevelledExtensionSource if isinstance(source, HasLevels) else ExtensionSource
    return guard(name, package, source)


@contextmanager
def explain_failure(name: str, package: str) -> Iterator[None]:
    """Turn what another package's code raises into UnusableTasks that names the package."""
    try:
        yield
    except UnusableTasks as error:
        raise UnusableTasks(f"the source {name} of {package} cannot be used: {error}") from error
    except TrainerError:
        raise
    except Exception as error:
        raise UnusableTasks(f"the source {name} of {package} failed: {type(error).__name__}: {error}") from error


def _cut_blocks(tasks: Sequence[Task]) -> Iterator[Sequence[Task]]:
    return (tasks[start : start + BLOCK] for start in range(0, len(tasks), BLOCK))


def _choose_levels(suites: Sequence[Suite[Any]], levels: tuple[int, ...] | None) -> list[int]:
    there = _list_levels(suites)
    if levels is None:
        return list(there)
    unknown = [level for level in levels if level not in there]
    if unknown or not levels:
        raise UnknownTask(f"the levels are {', '.join(map(str, there))}, not {unknown[0] if unknown else 'none'}")
    return list(dict.fromkeys(levels))


def _list_levels(suites: Sequence[Suite[Any]]) -> tuple[int, ...]:
    return tuple(sorted({level for suite in suites for level in suite.levels}))


def check_split(split: str) -> str:
    """The split itself. Raises UnknownTask when there is none like it."""
    if split not in SPLITS:
        raise UnknownTask(f"there is no split {split!r}; use one of: {', '.join(SPLITS)}")
    return split


def draw_indices(key: str, below: int) -> Iterator[int]:
    """Every index below `below` once, in an order that depends on `key` alone; never all of them in memory."""
    random = make_random(key)
    seen: set[int] = set()
    while len(seen) < below:
        index = random.randrange(below)
        if index not in seen:
            seen.add(index)
            yield index
