"""Graders: does an answer state what a task expects?

A grader is a total function of any answer, a JSON value or a model's text: it returns False where
others raise, and never accepts None. Only the *last* number counts, so that an answer cannot list
candidates. What an answer tag encloses stands for the answer. `PythonCheck` and `JudgeCheck` only say what
has to be run; `trainer.evaluation.grading` runs it. A `ProgramVerifier` asks a program, which takes time and can fail.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from orchestrator.reader.refusal import REFUSAL, is_refusal
from pool_registry.actions import JsonValue, as_text
from pool_registry.schemas.regex import matches_whole, pattern_problem

_TAIL = 4000  # the end of an answer is where it stands; bounds the work on a text of any length
MAX_WORDS_AROUND = 120  # characters of an answer besides the values that it states
STATED_TOLERANCE = 0.006  # of a number in a text: the last of two decimals may be rounded either way
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


@runtime_checkable
class ProgramVerifier(Verifier, Protocol):
    """Judges by a program of its own. `accepts` takes an answer that cannot be judged for a wrong one."""

    def ask(self, answer: object) -> bool:
        """Whether the answer is right, after seconds perhaps. Raises NotGraded where the program fails."""


@dataclass(frozen=True, slots=True)
class NumberWithin:
    """Right when the last number of the answer differs from `expected` by at most `tolerance`."""

    expected: float
    tolerance: float
    kind: str = "number"

    def accepts(self, answer: object) -> bool:
        number = parse_last_number(extract_answer(answer))
        return number is not None and abs(number - self.expected) <= self.tolerance


@dataclass(frozen=True, slots=True)
class ExactText:
    """Right when the answer is the text `expected`; case and white space do not matter."""

    expected: str
    kind: str = "exact"

    def accepts(self, answer: object) -> bool:
        text = _fold(extract_answer(answer))
        return text != "" and text == _fold(self.expected)


@dataclass(frozen=True, slots=True)
class OneOf:
    """Right when the answer is one of several texts that mean the same, each compared as by `ExactText`."""

    expected: tuple[str, ...]
    kind: str = "one_of"

    def accepts(self, answer: object) -> bool:
        return any(ExactText(text).accepts(answer) for text in self.expected)


@dataclass(frozen=True, slots=True)
class SameSet:
    """Right when the answer lists exactly the members of `expected`, in any order and however often.

    The answer is a JSON list or text with commas, so members that hold a comma (and numbers such as
    "1,234") need the list. Numbers are compared by value to nine digits, everything else as by `ExactText`.
    """

    expected: tuple[JsonValue, ...]
    kind: str = "set"

    def accepts(self, answer: object) -> bool:
        members = _make_set(_parse_items(extract_answer(answer)))
        return bool(members) and members == _make_set(self.expected)


@dataclass(frozen=True, slots=True)
class StatesAll:
    """Right when a text states every value of `expected`, in their order, and little besides.

    Numbers may be rounded to two decimals; texts are compared without case. Many words more than the values
    have would be a list of candidates.
    """

    expected: tuple[JsonValue, ...]
    kind: str = "states_all"

    def accepts(self, answer: object) -> bool:
        text = _fold(extract_answer(answer))
        if not text or len(text) > sum(len(as_text(value)) for value in self.expected) + MAX_WORDS_AROUND:
            return False
        place = 0
        for value in self.expected:
            place = _find_end(value, text, place)
            if place < 0:
                return False
        return True


@dataclass(frozen=True, slots=True)
class RefusalVerifier:
    """Right when the answer says that no worker of the pool can do this."""

    expected: str = REFUSAL
    kind: str = "refusal"

    def accepts(self, answer: object) -> bool:
        return is_refusal(extract_answer(answer))


@dataclass(frozen=True, slots=True)
class MatchesPattern:
    """Right when the pattern `expected` matches the whole answer, without the white space around it.

    No pattern can hold up a program: one that `pattern_problem` objects to accepts nothing, and so does
    one that takes too long, or an answer of more than 4,000 characters.
    """

    expected: str
    kind: str = "regex"

    def accepts(self, answer: object) -> bool:
        text = extract_answer(answer).strip()
        if not text or len(text) > _TAIL or pattern_problem(self.expected):
            return False
        try:
            return matches_whole(self.expected, text)
        except (TimeoutError, MemoryError):
            return False


@dataclass(frozen=True, slots=True)
class PythonCheck:
    """Right when the snippet's `check(answer, query)` returns True in the sandbox. `expected` is for people."""

    code: str
    expected: JsonValue = None
    kind: str = "python"


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """Right when a worker of the pool says so, given the expected answer."""

    worker: str
    expected: JsonValue
    kind: str = "judge"


