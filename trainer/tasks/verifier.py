"""Exact graders: does an answer state what a task expects?

A grader is a total function of any answer, a JSON value or a model's text: it returns False where
others raise, and never accepts None. Only the *last* number counts, so that an answer cannot list
candidates. What an answer tag encloses stands for the answer.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Protocol

from pool_registry.actions import JsonValue, as_text

_TAIL = 4000  # the end of an answer is where it stands; bounds the work on a text of any length
_TAG = re.compile(r"<answer>(.*?)</answer>", re.IGNORECASE | re.DOTALL)
# Not inside a word in lower case or another number: the 2 of "km2" and of "v1.2.3" is no answer,
# "USD42" and "x=42" are. A hyphen after a letter or digit is no minus sign.
_NUMBER = re.compile(
    r"(?<![a-z0-9_.])(?:(?<![A-Za-z)])[-+−])?"
    r"(?:(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)"
    r"(?:[eE][-+]?[0-9]{1,4}(?![0-9]))?"
)


class Verifier(Protocol):
    """Judges answers to one task."""

    @property
    def kind(self) -> str: ...

    @property
    def expected(self) -> JsonValue: ...

    def accepts(self, answer: object) -> bool:
        """Whether the answer is right. Never raises."""


@dataclass(frozen=True, slots=True)
class NumberWithin:
    """Right when the last number of the answer differs from `expected` by at most `tolerance`."""

    expected: float
    tolerance: float
    kind: str = "number"

    def accepts(self, answer: object) -> bool:
        found = last_number(_stated(answer))
        return found is not None and abs(found - self.expected) <= self.tolerance


def to_digits(value: float, digits: int) -> NumberWithin:
    """The grader for a number asked for with `digits` decimals: any rounding of the same figure passes."""
    unit = 10.0**-digits
    return NumberWithin(round(value, digits), 0.51 * unit)


def near_tie(value: float, digits: int) -> bool:
    """Whether `value` lies so close to the middle of two roundings that they are a matter of taste."""
    scaled = abs(value) * 10.0**digits
    return abs(scaled - math.floor(scaled) - 0.5) < 1e-4


def last_number(text: str) -> float | None:
    """The last finite number written in a text: "1,234.50", "-3", ".5", "2e6"; None without one."""
    found = [match.group() for match in _NUMBER.finditer(text[-_TAIL:])]
    if not found:
        return None
    number = float(found[-1].replace(",", "").replace("−", "-"))
    return number if math.isfinite(number) else None


def _stated(answer: object) -> str:
    """The answer as text, or what its last answer tag encloses; "" for None and for what is no JSON."""
    if answer is None or isinstance(answer, bool):
        return ""
    try:
        text = as_text(answer)
    except (ValueError, TypeError, RecursionError):
        return ""
    tagged = _TAG.findall(text[-_TAIL:])
    return tagged[-1] if tagged else text
