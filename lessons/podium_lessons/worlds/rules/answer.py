"""What a rule of the grammar draws: the gaps of its texts, the steps that find its answer, and the grader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from podium_lessons.worlds.terms import PlanDraft, Term
from pool_registry.actions import JsonValue
from trainer.tasks.verifier import AnyVerifier, ExactText, NumberWithin, SameSet

TOLERANCE = 0.006  # of numbers: the last of two decimals may be rounded either way


@dataclass(frozen=True, slots=True)
class Answer:
    """What a rule drew: the gaps of its texts, its steps, and its answer."""

    texts: dict[str, str]
    emit: Callable[[PlanDraft], JsonValue]
    verifier: AnyVerifier
    questions: tuple[str, ...] = ()


def make_verifier(value: JsonValue) -> AnyVerifier:
    """The grader for a value of the table."""
    if isinstance(value, list):
        return SameSet(tuple(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return NumberWithin(round(float(value), 6), TOLERANCE)
    return ExactText(str(value))


def name_terms(terms: Sequence[Term]) -> dict[str, str]:
    """The gaps of a text that speak of terms: {a}, {b}, terse {ta}, {tb}, {list} of all and {plus} between them."""
    texts = {letter: term.text for letter, term in zip("abcd", terms, strict=False)}
    texts |= {f"t{letter}": term.terse for letter, term in zip("abcd", terms, strict=False)}
    return {
        **texts,
        "list": join_texts([term.text for term in terms]),
        "plus": " + ".join(term.terse for term in terms),
    }


def join_texts(texts: Sequence[str]) -> str:
    """Join texts as people list them: "a, b and c"."""
    return f"{', '.join(texts[:-1])} and {texts[-1]}" if len(texts) > 1 else texts[0]
