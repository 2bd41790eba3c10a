"""Calculations with the figures of terms, by the tools of the pool."""

from __future__ import annotations

from collections.abc import Sequence

from podium_lessons.worlds.rules.answer import Answer, join_texts, make_verifier, name_terms
from podium_lessons.worlds.rules.draw_terms import draw_alike, split_steps_anyhow
from podium_lessons.worlds.terms import PlanDraft, Term, TermMaker
from pool_registry.actions import JsonValue


def calculate(
    maker: TermMaker, terms: Sequence[Term], formula: str, value: float, operation: str = "", number: str = ""
) -> Answer:
    """The figures of terms in a formula, by the calculator or, for two of them, by a tool for one operation. `number`
    is the second operand where there is one term."""
    plain = operation and not maker.toolkit.covers("calculate") and maker.random.random() < 0.3
    tool = maker.toolkit.general("arithmetic" if plain else "calculate")

    def emit(draft: PlanDraft) -> JsonValue:
        figures = [*(term.emit(draft) for term in terms), *([number] if number else [])]
        if plain:
            by_role: dict[str, JsonValue] = {
                "left": figures[0], "operation": tool.spellings[operation], "right": figures[1]
            }  # fmt: skip
        else:
            by_role = {"expression": formula.format(*figures)}
        return draft.call(tool, maker.need("arithmetic" if plain else "calculate"), by_role)

    return Answer(name_terms(terms), emit, make_verifier(value))


def draw_number(maker: TermMaker, steps: int, unit: str | None = None) -> Term | None:
    """A number in `steps` steps: a term, or where there are enough steps the sum of several."""
    if steps >= 3:
        terms = draw_alike(maker, split_steps_anyhow(maker.random, steps - 1), unit)
        if terms is None:
            return None
        value = sum(map(read_figure, terms))
        result = calculate(maker, terms, write_sum(len(terms)), value)
        text = f"the sum of {join_texts([term.text for term in terms])}"
        terse = " + ".join(term.terse for term in terms)
        return Term(text, terse, value, lambda draft: str(result.emit(draft)), steps, "number", unit=terms[0].unit)
    return maker.draw("number", steps, unit)


def write_sum(count: int) -> str:
    """The formula that adds up `count` figures: "{0} + {1}"."""
    return " + ".join(f"{{{place}}}" for place in range(count))


def read_figure(term: Term) -> float:
    """The value of a term of kind number."""
    assert isinstance(term.value, int | float), "terms of kind number have numbers"
    return float(term.value)