# Letters by both cases: IGNORECASE would also take the long s of other scripts.
_VERDICT = re.compile(r"\W*([Yy][Ee][Ss]|[Nn][Oo])\W*")


def parse_verdict(reply: str) -> bool | None:
    """What a judge replied, YES or NO and nothing else; None for any other reply."""
    match = _VERDICT.fullmatch(reply)
    return None if match is None else match.group(1).lower() == "yes"


AnyVerifier: TypeAlias = Verifier | PythonCheck | JudgeCheck


def make_rounded_verifier(value: float, digits: int) -> NumberWithin:
    """The grader for a number asked for with `digits` decimals: any rounding of the same figure passes."""
    unit = 10.0**-digits
    return NumberWithin(round(value, digits), 0.51 * unit)


def is_near_tie(value: float, digits: int) -> bool:
    """Whether `value` lies so close to the middle of two roundings that they are a matter of taste."""
    scaled = abs(value) * 10.0**digits
    return abs(scaled - math.floor(scaled) - 0.5) < 1e-4


def parse_last_number(text: str) -> float | None:
    """The last finite number written in a text: "1,234.50", "-3", ".5", "2e6"; None without one."""
    numbers = [match.group() for match in _NUMBER.finditer(text[-_TAIL:])]
    if not numbers:
        return None
    number = float(numbers[-1].replace(",", "").replace("−", "-"))
    return number if math.isfinite(number) else None


def parse_whole_number(text: str) -> float | None:
    """The number that a text is, with nothing around it; None when it is something else."""
    return parse_last_number(text) if len(text) < 100 and _NUMBER.fullmatch(text) else None


def extract_answer(answer: object) -> str:
    """The answer as text, or what its last answer tag encloses; "" for None and for what is no JSON."""
    if answer is None:
        return ""
    try:
        text = as_text(answer)
    except (ValueError, TypeError, RecursionError):
        return ""
    tagged = _TAG.findall(text[-_TAIL:])
    return tagged[-1] if tagged else text


def _find_end(value: JsonValue, text: str, start: int) -> int:
    """Find where the first statement of a value at or after `start` ends; -1 without one."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        for match in _NUMBER.finditer(text, start):
            number = parse_last_number(match.group())
            if number is not None and abs(number - value) <= STATED_TOLERANCE:
                return match.end()
        return -1
    whole = re.compile(rf"(?<!\w){re.escape(_fold(as_text(value)))}(?!\w)").search(text, start)
    return whole.end() if whole else -1


def _fold(text: str) -> str:
    """A text without case and without differences in white space or in how accents are encoded."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def _parse_items(text: str) -> list[JsonValue]:
    """The items of a JSON list, or of a text with commas between them."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return list(text.split(","))
    return read if isinstance(read, list) else list(text.split(","))


def _make_set(items: Iterable[JsonValue]) -> frozenset[str | float]:
    """What makes two lists the same set. Items without text are none."""
    texts = (extract_answer(item).strip() for item in items)
    return frozenset(_normalize_member(text) for text in texts if text)


def _normalize_member(text: str) -> str | float:
    number = parse_whole_number(text)
    return _fold(text) if number is None else float(f"{number:.9g}")
