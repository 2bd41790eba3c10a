"""The rule that asks for a figure in another unit."""

from __future__ import annotations

from podium_lessons.worlds.rules.answer import Answer, make_verifier, name_terms
from podium_lessons.worlds.rules.calculate import draw_number, read_figure
from podium_lessons.worlds.terms import PlanDraft, Term, TermMaker
from pool_registry.actions import JsonValue


def ask_conversion(maker: TermMaker, steps: int) -> Answer | None:
    """A figure in another unit: one that the domain converts, or a unit of measure that everybody knows."""
    own = list(enumerate(maker.table.data.converters))
    maker.random.shuffle(own)
    for index, data in own:
        term = draw_number(maker, steps - 1, data.unit)
        if term is not None:
            return _convert_own(maker, term, index, data.to, read_figure(term) * data.factor)
    return _convert_physical(maker, steps)


def _convert_own(maker: TermMaker, term: Term, index: int, to: str, value: float) -> Answer:
    tool = maker.toolkit.converter(index)
    need = maker.need("convert", **{"from": term.unit, "to": to})

    def emit(draft: PlanDraft) -> JsonValue:
        by_role: dict[str, JsonValue] = {"value": term.emit(draft)}
        if "to" in tool.roles:
            by_role["to"] = tool.spellings["to"]
        return draft.call(tool, need, by_role)

    return Answer({**name_terms([term]), "from": term.unit, "to": to}, emit, make_verifier(value))


def _convert_physical(maker: TermMaker, steps: int) -> Answer | None:
    from pool_registry.workers.units import convert

    units = {
        field.unit: unit
        for entity in maker.table.data.entities
        for field in entity.fields
        for unit in maker.random.sample(maker.words.physical, len(maker.words.physical))
        if field.kind == "number" and field.unit in unit.words
    }
    if not units:
        return None
    written = maker.random.choice(sorted(units))
    unit, term = units[written], draw_number(maker, steps - 1, written)
    if term is None:
        return None
    tool = maker.toolkit.general("units")
    need = maker.need("units")

    def emit(draft: PlanDraft) -> JsonValue:
        return draft.call(tool, need, {"value": term.emit(draft), "from": unit.unit, "to": unit.to})

    value = convert(read_figure(term), unit.unit, unit.to)
    return Answer({**name_terms([term]), "from": written, "to": unit.name}, emit, make_verifier(value))
