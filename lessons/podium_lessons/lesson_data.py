"""The words and figures behind the lessons: YAML files in podium_lessons/data.

A file is read when its family is first used, and checked against a model: what is missing, unknown or of another type
is an error that names the file and the place in it.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from trainer.tasks.task_data import Data, TaskData, read_task_data

FOLDER = Path(__file__).parent / "data"
MIN_TEXTS = 3  # the test split draws from the last three (wordings.py)


class QueryTexts(TaskData):
    """The texts of one kind of query. `asks` tells kinds of one level apart."""

    level: int
    asks: str = ""
    texts: tuple[str, ...] = Field(min_length=MIN_TEXTS)


class FamilyData(TaskData):
    """The texts of a family's queries."""

    queries: tuple[QueryTexts, ...] = Field(min_length=1)


def load_lesson_data(name: str, model: type[Data]) -> Data:
    """The content of podium_lessons/data/tasks/NAME.yaml. Raises UnusableTasks."""
    return read_task_data(FOLDER / "tasks" / f"{name}.yaml", model)
