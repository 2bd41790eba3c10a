"""A question in drawn words, and the draw of its wording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import TypeVar

from podium_lessons.everyday.asks import Ask
from podium_lessons.everyday.everyday_data import TextBank, choose_texts
from podium_lessons.wordings import expand_choices

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EverydayQuestion:
    """A text with named gaps and what stands in them, what has to be done, and whether the names may be written in
    small letters, too."""

    text: str
    gaps: Mapping[str, str]
    asks: tuple[Ask, ...]
    small_letters: bool = False


def choose_bank(banks: Sequence[T], random: Random) -> T:
    """One of the banks, by their weights."""
    weights = [bank.weight if isinstance(bank, TextBank) else 1 for bank in banks]
    return random.choices(banks, weights)[0]


def choose_text(texts: tuple[str, ...], split: str, random: Random) -> str:
    """A wording of one of the texts of this split."""
    return random.choice(_list_wordings(random.choice(choose_texts(texts, split))))


@cache
def _list_wordings(text: str) -> list[str]:
    return expand_choices(text)
