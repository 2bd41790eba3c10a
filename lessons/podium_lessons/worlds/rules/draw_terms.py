"""The draw of several terms for one query, and how its steps are shared out among them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from podium_lessons.worlds.terms import Term, TermMaker


def draw_terms(maker: TermMaker, kind: str, costs: Sequence[int]) -> list[Term] | None:
    """Draw different terms of a kind, one for each cost."""
    if not costs:
        return None
    terms = [maker.draw(kind, cost) for cost in costs]
    drawn = [term for term in terms if term is not None]
    return drawn if len(drawn) == len(costs) and len({term.text for term in drawn}) == len(drawn) else None


def draw_alike(maker: TermMaker, costs: Sequence[int], unit: str | None = None) -> list[Term] | None:
    """Draw different numbers in one unit: figures that may be added and compared."""
    if not costs:
        return None
    first = maker.draw("number", costs[0], unit)
    if first is None:
        return None
    if len(set(costs)) == 1 and costs[0] == 1 and maker.random.random() < 0.6:
        return _draw_same_field(maker, len(costs), unit)
    rest = [maker.draw("number", cost, first.unit) for cost in costs[1:]]
    terms = [first, *[term for term in rest if term is not None]]
    return terms if len(terms) == len(costs) and len({term.text for term in terms}) == len(terms) else None


def _draw_same_field(maker: TermMaker, count: int, unit: str | None) -> list[Term] | None:
    """One field of several individuals."""
    drawn = maker.draw_field("number", lambda _, data: unit is None or data.unit == unit)
    if drawn is None:
        return None
    entity, data = drawn
    return [maker.look_up(entity, name, data) for name in maker.random.sample(maker.table.names(entity), count)]


def split_steps(random: Random, steps: int, parts: int) -> list[int]:
    """Split `steps` into `parts` parts of at least 1 and at most 3; none where that cannot be."""
    if not parts <= steps <= 3 * parts:
        return []
    costs = [1] * parts
    for _ in range(steps - parts):
        costs[random.choice([place for place, cost in enumerate(costs) if cost < 3])] += 1
    return costs


def split_steps_anyhow(random: Random, steps: int) -> list[int]:
    """Split `steps` into two to four parts."""
    return split_steps(random, steps, random.choice([parts for parts in (2, 3, 4) if parts <= max(steps, 2)]))
