"""The grammar of queries: each rule asks something about one or more terms, and says how it is found out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from orchestrator.plan import Turn
from podium_lessons.worlds.rules.answer import Answer
from podium_lessons.worlds.rules.arithmetic import (
    ask_average,
    ask_difference,
    ask_plus,
    ask_ratio,
    ask_scale,
    ask_sum,
    ask_times,
)
from podium_lessons.worlds.rules.comparisons import CHAIN_COMPARE, ask_comparison, ask_threshold
from podium_lessons.worlds.rules.conversions import ask_conversion
from podium_lessons.worlds.rules.dates import ask_add_days, ask_days_between
from podium_lessons.worlds.rules.look_ups import ask_both, ask_list, ask_several, ask_term
from podium_lessons.worlds.spelling import capitalize, fill_text
from podium_lessons.worlds.terms import PlanDraft, TermMaker
from pool_registry.actions import as_text
from trainer.tasks.verifier import AnyVerifier

Rule: TypeAlias = Callable[[TermMaker, int], Answer | None]
RULES: dict[str, Rule] = {
    "ask": ask_term, "several": ask_several, "both": ask_both, "list": ask_list,
    "difference": ask_difference, "sum": ask_sum, "average": ask_average, "ratio": ask_ratio,
    "scale": ask_scale, "plus": ask_plus, "times": ask_times,
    "compare": ask_comparison, "threshold": ask_threshold, "convert": ask_conversion,
    "days_between": ask_days_between, "add_days": ask_add_days,
}  # fmt: skip
MIN_STEPS = {
    "ask": 1, "list": 1, "several": 2, "both": 2, "scale": 2, "plus": 2, "times": 2, "threshold": 2, "convert": 2,
    "add_days": 2, "difference": 3, "sum": 3, "average": 3, "ratio": 3, "compare": 3, "days_between": 3,
}  # fmt: skip
MAX_STEPS = {
    "ask": 3, "list": 1, "both": 2, "scale": 4, "plus": 4, "times": 4, "add_days": 4, "compare": CHAIN_COMPARE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    """A query with its reference plan and its answer from the table."""

    query: str
    turn: Turn
    verifier: AnyVerifier


def write_question(
    rule: str, maker: TermMaker, steps: int, texts: Sequence[str], frame: Callable[[str], str]
) -> Question | None:
    """A question by a rule that takes `steps` steps; None where the rule or the world has none. `texts` are the rule's
    texts to choose from, `frame` adds what people say around a question."""
    result = RULES[rule](maker, steps)
    if result is None:
        return None
    draft = PlanDraft()
    answer = result.emit(draft)
    calls = {(step.worker, as_text(dict(step.arguments))) for step in draft.steps}
    if len(draft.steps) != steps or len(calls) < steps:  # nobody asks for one thing twice
        return None
    if result.questions and maker.random.random() < 0.45:
        query = maker.random.choice(result.questions)
    else:
        query = fill_text(maker.random.choice(texts), result.texts)
    return Question(capitalize(frame(query)), Turn(tuple(draft.steps), answer), result.verifier)
