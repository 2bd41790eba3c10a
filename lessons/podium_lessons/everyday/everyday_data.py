"""The words of everyday questions, and the tools that answer them: podium_lessons/data/tasks/everyday_*.yaml.

podium_lessons/wordings.py explains [a|b] and {gap}. The last two texts of every list are held out for the test split.
"""

from __future__ import annotations

from functools import cache

from pydantic import Field

from podium_lessons.lesson_data import load_lesson_data
from pool_registry.actions import JsonValue
from trainer.tasks.task_data import TaskData

HELD_OUT_TEXTS = 2  # at the end of each list


class TextBank(TaskData):
    """Ways to put one question. `weight` is its share among those of its section."""

    texts: tuple[str, ...] = Field(min_length=4)
    weight: int = 1


class AskBank(TextBank):
    """Ways to ask for `asks`."""

    asks: str


class SumBank(TextBank):
    """A sum in words. `gaps` are low, high and, where there are some, decimals of each figure."""

    name: str
    gaps: dict[str, tuple[int, ...]]
    expression: str


class ListBank(TextBank):
    """Ways to ask for something of a list of numbers: its sum or its mean."""

    work: str


class FactBank(TextBank):
    """Ways to ask for a fact about a country."""

    fact: str


class ComparedBank(AskBank):
    """Ways to compare countries, or to ask for a fact in another unit. A text without {fact} says it by a verb or an
    adjective: then `fact` is the one, and `unit` the unit."""

    fact: str = ""
    unit: str = ""


class UnitGroup(TaskData):
    """Units of one dimension, each with its spellings, and the whole numbers that questions have of them."""

    range: tuple[int, int]
    units: tuple[tuple[str, ...], ...]


class UnitBank(TaskData):
    """Ways to ask for a conversion. `amounts` are figures in words, "two and a half", `parts` those before a unit in
    the singular, "half a", and `singular` is the singular of such units."""

    texts: tuple[str, ...]
    temperature_texts: tuple[str, ...]
    groups: tuple[UnitGroup, ...]
    temperatures: tuple[tuple[str, ...], ...]
    amounts: dict[str, str]
    parts: dict[str, str]
    singular: dict[str, str]


class RefusalBank(TaskData):
    """Ways to ask for what no ordinary pool can do."""

    need: str
    texts: tuple[str, ...] = Field(min_length=4)


class StyleWords(TaskData):
    """What people write before and after a question."""

    openings: tuple[str, ...]
    endings: tuple[str, ...]


class SumWords(TaskData):
    """Arithmetic in words or as a formula."""

    sums: tuple[SumBank, ...]
    lists: tuple[ListBank, ...]


class WordProblem(TaskData):
    """A problem in a few sentences, and the expression that answers it."""

    text: str
    expression: str


class ProblemWords(TaskData):
    """Word problems that people wrote."""

    problems: tuple[WordProblem, ...] = Field(min_length=1)


class MoneyWords(TaskData):
    """Sums about prices, pay and percentages."""

    sums: tuple[SumBank, ...]


class UnitWords(TaskData):
    """Conversions and molar masses."""

    units: UnitBank
    molecules: tuple[AskBank, ...]
    formulas: tuple[str, ...]


class DateWords(TaskData):
    """Days, business days, holidays and time zones. `named_days` are spellings by month and day, "12-25"."""

    dates: tuple[AskBank, ...]
    zones: tuple[AskBank, ...]
    named_days: dict[str, tuple[str, ...]]
    holiday_countries: dict[str, tuple[str, ...]]


class PlaceWords(TaskData):
    """Distances, airports and countries."""

    distances: tuple[AskBank, ...]
    airports: tuple[AskBank, ...]
    facts: tuple[FactBank, ...]
    compared: tuple[ComparedBank, ...]
    unclear_capitals: tuple[str, ...]


class LedgerWords(TaskData):
    """The sales of companies, and exchange rates of a day."""

    company: tuple[AskBank, ...]
    exchange: tuple[AskBank, ...]
    currencies: dict[str, tuple[str, str]]


class CombinedWords(TaskData):
    """Questions that combine two kinds of work, by what they are about."""

    combined: dict[str, tuple[AskBank, ...]]


class RefusalWords(TaskData):
    """What no ordinary pool can do."""

    refusals: tuple[RefusalBank, ...]


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
def load_style() -> StyleWords:
    return load_lesson_data("everyday_style", StyleWords)


@cache
def load_sums() -> SumWords:
    return load_lesson_data("everyday_sums", SumWords)


@cache
def load_problems() -> ProblemWords:
    return load_lesson_data("everyday_problems", ProblemWords)


@cache
def load_money() -> MoneyWords:
    return load_lesson_data("everyday_money", MoneyWords)


@cache
def load_units() -> UnitWords:
    return load_lesson_data("everyday_units", UnitWords)


@cache
def load_dates() -> DateWords:
    return load_lesson_data("everyday_dates", DateWords)


@cache
def load_places() -> PlaceWords:
    return load_lesson_data("everyday_places", PlaceWords)


@cache
def load_ledger() -> LedgerWords:
    return load_lesson_data("everyday_ledger", LedgerWords)


@cache
def load_combined() -> CombinedWords:
    return load_lesson_data("everyday_combined", CombinedWords)


@cache
def load_refusals() -> RefusalWords:
    return load_lesson_data("everyday_refusals", RefusalWords)


@cache
def load_tools() -> dict[str, ToolBank]:
    """The tools by their work. Raises UnusableTasks for a malformed file."""
    return {tool.work: tool for tool in load_lesson_data("everyday_tools", ToolData).tools}


def learnt(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The wordings that training and validation draw from."""
    return texts[:-HELD_OUT_TEXTS]


def choose_texts(texts: tuple[str, ...], split: str) -> tuple[str, ...]:
    """The wordings that a split draws from: the test split has those that are held out."""
    return texts[-HELD_OUT_TEXTS:] if split == "test" else learnt(texts)
