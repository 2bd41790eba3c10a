"""Family `forge`: several exact computations at once, joined by modular arithmetic.

Each part is a snippet for the sandbox; a calculator joins them. L1 has 2 parts, L2 3, L3 4, all parallel.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from orchestrator.plan import Step, Turn
from trainer.tasks.suite import SPLITS, Suite
from trainer.tasks.verifier import NumberWithin, Verifier

MODULUS = 1009
LETTERS = "ABCD"


@dataclass(frozen=True, slots=True)
class PartKind:
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
        """Matches the words with any numbers in their range of digits."""
        return re.compile(re.escape(self.words).replace(r"\{numbers\}", r"(?P<numbers>\d{1,7}(?:, \d{1,7})*)"))


def _primes_below(numbers: list[int]) -> int:
    limit = numbers[0]
    sieve = bytearray([1]) * limit
    sieve[0:2] = b"\0\0"
    for number in range(2, math.isqrt(limit) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, limit, number)))
    return sum(sieve)


PART_KINDS = (
    PartKind("gcd", "GCD of {numbers}", 2, 100, 99_999, "import math\nmath.gcd({numbers})", lambda n: math.gcd(*n)),
    PartKind("lcm", "LCM of {numbers}", 3, 100, 999, "import math\nmath.lcm({numbers})", lambda n: math.lcm(*n)),
    PartKind("product", "product of {numbers}", 3, 100, 999, "import math\nmath.prod([{numbers}])", math.prod),
    PartKind(
        "primes",
        "number of primes below {numbers}",
        1,
        1000,
        9999,
        "n = {numbers}\nsum(all(k % d for d in range(2, int(k**0.5) + 1)) for k in range(2, n))",
        _primes_below,
    ),
    PartKind(
        "squares",
        "sum of the squares up to {numbers}",
        1,
        100,
        9999,
        "n = {numbers}\nsum(k * k for k in range(1, n + 1))",
        lambda n: n[0] * (n[0] + 1) * (2 * n[0] + 1) // 6,
    ),
    PartKind(
        "digits",
        "digit sum of 2 to the power {numbers}",
        1,
        100,
        2999,
        "sum(map(int, str(2 ** {numbers})))",
        lambda n: sum(int(digit) for digit in str(2 ** n[0])),
    ),
)
_BY_NAME = {kind.name: kind for kind in PART_KINDS}
_QUERY = re.compile(r"(?P<parts>\(A\) .+?)\.? Then report \((?P<sum>[^()]+)\) mod (?P<modulus>\d{2,6})\.?")
_TERM = re.compile(r"(\d{1,3})([A-D])")


@dataclass(frozen=True, slots=True)
class ForgeQuery:
    """The parts as (kind, numbers), their weights in the sum, and the modulus."""

    parts: tuple[tuple[str, tuple[int, ...]], ...]
    weights: tuple[int, ...]
    modulus: int = MODULUS


class Forge(Suite[ForgeQuery]):
    name = "forge"
    description = "Exact computations in parallel, joined by modular arithmetic."
    workers = ("python", "calculator")

    def draw(self, level: int, split: str, random: Random) -> ForgeQuery:
        kinds = random.sample(PART_KINDS, level + 1)
        parts = tuple((kind.name, _numbers(kind, split, random)) for kind in kinds)
        return ForgeQuery(parts, tuple(random.randint(2, 9) for _ in parts))

    def write(self, parameters: ForgeQuery) -> str:
        written = [
            f"({letter}) {_BY_NAME[name].words.format(numbers=_listed(numbers))}"
            for letter, (name, numbers) in zip(LETTERS, parameters.parts, strict=False)
        ]
        terms = [f"{weight}{letter}" for weight, letter in zip(parameters.weights, LETTERS, strict=False)]
        return f"{' '.join(written)}. Then report ({' + '.join(terms)}) mod {parameters.modulus}."

    def read(self, query: str) -> ForgeQuery | None:
        found = _QUERY.fullmatch(" ".join(query.split()))
        if found is None:
            return None
        texts = re.split(r"\s*\([A-D]\) ", " " + found["parts"])[1:]
        parts = [_part(text.strip().rstrip(".")) for text in texts]
        terms = [_TERM.fullmatch(term.strip()) for term in found["sum"].split("+")]
        named = "".join(term[2] for term in terms if term)
        if None in parts or len(named) != len(terms) or named != LETTERS[: len(parts)] or len(parts) < 2:
            return None
        weights = tuple(int(term[1]) for term in terms if term)
        return ForgeQuery(tuple(part for part in parts if part), weights, int(found["modulus"]))

    def level_of(self, parameters: ForgeQuery) -> int:
        return len(parameters.parts) - 1

    def solve(self, parameters: ForgeQuery) -> tuple[Verifier, Turn] | None:
        values = [_BY_NAME[name].compute(list(numbers)) for name, numbers in parameters.parts]
        total = sum(weight * value for weight, value in zip(parameters.weights, values, strict=True))
        return NumberWithin(total % parameters.modulus, 0.0), _plan(parameters)


def _plan(p: ForgeQuery) -> Turn:
    steps = [
        Step(k, "python", {"code": _BY_NAME[name].code.format(numbers=_listed(numbers))})
        for k, (name, numbers) in enumerate(p.parts, start=1)
    ]
    terms = "+".join(f"{weight}*${k}" for k, weight in enumerate(p.weights, start=1))
    last = len(steps) + 1
    join = Step(last, "calculator", {"expression": f"({terms})%{p.modulus}"}, tuple(range(1, last)))
    return Turn((*steps, join), f"${last}")


def _numbers(kind: PartKind, split: str, random: Random) -> tuple[int, ...]:
    """Numbers of this split's residue class modulo 3, so that no two splits share a part."""
    residue = SPLITS.index(split)
    return tuple(
        number - number % 3 + residue for number in (random.randint(kind.low, kind.high - 3) for _ in range(kind.count))
    )


def _part(text: str) -> tuple[str, tuple[int, ...]] | None:
    for kind in PART_KINDS:
        found = kind.pattern.fullmatch(text)
        if found is not None:
            numbers = tuple(int(number) for number in found["numbers"].split(", "))
            in_range = all(1 < number <= kind.high for number in numbers)
            return (kind.name, numbers) if len(numbers) == kind.count and in_range else None
    return None


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))
