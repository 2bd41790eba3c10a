"""The tools of the catalog by field of work: data/tasks/catalog.json, made from Seal-Tools by scripts/build_catalog.py;
the texts in which any of them is asked for: data/tasks/catalog_texts.yaml; and what several hands wrote for one tool
each: data/catalog_asks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from random import Random
from string import Formatter
from typing import Literal

from pydantic import Field, RootModel

from podium_lessons.everyday.everyday_data import choose_texts
from podium_lessons.lesson_data import FOLDER, MIN_TEXTS, load_lesson_data
from trainer.errors import UnusableTasks
from trainer.tasks.task_data import TaskData, read_task_data

HELD_OUT_FIELDS = 5  # one field of so many is kept for judging


class ParameterData(TaskData):
    """A parameter: what it may hold are numbers of a range, texts of a rule (values.py), or some values."""

    hint: str
    required: bool
    type: Literal["string", "integer", "number"]
    range: tuple[float, ...] = ()
    rule: str = ""
    values: tuple[str, ...] = ()


class CatalogTool(TaskData):
    """A tool as a catalog lists it, and the fields of what it returns with their JSON types."""

    name: str
    description: str
    parameters: dict[str, ParameterData] = Field(min_length=1)
    outputs: dict[str, Literal["string", "number"]] = Field(min_length=1)


class CatalogFile(RootModel[dict[str, tuple[CatalogTool, ...]]]):
    """Tools by field of work."""


class ToolAsks(TaskData):
    """How people ask for a call of one tool, with `{parameter}` for its arguments, and what they need it for."""

    needs: tuple[str, ...] = Field(min_length=1)
    asks: tuple[str, ...] = Field(min_length=1)


class AsksFile(RootModel[dict[str, ToolAsks]]):
    """Asks by tool."""


class CatalogTexts(TaskData):
    """Texts by what they say. The last of each row is kept for the test split."""

    requests: tuple[str, ...] = Field(min_length=MIN_TEXTS)
    noun_requests: tuple[str, ...] = Field(min_length=MIN_TEXTS)
    comparisons: tuple[str, ...] = Field(min_length=MIN_TEXTS)
    conditions: tuple[str, ...] = Field(min_length=MIN_TEXTS)
    pairs: tuple[str, ...] = Field(min_length=MIN_TEXTS)
    again: tuple[str, ...] = Field(min_length=MIN_TEXTS)
    several: tuple[str, ...] = Field(min_length=MIN_TEXTS)
    also: tuple[str, ...] = Field(min_length=MIN_TEXTS)
    chains: tuple[str, ...] = Field(min_length=MIN_TEXTS)
    fields: tuple[str, ...] = Field(min_length=MIN_TEXTS)
    sums: dict[str, tuple[str, ...]] = Field(min_length=1)


@cache
def load_catalog() -> dict[str, tuple[CatalogTool, ...]]:
    """All tools by field of work. Raises UnusableTasks."""
    return CatalogFile.model_validate_json((FOLDER / "tasks" / "catalog.json").read_bytes()).root


@cache
def load_texts() -> CatalogTexts:
    """The texts. Raises UnusableTasks."""
    return load_lesson_data("catalog_texts", CatalogTexts)


@cache
def load_asks(split: str) -> dict[str, ToolAsks]:
    """Asks by tool of the fields that a split draws from. Raises UnusableTasks where an ask leaves out a parameter that
    is required, or names one that the tool lacks."""
    tools = {tool.name: tool for field in list_fields(split) for tool in load_catalog()[field]}
    asks: dict[str, ToolAsks] = {}
    for path in sorted((FOLDER / "catalog_asks" / ("held_out" if split == "test" else "")).glob("*.yaml")):
        asks |= read_task_data(path, AsksFile).root
    for name, row in asks.items():
        parameters = tools[name].parameters if name in tools else {}
        required = {key for key, parameter in parameters.items() if parameter.required}
        for text in row.asks:
            if not parameters or not required <= find_slots(text) <= set(parameters):
                raise UnusableTasks(f"catalog_asks: {name}: {text!r} does not fit the parameters of a tool")
    return asks


def find_slots(text: str) -> frozenset[str]:
    """The parameters whose values an ask names."""
    return frozenset(slot for _, slot, _, _ in Formatter().parse(text) if slot)


@cache
def list_fields(split: str) -> tuple[str, ...]:
    """The fields of work that a split draws from. Training and validation share theirs."""
    return tuple(field for field in load_catalog() if is_held_out(field) == (split == "test"))


def is_held_out(field: str) -> bool:
    """Whether no training sees the tools of a field: a fifth of them, by a number that follows from the name."""
    return int(hashlib.sha256(field.encode()).hexdigest(), 16) % HELD_OUT_FIELDS == 0


@cache
def find_tool(name: str) -> CatalogTool | None:
    """The tool of this name."""
    return next((tool for tools in load_catalog().values() for tool in tools if tool.name == name), None)


def draw_text(texts: Sequence[str], split: str, random: Random) -> str:
    """A text that this split uses."""
    return random.choice(choose_texts(tuple(texts), split))
