"""The texts that put values together, and which of them a split draws from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from random import Random

from pydantic import RootModel, model_validator

from podium_lessons.everyday.everyday_data import ToolBank, ToolData, choose_texts, load_tools
from podium_lessons.lesson_data import load_lesson_data

MIN_TEXTS = 6


class ComposedTexts(RootModel[dict[str, tuple[str, ...]]]):
    """Texts by what they ask for. The last two of a row are kept for the test split."""

    @model_validator(mode="after")
    def _has_enough(self) -> ComposedTexts:
        short = next((name for name, texts in self.root.items() if len(texts) < MIN_TEXTS), None)
        if short is not None:
            raise ValueError(f"{short} has fewer than {MIN_TEXTS} texts")
        return self


@cache
def load_texts() -> Mapping[str, tuple[str, ...]]:
    """The texts. Raises UnusableTasks."""
    return load_lesson_data("composed_texts", ComposedTexts).root


@cache
def load_works() -> Mapping[str, ToolBank]:
    """The functions that put values together: of two numbers, of lists, of dates, and calculators."""
    banks = {tool.work: tool for name in ("project_tools", "composed_tools") for tool in _load(name)}
    there = load_tools()
    return banks | {work: there[work] for work in ("evaluate", "arithmetic", "sum", "mean", "convert", *DATE_WORKS)}


DATE_WORKS = ("days_between", "add_days")


def _load(name: str) -> tuple[ToolBank, ...]:
    return load_lesson_data(name, ToolData).tools


def choose(texts: Sequence[str], split: str, random: Random) -> str:
    """A text that this split uses: the test split has the last one, of long rows the last two."""
    if len(texts) >= MIN_TEXTS:
        return random.choice(choose_texts(tuple(texts), split))
    return texts[-1] if split == "test" else random.choice(texts[:-1])
