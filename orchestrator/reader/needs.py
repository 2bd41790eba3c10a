"""Needs: what each step of a plan is for, in words, and which earlier steps it may see; before a worker is chosen.

    1. distance between two airports
    2. convert units of measure (1)

Parsing is total: any text gives needs, a refusal or nothing, never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pool_registry.text import one_line, shorten

MAX_NEEDS = 24
MAX_NEED_CHARS = 160

_LINE = re.compile(r"\s*(?:[0-9]{1,3}[.)]\s*)?(.*?)\s*(?:\(([0-9][0-9, ]*)\))?\s*")


@dataclass(frozen=True, slots=True)
class Need:
    """What one step is for. `access` are the places of earlier needs, counted from 1, whose outputs it may see."""

    text: str
    access: tuple[int, ...] = ()


def format_needs(needs: Sequence[Need]) -> str:
    """The needs as a model writes them, one a line."""
    return "\n".join(f"{place}. {_format_need(need)}" for place, need in enumerate(needs, start=1))


def _format_need(need: Need) -> str:
    return f"{need.text} ({', '.join(map(str, need.access))})" if need.access else need.text


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
