"""Needs: what each step of a plan is for, in words, and which earlier steps it may see; before a worker is chosen.

    1. distance between two airports
    2. convert units of measure (1)
    3. "Is it worth to fly so far?" (1, 2)

A need in quotation marks is a question of the query's own, to be asked of an agent. Parsing is total: any text gives
needs, a refusal or nothing, never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pool_registry.text import one_line, shorten

MAX_NEEDS = 24
MAX_NEED_CHARS = 160
QUOTE = '"'

_LINE = re.compile(r"\s*(?:[0-9]{1,3}[.)]\s*)?(.*?)\s*(?:\(([0-9][0-9, ]*)\))?\s*")


_UNREPEATABLE = str.maketrans(dict.fromkeys('()$"', " "))


@dataclass(frozen=True, slots=True)
class Need:
    """What one step is for. `access` are the places of earlier needs, counted from 1, whose outputs it may see."""

    text: str
    access: tuple[int, ...] = ()

    @property
    def is_question(self) -> bool:
        """Whether it is what to ask an agent, and no description of what to do."""
        return self.text.startswith(QUOTE)

    @property
    def words(self) -> str:
        """Its text without quotation marks: what workers and past needs are compared with."""
        return self.text.strip(QUOTE) if self.is_question else self.text


def format_needs(needs: Sequence[Need]) -> str:
    """The needs as a model writes them, one a line."""
    return "\n".join(f"{place}. {_format_need(need)}" for place, need in enumerate(needs, start=1))


def _format_need(need: Need) -> str:
    return f"{need.text} ({', '.join(map(str, need.access))})" if need.access else need.text


def quote_question(question: str) -> str:
    """A question as a need states it, without what a need cannot hold: brackets stand for earlier steps there, and a
    dollar for an output."""
    return f"{QUOTE}{one_line(question.translate(_UNREPEATABLE))}{QUOTE}"


def parse_needs(text: str) -> list[Need]:
    """The needs in what a model wrote; none where it wrote no line with a letter. Access to a step that is not an
    earlier one is left out: it can mean nothing."""
    needs: list[Need] = []
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        words = shorten(one_line(match[1]), MAX_NEED_CHARS) if match else ""
        if match is None or not any(letter.isalpha() for letter in words) or len(needs) == MAX_NEEDS:
            continue
        ids = [int(item) for item in (match[2] or "").replace(",", " ").split()]
        needs.append(Need(words, tuple(dict.fromkeys(k for k in ids if 0 < k <= len(needs)))))
    return needs
