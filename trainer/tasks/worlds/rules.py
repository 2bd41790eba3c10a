"""The grammar of queries: each rule asks something about one or more terms, and says how it is found out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from random import Random
from typing import TypeAlias

from orchestrator.plan import Turn
from pool_registry.actions import JsonValue, as_text
from trainer.tasks.verifier import AnyVerifier, ExactText, NumberWithin, SameSet, StatesAll
from trainer.tasks.worlds.tables import WorldTable
from trainer.tasks.worlds.terms import PlanDraft, Term, TermMaker
from trainer.tasks.worlds.toolkit import fill_text

CHAIN_COMPARE = 5  # steps of a comparison of two that others refer to
ROUND_NUMBERS = (5, 10, 15, 20, 25, 40, 50, 75, 100, 120, 150, 200, 250)
QUESTION_WORDS = frozenset(("What", "Who", "Which", "When", "Where", "How", "Is", "Does", "In", "On", "By", "Whose"))
TOLERANCE = 0.006  # of numbers: the last of two decimals may be rounded either way


@dataclass(frozen=True, slots=True)
class Question:
    """A query with its reference plan and its answer from the table."""

    query: str
    turn: Turn
    verifier: AnyVerifier


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a rule drew: the gaps of its texts, its steps, and its answer."""

    texts: dict[str, str]
    emit: Callable[[PlanDraft], JsonValue]
    verifier: AnyVerifier
    questions: tuple[str, ...] = ()


Rule: TypeAlias = Callable[[TermMaker, int], _Answer | None]


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
    return Question(_capitalize(frame(query)), Turn(tuple(draft.steps), answer), result.verifier)


