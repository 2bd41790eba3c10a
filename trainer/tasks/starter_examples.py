"""Example tasks of the starter pool: what a fresh studio shows first, what `podium doctor` trains on, and what a page
without runs is published with.

They are generated tasks of the package podium-lessons, copied into assets/tasks/starter_examples.yaml, so that none of
these need that package; a test compares.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Literal

from pydantic import Field

from orchestrator.engine.events import TaskRef
from trainer.errors import UnknownTask
from trainer.tasks.sources.jsonl import TaskLine, make_task
from trainer.tasks.sources.source import TaskList
from trainer.tasks.suite import VERSION
from trainer.tasks.task import CUSTOM, Task, normalize_query
from trainer.tasks.task_data import TaskData, load_task_data

NAME = "examples"


class ExampleLine(TaskLine):
    """A line of a task file, with the place that the task has in its family."""

    family: str
    level: int = Field(ge=1)
    split: Literal["train", "validation", "test"]
    index: int = Field(ge=0)


class ExampleData(TaskData):
    """assets/tasks/starter_examples.yaml."""

    examples: tuple[ExampleLine, ...] = Field(min_length=1)


@cache
def list_examples() -> tuple[Task, ...]:
    """The examples, in the order of their file. Raises UnusableTasks."""
    return tuple(map(_make_example, load_task_data("starter_examples", ExampleData).examples))


def find_example(family: str, level: int, split: str, index: int) -> Task | None:
    """The example that is this task of a family, or None."""
    ref = TaskRef(family, level, split, index, VERSION)
    return next((task for task in list_examples() if task.ref == ref), None)


def recognize_example(query: str) -> Task | None:
    """The example that asks this, as a task that was recognised, or None."""
    key = normalize_query(query)
    example = next((task for task in list_examples() if normalize_query(task.query) == key), None)
    return example and replace(example, query=query, ref=replace(example.ref, split=CUSTOM, index=-1))


def open_examples(argument: str) -> TaskList:
    """The examples as a source."""
    if argument:
        raise UnknownTask(f"{NAME} has no parts; leave {argument!r} out")
    return TaskList(NAME, list_examples())


def _make_example(line: ExampleLine) -> Task:
    ref = TaskRef(line.family, line.level, line.split, line.index, VERSION)
    return replace(make_task(line, line.family, line.index), ref=ref)
