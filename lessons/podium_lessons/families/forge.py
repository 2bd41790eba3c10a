"""Family `forge`: several exact computations at once, joined by modular arithmetic.

Each part is a snippet for the sandbox; a calculator joins them. L1 has 2 parts, L2 3, L3 4, all parallel.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from random import Random

from pydantic import Field

from orchestrator.plan import Step, Turn
from podium_lessons.families.steps import calculate
from podium_lessons.lesson_data import MIN_TEXTS, load_lesson_data
from podium_lessons.wordings import Template, Wordings, expand_choices
from trainer.tasks.suite import Suite, assign_split
from trainer.tasks.task_data import TaskData
from trainer.tasks.verifier import NumberWithin, Verifier

MODULUS = 1009
LETTERS = "ABCD"


@dataclass(frozen=True, slots=True)
class Computation:
    """A sort of computation: its words, how to do it in Python, and how we do it ourselves."""

    name: str
    words: str  # with {numbers}
    count: int  # how many numbers it takes
    low: int
    high: int
    code: str
    compute: Callable[[list[int]], int]

    @property
    def pattern(self) -> re.Pattern[str]:
        """Matches the words with any numbers in them."""
        number = r"[0-9]{1,7}"
        words = re.escape(self.words).replace(r"\{numbers\}", rf"(?P<numbers>{number}(?:, ?{number})*)")
        return re.compile(words, re.IGNORECASE)


def _count_primes(numbers: list[int]) -> int:
    limit = numbers[0]
    sieve = bytearray([1]) * limit
    sieve[0:2] = b"\0\0"
    for number in range(2, math.isqrt(limit) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, limit, number)))
    return sum(sieve)


COMPUTATIONS = (
    Computation("gcd", "GCD of {numbers}", 2, 100, 99_999, "import math\nmath.gcd({numbers})", lambda n: math.gcd(*n)),
    Computation("lcm", "LCM of {numbers}", 3, 100, 999, "import math\nmath.lcm({numbers})", lambda n: math.lcm(*n)),
    Computation("product", "product of {numbers}", 3, 100, 999, "import math\nmath.prod([{numbers}])", math.prod),
    Computation(
        "primes",
        "number of primes below {numbers}",
        1,
        1000,
        9999,
        "n = {numbers}\nsum(all(k % d for d in range(2, int(k**0.5) + 1)) for k in range(2, n))",
        _count_primes,
    ),
    Computation(
        "squares",
        "sum of the squares up to {numbers}",
        1,
        100,
        9999,
        "n = {numbers}\nsum(k * k for k in range(1, n + 1))",
        lambda n: n[0] * (n[0] + 1) * (2 * n[0] + 1) // 6,
    ),
    Computation(
        "digits",
        "digit sum of 2 to the power {numbers}",
        1,
        100,
        2999,
        "sum(map(int, str(2 ** {numbers})))",
        lambda n: sum(int(digit) for digit in str(2 ** n[0])),
    ),
)
_BY_NAME = {kind.name: kind for kind in COMPUTATIONS}
_TERM = re.compile(r"([0-9]{1,3})([A-D])")
_SUM = r"[0-9]{1,3}[A-D](?: ?\+ ?[0-9]{1,3}[A-D])*"


class ForgeWording(TaskData):
    """One way to put the question; `mark` stands before each part and `between` two of them."""

    whole: str  # with {parts}, {sum} and {modulus}
    mark: str  # with {letter}
    between: str

    @cached_property
    def template(self) -> Template:
        return Template(self.whole, {"parts": ".+?", "sum": _SUM, "modulus": "[1-9][0-9]{1,5}"})

    def write_parts(self, parts: Sequence[str]) -> str:
        marks = [self.mark.format(letter=letter) for letter in LETTERS]
        return self.between.join(mark + part for mark, part in zip(marks, parts, strict=False))

    def read_parts(self, text: str) -> list[str] | None:
        """The parts when their letters run A, B, C ..., else None."""
        mark = re.escape(self.mark).replace(r"\{letter\}", f"([{LETTERS}])")
        before, *pieces = re.split(mark, text, flags=re.IGNORECASE)
        letters, parts = "".join(pieces[::2]).upper(), pieces[1::2]
        if before or letters != LETTERS[: len(parts)]:
            return None
        return [part.strip(" .,;") for part in parts]


class ForgeData(TaskData):
    """The ways to put the question; `whole` may hold choices."""

    wordings: tuple[ForgeWording, ...] = Field(min_length=MIN_TEXTS)


@dataclass(frozen=True, slots=True)
class ForgeQuery:
    """The parts as (kind, numbers), their weights in the sum, and the modulus."""

    parts: tuple[tuple[str, tuple[int, ...]], ...]
    weights: tuple[int, ...]
    modulus: int = MODULUS
    wording: int = 0


class Forge(Suite[ForgeQuery]):
    name = "forge"
    description = "Exact computations in parallel, joined by modular arithmetic."
    workers = ("python", "calculator")

    def draw(self, level: int, split: str, random: Random) -> ForgeQuery:
        kinds = random.sample(COMPUTATIONS, level + 1)
        parts = tuple((kind.name, _draw_numbers(kind, split, random)) for kind in kinds)
        weights = tuple(random.randint(2, 9) for _ in parts)
        return ForgeQuery(parts, weights, wording=load_wordings().draw(split, random))

    def write(self, parameters: ForgeQuery) -> str:
        wording = load_wordings()[parameters.wording]
        parts = [_BY_NAME[name].words.format(numbers=_join_numbers(numbers)) for name, numbers in parameters.parts]
        terms = [f"{weight}{letter}" for weight, letter in zip(parameters.weights, LETTERS, strict=False)]
        return wording.template.fill(
            parts=wording.write_parts(parts), sum=" + ".join(terms), modulus=parameters.modulus
        )

    def read(self, query: str) -> ForgeQuery | None:
        for number, wording in enumerate(load_wordings()):
            gaps = wording.template.match(query)
            if gaps is None:
                continue
            parts = [_parse_part(part) for part in wording.read_parts(gaps["parts"]) or ()]
            weights = _parse_weights(gaps["sum"], len(parts))
            if len(parts) < 2 or None in parts or weights is None:
                continue
            return ForgeQuery(tuple(part for part in parts if part), weights, int(gaps["modulus"]), number)
        return None

    def level_of(self, parameters: ForgeQuery) -> int:
        return len(parameters.parts) - 1

    def uses_new_words(self, parameters: ForgeQuery) -> bool:
        return load_wordings().is_held_out(parameters.wording)

    def solve(self, parameters: ForgeQuery) -> tuple[Verifier, Turn] | None:
        values = [_BY_NAME[name].compute(list(numbers)) for name, numbers in parameters.parts]
        total = sum(weight * value for weight, value in zip(parameters.weights, values, strict=True))
        return NumberWithin(total % parameters.modulus, 0.0), _make_plan(parameters)


def _make_plan(p: ForgeQuery) -> Turn:
    steps = [
        Step(
            k,
            "python",
            {"code": _BY_NAME[name].code.format(numbers=_join_numbers(numbers))},
            need="run a Python snippet",
        )
        for k, (name, numbers) in enumerate(p.parts, start=1)
    ]
    terms = "+".join(f"{weight}*${k}" for k, weight in enumerate(p.weights, start=1))
    last = len(steps) + 1
    return Turn((*steps, calculate(last, f"({terms})%{p.modulus}", range(1, last))), f"${last}")


@cache
def load_wordings() -> Wordings[ForgeWording]:
    """Every wording with its choices made."""
    data = load_lesson_data("forge", ForgeData)
    return Wordings(
        [wording.model_copy(update={"whole": whole}) for whole in expand_choices(wording.whole)]
        for wording in data.wordings
    )


def _draw_numbers(kind: Computation, split: str, random: Random) -> tuple[int, ...]:
    """Numbers whose hash lies in this split, so that no two splits share a part of any task."""
    while True:
        numbers = tuple(random.randint(kind.low, kind.high) for _ in range(kind.count))
        if assign_split(f"{kind.name} {sorted(numbers)}") == split:
            return numbers


def _parse_weights(text: str, count: int) -> tuple[int, ...] | None:
    """8, 4 and 8 of "8A + 4B + 8C", when it names the parts in order."""
    terms = [match for term in text.split("+") if (match := _TERM.fullmatch(term.strip()))]
    named = "".join(term[2] for term in terms)
    return tuple(int(term[1]) for term in terms) if named == LETTERS[:count] else None


def _parse_part(text: str) -> tuple[str, tuple[int, ...]] | None:
    for kind in COMPUTATIONS:
        match = kind.pattern.fullmatch(text)
        if match is not None:
            numbers = tuple(int(number) for number in match["numbers"].split(","))
            in_range = all(1 < number <= kind.high for number in numbers)
            return (kind.name, numbers) if len(numbers) == kind.count and in_range else None
    return None


def _join_numbers(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))