def make_verifier(value: JsonValue) -> AnyVerifier:
    """The grader for a value of the table."""
    if isinstance(value, list):
        return SameSet(tuple(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return NumberWithin(round(float(value), 6), TOLERANCE)
    return ExactText(str(value))


def _ask(maker: TermMaker, steps: int) -> _Answer | None:
    term = maker.draw("", steps)
    if term is None:
        return None
    return _Answer(_name_terms([term]), term.emit, make_verifier(term.value), term.questions)


def _several(maker: TermMaker, steps: int) -> _Answer | None:
    terms = _draw_terms(maker, "", _split(maker.random, steps, 3 if steps > 3 and maker.random.random() < 0.5 else 2))
    if terms is None:
        return None
    pairs = tuple(
        f"{first} {then}{second[:1].lower()}{second[1:]}"
        for first, second in zip(terms[0].questions, terms[1].questions, strict=False)
        for then in ("And ", "And also, ")
        if len(terms) == 2 and second.split(" ")[0] in QUESTION_WORDS and first[-1:] in ".?!"
    )
    return _Answer(_name_terms(terms), _emit_all(terms), _verify_all(terms), pairs)


def _both(maker: TermMaker, steps: int) -> _Answer | None:
    """Two fields of one individual."""
    fit = [entity for entity in maker.table.data.entities if len(entity.fields) > 1]
    entity = maker.random.choice(fit)
    name = maker.random.choice(maker.table.names(entity.name))
    terms = [maker.look_up(entity.name, name, data) for data in maker.random.sample(entity.fields, min(steps, 2))]
    texts = {"x": terms[0].name, "p": terms[0].phrase, "q": terms[-1].phrase}
    return _Answer(texts, _emit_all(terms), _verify_all(terms))


def _emit_all(terms: Sequence[Term]) -> Callable[[PlanDraft], JsonValue]:
    def emit(draft: PlanDraft) -> JsonValue:
        return _join([term.emit(draft) for term in terms])

    return emit


def _verify_all(terms: Sequence[Term]) -> StatesAll:
    return StatesAll(tuple(term.value for term in terms))


def _difference(maker: TermMaker, steps: int) -> _Answer | None:
    terms = _draw_like(maker, _split(maker.random, steps - 1, 2))
    if terms is None:
        return None
    high, low = sorted(terms, key=lambda term: _figure(term), reverse=True)
    return _calculate(maker, [high, low], "{0} - {1}", _figure(high) - _figure(low), "subtract")


def _sum(maker: TermMaker, steps: int) -> _Answer | None:
    terms = _draw_like(maker, _split_any(maker.random, steps - 1))
    if terms is None:
        return None
    formula = " + ".join(f"{{{place}}}" for place in range(len(terms)))
    return _calculate(maker, terms, formula, sum(map(_figure, terms)), "add" if len(terms) == 2 else "")


def _average(maker: TermMaker, steps: int) -> _Answer | None:
    terms = _draw_like(maker, _split_any(maker.random, steps - 1))
    if terms is None:
        return None
    formula = " + ".join(f"{{{place}}}" for place in range(len(terms)))
    mean = sum(map(_figure, terms)) / len(terms)
    return _calculate(maker, terms, f"({formula}) / {len(terms)}", mean)


def _ratio(maker: TermMaker, steps: int) -> _Answer | None:
    terms = _draw_like(maker, _split(maker.random, steps - 1, 2))
    if terms is None or not _figure(terms[1]):
        return None
    return _calculate(maker, terms, "{0} / {1}", _figure(terms[0]) / _figure(terms[1]), "divide")


def _scale(maker: TermMaker, steps: int) -> _Answer | None:
    term = maker.draw("number", steps - 1)
    if term is None:
        return None
    percent = maker.random.choice((5, 8, 10, 12, 15, 20, 25, 30, 40, 60, 75, 80, 90))
    result = _calculate(maker, [term], f"{{0}} * {percent} / 100", _figure(term) * percent / 100)
    return _Answer({**result.texts, "percent": str(percent)}, result.emit, result.verifier)


def _plus(maker: TermMaker, steps: int) -> _Answer | None:
    """A figure and a number that the query names."""
    return _with_number(maker, steps, "{0} + %s", lambda figure, number: figure + number, "add")


def _times(maker: TermMaker, steps: int) -> _Answer | None:
    return _with_number(maker, steps, "{0} * %s", lambda figure, number: figure * number, "multiply")


def _with_number(
    maker: TermMaker, steps: int, formula: str, work: Callable[[float, int], float], operation: str
) -> _Answer | None:
    term = maker.draw("number", steps - 1)
    if term is None:
        return None
    number = maker.random.randint(2, 12) if operation == "multiply" else maker.random.choice(ROUND_NUMBERS)
    result = _calculate(maker, [term], formula % number, work(_figure(term), number), operation, str(number))
    return _Answer({**result.texts, "n": f"{number}", "unit": term.unit}, result.emit, result.verifier)


def _compare(maker: TermMaker, steps: int) -> _Answer | None:
    """Which of two has more: two that the query names, or two that others refer to (a step more for each)."""
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
    return _Answer({"x": subjects[0].text, "y": subjects[1].text, "phrase": phrase}, emit, ExactText(str(winner.value)))


def _threshold(maker: TermMaker, steps: int) -> _Answer | None:
    term = _draw_number(maker, steps - 1)
    if term is None:
        return None
    limit = _draw_limit(maker.random, _figure(term))
    if abs(limit - _figure(term)) < 0.01:
        return None
    tool = maker.toolkit.general("threshold")

    def emit(draft: PlanDraft) -> JsonValue:
        return draft.call(tool, maker.need("threshold"), {"value": term.emit(draft), "limit": limit})

    texts = {**_name_terms([term]), "limit": f"{limit} {term.unit}".strip()}
    return _Answer(texts, emit, ExactText("yes" if _figure(term) > limit else "no"))


def _convert(maker: TermMaker, steps: int) -> _Answer | None:
    """A figure in another unit: one that the domain converts, or a unit of measure that everybody knows."""
    own = list(enumerate(maker.table.data.converters))
    maker.random.shuffle(own)
    for index, data in own:
        term = _draw_number(maker, steps - 1, data.unit)
        if term is not None:
            return _convert_own(maker, term, index, data.to, _figure(term) * data.factor)
    return _convert_physical(maker, steps)


def _convert_own(maker: TermMaker, term: Term, index: int, to: str, value: float) -> _Answer:
    tool = maker.toolkit.converter(index)
    need = maker.need("convert", **{"from": term.unit, "to": to})

    def emit(draft: PlanDraft) -> JsonValue:
        by_role: dict[str, JsonValue] = {"value": term.emit(draft)}
        if "to" in tool.roles:
            by_role["to"] = tool.spellings["to"]
        return draft.call(tool, need, by_role)

    return _Answer({**_name_terms([term]), "from": term.unit, "to": to}, emit, make_verifier(value))


def _convert_physical(maker: TermMaker, steps: int) -> _Answer | None:
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
    unit, term = units[written], _draw_number(maker, steps - 1, written)
    if term is None:
        return None
    tool = maker.toolkit.general("units")
    need = maker.need("units")

    def emit(draft: PlanDraft) -> JsonValue:
        return draft.call(tool, need, {"value": term.emit(draft), "from": unit.unit, "to": unit.to})

    value = convert(_figure(term), unit.unit, unit.to)
    return _Answer({**_name_terms([term]), "from": written, "to": unit.name}, emit, make_verifier(value))


def _days_between(maker: TermMaker, steps: int) -> _Answer | None:
    terms = _draw_terms(maker, "date", _split(maker.random, steps - 1, 2))
    if terms is None:
        return None
    days = abs((date.fromisoformat(str(terms[0].value)) - date.fromisoformat(str(terms[1].value))).days)
    tool = maker.toolkit.general("days_between")

    def emit(draft: PlanDraft) -> JsonValue:
        start, end = [term.emit(draft) for term in terms]
        return draft.call(tool, maker.need("days_between"), {"start": start, "end": end})

    return _Answer(_name_terms(terms), emit, make_verifier(days))


def _add_days(maker: TermMaker, steps: int) -> _Answer | None:
    term = maker.draw("date", steps - 1)
    if term is None:
        return None
    days = maker.random.choice((7, 10, 14, 21, 28, 30, 45, 60, 90, 100, 180, 365, maker.random.randint(3, 400)))
    tool = maker.toolkit.general("add_days")

    def emit(draft: PlanDraft) -> JsonValue:
        return draft.call(tool, maker.need("add_days"), {"start": term.emit(draft), "days": days})

    later = date.fromisoformat(str(term.value)) + timedelta(days=days)
    return _Answer({**_name_terms([term]), "days": str(days)}, emit, ExactText(later.isoformat()))


def _list(maker: TermMaker, steps: int) -> _Answer | None:
    drawn = maker.draw_field("group")
    if steps != 1 or drawn is None:
        return None
    entity, data = drawn
    table: WorldTable = maker.table
    value = maker.random.choice(sorted({str(record[data.name]) for record in table.records[entity].values()}))
    members = table.members(entity, data.name, value)
    tool = maker.toolkit.grouping("list", entity, data.name)
    subject = maker.name_term(value)
    texts = maker.group_texts(entity, data, subject)
    need = maker.need("list", **texts)
    texts["phrase"] = texts["target"]

    def emit(draft: PlanDraft) -> JsonValue:
        return draft.call(tool, need, {"target": subject.emit(draft)})

    return _Answer(texts, emit, SameSet(tuple(members)))


RULES: dict[str, Rule] = {
    "ask": _ask, "several": _several, "difference": _difference, "sum": _sum, "average": _average, "ratio": _ratio,
    "scale": _scale, "both": _both, "plus": _plus, "times": _times, "compare": _compare,
    "threshold": _threshold, "convert": _convert,
    "days_between": _days_between, "add_days": _add_days, "list": _list,
}  # fmt: skip
MIN_STEPS = {
    "ask": 1, "list": 1, "several": 2, "both": 2, "scale": 2, "plus": 2, "times": 2, "threshold": 2, "convert": 2,
    "add_days": 2, "difference": 3, "sum": 3, "average": 3, "ratio": 3, "compare": 3, "days_between": 3,
}  # fmt: skip
MAX_STEPS = {
    "ask": 3, "list": 1, "both": 2, "scale": 4, "plus": 4, "times": 4, "add_days": 4, "compare": CHAIN_COMPARE,
}  # fmt: skip


def _calculate(
    maker: TermMaker, terms: Sequence[Term], formula: str, value: float, operation: str = "", number: str = ""
) -> _Answer:
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

    return _Answer(_name_terms(terms), emit, make_verifier(value))


def _draw_number(maker: TermMaker, steps: int, unit: str | None = None) -> Term | None:
    """A number in `steps` steps: a term, or where there are enough steps the sum of several."""
    if steps >= 3:
        terms = _draw_like(maker, _split_any(maker.random, steps - 1), unit)
        if terms is None:
            return None
        result = _sum_terms(maker, terms)
        text = f"the sum of {_join([term.text for term in terms])}"
        terse = " + ".join(term.terse for term in terms)
        value = sum(map(_figure, terms))
        return Term(text, terse, value, lambda draft: str(result.emit(draft)), steps, "number", unit=terms[0].unit)
    return maker.draw("number", steps, unit)


def _sum_terms(maker: TermMaker, terms: Sequence[Term]) -> _Answer:
    formula = " + ".join(f"{{{place}}}" for place in range(len(terms)))
    return _calculate(maker, terms, formula, sum(map(_figure, terms)))


def _draw_terms(maker: TermMaker, kind: str, costs: Sequence[int]) -> list[Term] | None:
    """Different terms of a kind, one for each cost."""
    if not costs:
        return None
    terms = [maker.draw(kind, cost) for cost in costs]
    drawn = [term for term in terms if term is not None]
    return drawn if len(drawn) == len(costs) and len({term.text for term in drawn}) == len(drawn) else None


def _draw_like(maker: TermMaker, costs: Sequence[int], unit: str | None = None) -> list[Term] | None:
    """Different numbers in one unit: figures that one may add and compare."""
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


def _split(random: Random, steps: int, parts: int) -> list[int]:
    """`steps` in `parts` parts of at least 1 and at most 3; none where that cannot be."""
    if not parts <= steps <= 3 * parts:
        return []
    costs = [1] * parts
    for _ in range(steps - parts):
        costs[random.choice([place for place, cost in enumerate(costs) if cost < 3])] += 1
    return costs


def _split_any(random: Random, steps: int) -> list[int]:
    """`steps` in two to four parts."""
    return _split(random, steps, random.choice([parts for parts in (2, 3, 4) if parts <= max(steps, 2)]))


def _name_terms(terms: Sequence[Term]) -> dict[str, str]:
    """The gaps of a text that speak of terms: {a}, {b}, terse {ta}, {tb}, {list} of all and {plus} between them."""
    texts = {letter: term.text for letter, term in zip("abcd", terms, strict=False)}
    texts |= {f"t{letter}": term.terse for letter, term in zip("abcd", terms, strict=False)}
    return {**texts, "list": _join([term.text for term in terms]), "plus": " + ".join(term.terse for term in terms)}


def _join(texts: Sequence[str]) -> str:
    return f"{', '.join(texts[:-1])} and {texts[-1]}" if len(texts) > 1 else texts[0]


def _figure(term: Term) -> float:
    assert isinstance(term.value, int | float), "terms of kind number have numbers"
    return float(term.value)


def _draw_limit(random: Random, figure: float) -> int | float:
    """A round limit near a figure, above or below it."""
    limit = figure * random.uniform(0.6, 1.5)
    if figure.is_integer() and figure < 10:
        return max(0, round(figure) + random.choice((-3, -2, -1, 1, 2, 3)))
    return round(limit) if abs(limit) >= 10 else round(limit, 1)


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
