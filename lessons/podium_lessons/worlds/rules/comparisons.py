"""Rules that compare: which of two has more, and whether a figure is above a limit."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from podium_lessons.worlds.rules.answer import Answer, name_terms
from podium_lessons.worlds.rules.calculate import draw_number, read_figure
from podium_lessons.worlds.terms import PlanDraft, TermMaker
from pool_registry.actions import JsonValue
from trainer.tasks.verifier import ExactText

CHAIN_COMPARE = 5  # steps of a comparison of two that others refer to


def ask_comparison(maker: TermMaker, steps: int) -> Answer | None:
    """Ask which of two has more: two that the query names, or two that others refer to (a step more for each)."""
    drawn = maker.draw_field("number")
    back = maker.refer(drawn[0]) if drawn is not None and steps == CHAIN_COMPARE else None
    if drawn is None or (steps == CHAIN_COMPARE and back is None) or steps not in (3, CHAIN_COMPARE):
        return None
    entity, data = drawn
    names = maker.random.sample(maker.table.names(back[0] if back else entity), 2)
    subjects = [maker.name_term(name) for name in names]
    if back:
        subjects = [maker.extend(term, back[0], name, back[1]) for term, name in zip(subjects, names, strict=True)]
    figures = [float(maker.table.value(entity, str(term.value), data.name)) for term in subjects]
    if figures[0] == figures[1]:
        return None
    phrase = maker.draw_phrase(data.phrases)
    tool = maker.toolkit.general("larger")

    def emit(draft: PlanDraft) -> JsonValue:
        by_role: dict[str, JsonValue] = {}
        for side, subject in zip("ab", subjects, strict=True):
            quote = subject.emit(draft)
            one = replace(subject, emit=lambda _, quote=quote: quote)  # type: ignore[misc]
            by_role[f"name_{side}"] = quote
            by_role[f"value_{side}"] = maker.extend(one, entity, str(subject.value), data, phrase).emit(draft)
        return draft.call(tool, maker.need("larger"), by_role)

    winner = subjects[0] if figures[0] > figures[1] else subjects[1]
    maker.extend(subjects[0], entity, str(subjects[0].value), data, phrase)  # makes its tool before the pool is drawn
    return Answer({"x": subjects[0].text, "y": subjects[1].text, "phrase": phrase}, emit, ExactText(str(winner.value)))


def ask_threshold(maker: TermMaker, steps: int) -> Answer | None:
    """Whether a figure is above a limit."""
    term = draw_number(maker, steps - 1)
    if term is None:
        return None
    limit = _draw_limit(maker.random, read_figure(term))
    if abs(limit - read_figure(term)) < 0.01:
        return None
    tool = maker.toolkit.general("threshold")

    def emit(draft: PlanDraft) -> JsonValue:
        return draft.call(tool, maker.need("threshold"), {"value": term.emit(draft), "limit": limit})

    texts = {**name_terms([term]), "limit": f"{limit} {term.unit}".strip()}
    return Answer(texts, emit, ExactText("yes" if read_figure(term) > limit else "no"))


def _draw_limit(random: Random, figure: float) -> int | float:
    """A round limit near a figure, above or below it."""
    limit = figure * random.uniform(0.6, 1.5)
    if figure.is_integer() and figure < 10:
        return max(0, round(figure) + random.choice((-3, -2, -1, 1, 2, 3)))
    return round(limit) if abs(limit) >= 10 else round(limit, 1)
