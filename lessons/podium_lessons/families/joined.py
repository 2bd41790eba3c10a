"""Level 4 of any family: two of its level-2 queries in one, whose results are combined. More than six steps."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Generic

from orchestrator.plan import Turn, renumber_step
from podium_lessons.families.steps import calculate
from podium_lessons.lesson_data import FamilyData, load_lesson_data
from podium_lessons.template_suite import build_templates
from podium_lessons.wordings import Template, Wordings, match_templates
from trainer.tasks.suite import P, Suite
from trainer.tasks.verifier import NumberWithin, Verifier, is_near_tie, make_rounded_verifier

LEVEL = 4
PART_LEVEL = 2
DIGITS = 3  # of a quotient
MIN_QUOTIENT = 0.01  # below, three decimals say next to nothing
ADD, SUBTRACT, DIVIDE = "add", "subtract", "divide"
EXPRESSIONS = {ADD: "{0} + {1}", SUBTRACT: "{0} - {1}", DIVIDE: f"round({{0}} / {{1}}, {DIGITS})"}


class JoinedData(FamilyData):
    """The texts of joined queries, and what they call each operation."""

    operations: dict[str, str]


@dataclass(frozen=True, slots=True)
class Pair(Generic[P]):
    """Everything a joined query says."""

    template: int
    operation: str
    first: P
    second: P


class Joined(Suite[P | Pair[P]], Generic[P]):
    """A family with a fourth level; the other levels are the family's own."""

    def __init__(self, family: Suite[P]) -> None:
        self.family = family
        self.name = family.name
        self.description = family.description
        self.workers = tuple(dict.fromkeys((*family.workers, "calculator")))
        self.levels = (*family.levels, LEVEL)
        self.held_out = family.held_out

    def draw(self, level: int, split: str, random: Random) -> P | Pair[P]:
        if level != LEVEL:
            return self.family.draw(level, split, random)
        return Pair(
            template=load_joined_templates().draw(split, random),
            operation=random.choice(list(_load_data().operations)),
            first=self.family.draw(PART_LEVEL, split, random),
            second=self.family.draw(PART_LEVEL, split, random),
        )

    def write(self, parameters: P | Pair[P]) -> str:
        if not isinstance(parameters, Pair):
            return self.family.write(parameters)
        first, second = self.family.write(parameters.first), self.family.write(parameters.second)
        words = _load_data().operations[parameters.operation]
        return load_joined_templates()[parameters.template].fill(first=first, second=second, operation=words)

    def read(self, query: str) -> P | Pair[P] | None:
        match = match_templates({LEVEL: load_joined_templates()}, query)
        if match is not None:
            _, number, gaps = match
            first, second = self.family.read(gaps["first"]), self.family.read(gaps["second"])
            if first is not None and second is not None:
                operations = {words: operation for operation, words in _load_data().operations.items()}
                return Pair(number, operations[gaps["operation"].lower()], first, second)
        return self.family.read(query)

    def level_of(self, parameters: P | Pair[P]) -> int:
        return LEVEL if isinstance(parameters, Pair) else self.family.level_of(parameters)

    def uses_new_words(self, parameters: P | Pair[P]) -> bool:
        if not isinstance(parameters, Pair):
            return self.family.uses_new_words(parameters)
        parts = (parameters.first, parameters.second)
        return load_joined_templates().is_held_out(parameters.template) or any(map(self.family.uses_new_words, parts))

    def solve(self, parameters: P | Pair[P]) -> tuple[Verifier, Turn] | None:
        if not isinstance(parameters, Pair):
            return self.family.solve(parameters)
        parts = (parameters.first, parameters.second)
        if any(self.family.level_of(part) != PART_LEVEL for part in parts):
            return None
        first, second = self.family.solve(parameters.first), self.family.solve(parameters.second)
        if first is None or second is None:
            return None
        verifier = _combine_verifiers(first[0], second[0], parameters.operation)
        return None if verifier is None else (verifier, join_plans(first[1], second[1], parameters.operation))


@cache
def _load_data() -> JoinedData:
    return load_lesson_data("joined", JoinedData)


@cache
def load_joined_templates() -> Wordings[Template]:
    """The texts of joined queries, whatever their family."""
    gaps = {"first": ".+?", "second": ".+?", "operation": "|".join(map(re.escape, _load_data().operations.values()))}
    return build_templates("joined", _load_data(), gaps)[LEVEL, ""]


def _combine_verifiers(first: Verifier, second: Verifier, operation: str) -> Verifier | None:
    """The grader of the combined result. It allows for parts that were rounded, as they are asked for, or
    not; None where that would matter, and for parts that are no numbers."""
    if not isinstance(first, NumberWithin) or not isinstance(second, NumberWithin):
        return None
    if operation != DIVIDE:
        value = first.expected + (second.expected if operation == ADD else -second.expected)
        return NumberWithin(value, first.tolerance + second.tolerance + 1e-9 * max(1.0, abs(value)))
    if not second.expected:
        return None
    value = first.expected / second.expected
    doubt = (first.tolerance + abs(value) * second.tolerance) / abs(second.expected)
    if abs(value) < MIN_QUOTIENT or doubt > 0.5 * 10.0**-DIGITS or is_near_tie(value, DIGITS):
        return None
    rounded = make_rounded_verifier(value, DIGITS)
    return NumberWithin(rounded.expected, rounded.tolerance + doubt)


def join_plans(first: Turn, second: Turn, operation: str) -> Turn:
    """Join both plans in one turn: the second's steps count on, and a last step combines the answers."""
    shift = len(first.steps)
    ids = {step.id: step.id + shift for step in second.steps}
    moved = tuple(renumber_step(step, ids) for step in second.steps)
    one, two, last = shift, shift + len(moved), shift + len(moved) + 1
    expression = EXPRESSIONS[operation].format(f"${one}", f"${two}")
    return Turn((*first.steps, *moved, calculate(last, expression, (one, two))), f"${last}")
