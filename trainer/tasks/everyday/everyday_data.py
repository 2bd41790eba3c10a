"""The words of everyday questions, and the tools that answer them (assets/tasks/everyday.yaml, everyday_tools.yaml)."""

from __future__ import annotations

from functools import cache

from pydantic import Field

from pool_registry.actions import JsonValue
from trainer.tasks.task_data import TaskData, load_task_data

HELD_OUT_TEXTS = 2  # at the end of each list


class TextBank(TaskData):
    """Ways to put one question. `weight` is its share among those of its section."""

    texts: tuple[str, ...] = Field(min_length=4)
    weight: int = 1


class AskBank(TextBank):
    """Ways to ask for `asks`."""

    asks: str


class DirectTool(TaskData):
    """The tool that answers a sum without an expression: its work, and which gap is which part of the request."""

    work: str
    parts: dict[str, str]


class SumBank(TextBank):
    """A sum in words. `gaps` are low, high and, where there are some, decimals of each figure."""

    name: str
    gaps: dict[str, tuple[int, ...]]
    expression: str
    tool: DirectTool | None = None


class ListBank(TextBank):
    """Ways to ask for something of a list of numbers: its sum or its mean."""

    work: str


class FactBank(TextBank):
    """Ways to ask for a fact about a country."""

    fact: str


class UnitGroup(TaskData):
    """Units of one dimension, each with its spellings, and the whole numbers that questions have of them."""

    range: tuple[int, int]
    units: tuple[tuple[str, ...], ...]


class UnitBank(TaskData):
    """Ways to ask for a conversion."""

    texts: tuple[str, ...]
    temperature_texts: tuple[str, ...]
    groups: tuple[UnitGroup, ...]
    temperatures: tuple[tuple[str, ...], ...]


class RefusalBank(TaskData):
    """Ways to ask for what no ordinary pool can do."""

    need: str
    texts: tuple[str, ...] = Field(min_length=4)


class EverydayData(TaskData):
    """All words of the questions."""

    openings: tuple[str, ...]
    endings: tuple[str, ...]
    sums: tuple[SumBank, ...]
    lists: tuple[ListBank, ...]
    units: UnitBank
    dates: tuple[AskBank, ...]
    zones: tuple[AskBank, ...]
    distances: tuple[AskBank, ...]
    airports: tuple[AskBank, ...]
    facts: tuple[FactBank, ...]
    compared: tuple[AskBank, ...]
    molecules: tuple[AskBank, ...]
    company: tuple[AskBank, ...]
    exchange: tuple[AskBank, ...]
    mixtures: tuple[AskBank, ...]
    refusals: tuple[RefusalBank, ...]
    formulas: tuple[str, ...]
    currencies: dict[str, tuple[str, str]]
    holiday_countries: dict[str, tuple[str, ...]]
    unclear_capitals: tuple[str, ...]


class StarterCall(TaskData):
    """How the starter pool does a piece of work. A part that no argument holds is seen by the access list alone."""

    worker: str
    arguments: dict[str, JsonValue]


class ToolBank(TaskData):
    """One piece of work as pools may offer it: names, descriptions, and what its arguments may be called."""

    work: str
    need: str
    starter: StarterCall | None = None
    names: tuple[str, ...]
    parts: dict[str, tuple[str, ...]]
    descriptions: tuple[str, ...] = Field(min_length=8)


class ToolData(TaskData):
    """All tools."""

    tools: tuple[ToolBank, ...]


@cache
def load_everyday() -> EverydayData:
    """The words of the questions. Raises UnusableTasks for a malformed file."""
    return load_task_data("everyday", EverydayData)


@cache
def load_tools() -> dict[str, ToolBank]:
    """The tools by their work. Raises UnusableTasks for a malformed file."""
    return {tool.work: tool for tool in load_task_data("everyday_tools", ToolData).tools}


def learnt(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The wordings that training and validation draw from."""
    return texts[:-HELD_OUT_TEXTS]


def choose_texts(texts: tuple[str, ...], split: str) -> tuple[str, ...]:
    """The wordings that a split draws from: the test split has those that are held out."""
    return texts[-HELD_OUT_TEXTS:] if split == "test" else learnt(texts)
