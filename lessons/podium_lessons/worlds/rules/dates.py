"""Rules about dates: the days between two, and the date some days after one."""

from __future__ import annotations

from datetime import date, timedelta

from podium_lessons.worlds.rules.answer import Answer, make_verifier, name_terms
from podium_lessons.worlds.rules.draw_terms import draw_terms, split_steps
from podium_lessons.worlds.terms import PlanDraft, TermMaker
from pool_registry.actions import JsonValue
from trainer.tasks.verifier import ExactText


def ask_days_between(maker: TermMaker, steps: int) -> Answer | None:
    """The days between two dates."""
    terms = draw_terms(maker, "date", split_steps(maker.random, steps - 1, 2))
    if terms is None:
        return None
    days = abs((date.fromisoformat(str(terms[0].value)) - date.fromisoformat(str(terms[1].value))).days)
    tool = maker.toolkit.general("days_between")

    def emit(draft: PlanDraft) -> JsonValue:
        start, end = [term.emit(draft) for term in terms]
        return draft.call(tool, maker.need("days_between"), {"start": start, "end": end})

    return Answer(name_terms(terms), emit, make_verifier(days))


def ask_add_days(maker: TermMaker, steps: int) -> Answer | None:
    """The date some days after another."""
    term = maker.draw("date", steps - 1)
    if term is None:
        return None
    days = maker.random.choice((7, 10, 14, 21, 28, 30, 45, 60, 90, 100, 180, 365, maker.random.randint(3, 400)))
    tool = maker.toolkit.general("add_days")

    def emit(draft: PlanDraft) -> JsonValue:
        return draft.call(tool, maker.need("add_days"), {"start": term.emit(draft), "days": days})

    later = date.fromisoformat(str(term.value)) + timedelta(days=days)
    return Answer({**name_terms([term]), "days": str(days)}, emit, ExactText(later.isoformat()))
