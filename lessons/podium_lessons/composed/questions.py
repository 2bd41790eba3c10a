"""The kinds of composed questions: what is asked of values, as text with gaps and as a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from podium_lessons.composed.domain import IT, CalculationData, FieldData
from podium_lessons.composed.drawer import (
    Ask,
    NoQuestion,
    QuestionDrawer,
    Value,
    end,
    fill,
    is_any,
    is_date,
    is_number,
    lower_first,
)  # fmt: skip
from podium_lessons.composed.functions import add_article
from podium_lessons.composed.texts import choose
from pool_registry.actions import JsonValue, as_text

UNITS: Mapping[str, tuple[str, ...]] = {
    "kilometres": ("miles",), "km": ("miles",), "metres": ("feet",), "kilos": ("pounds", "grams"),
    "kilograms": ("pounds", "grams"), "kg": ("pounds", "grams"), "litres": ("gallons",), "grams": ("ounces", "kg"),
    "minutes": ("hours", "seconds"), "hours": ("minutes",), "days": ("hours",), "centimetres": ("inches",),
}  # fmt: skip
MONEY = frozenset({"euros", "dollars", "pounds", "francs", "crowns", "EUR", "USD"})


def has_group(data: FieldData) -> bool:
    return bool(data.group)


def _ask_value(drawer: QuestionDrawer) -> tuple[str, str]:
    value = drawer.draw_value(is_any, 0)
    return drawer.ask(value), value.quote


def _ask_chain(drawer: QuestionDrawer) -> tuple[str, str]:
    value = drawer.draw_value(is_any, drawer.random.choices((1, 2), (75, 25))[0])
    return drawer.ask(value), value.quote


def _ask_calculation(drawer: QuestionDrawer) -> tuple[str, str]:
    text, quote = _draw_calculation(drawer, 0)
    return text, quote


def _ask_calculation_chain(drawer: QuestionDrawer) -> tuple[str, str]:
    return _draw_calculation(drawer, 1)


def _draw_calculation(drawer: QuestionDrawer, depth: int) -> tuple[str, str]:
    """A calculation; one of its things is reached over so many hops."""
    data = drawer.random.choice(drawer.domain.calculations)
    name = drawer.random.choice(list(data.gives))
    text = choose(data.gives[name].asks, drawer.split, drawer.random)
    things = [part for part, parameter in data.takes.items() if parameter.thing]
    far = drawer.random.choice(things)
    parts: dict[str, JsonValue] = {}
    for part in data.takes:
        words, parts[part] = _draw_argument(drawer, data, part, depth if part == far else 0)
        text = text.replace(f"{{{part}}}", words)
    return text, drawer.plan.calculate(data.name, name, parts, data.need)


def _draw_argument(drawer: QuestionDrawer, data: CalculationData, part: str, depth: int) -> tuple[str, JsonValue]:
    """An argument: its words and its value."""
    parameter, random = data.takes[part], drawer.random
    if parameter.thing:
        subject = drawer.reach(parameter.thing, depth)
        return subject.words, subject.thing
    if parameter.number:
        low, high, decimals = parameter.number
        number = round(random.uniform(low, high), decimals)
        value: JsonValue = number if decimals else int(number)
    elif parameter.date:
        first = date(parameter.date[0], 1, 1)
        value = (
            first + timedelta(days=random.randrange(365 * (parameter.date[1] - parameter.date[0] + 1)))
        ).isoformat()
    else:
        value = random.choice(parameter.choice)
    return drawer.gap(as_text(value)), value


def _ask_fields(drawer: QuestionDrawer) -> tuple[str, str]:
    """Two fields of one thing."""
    kind, first = drawer.draw_field(is_any)
    others = [name for name in drawer.domain.things[kind].fields if name != first]
    subject = drawer.reach(kind, drawer.random.choices((0, 1), (80, 20))[0])
    values = [drawer.look_up(subject, name) for name in (first, drawer.random.choice(others))]
    return _put_two(drawer, values)


def _ask_two(drawer: QuestionDrawer) -> tuple[str, str]:
    """Two values that have nothing to do with each other, or the same of two things."""
    if drawer.random.random() < 0.4:
        values = drawer.draw_values(2, is_any)
    else:
        values = [drawer.draw_value(is_any) for _ in range(2)]
    return _put_two(drawer, values)


def _put_two(drawer: QuestionDrawer, values: Sequence[Value]) -> tuple[str, str]:
    first, second = values
    if first.quote == second.quote:
        raise NoQuestion
    answer = f"{first.quote} and {second.quote}"
    if drawer.random.random() < 0.5:
        return fill(drawer.text("two_values"), v=first.words, w=second.words), answer
    one, two = end(drawer.ask(first)), end(drawer.ask(second))
    text = drawer.text("two_questions")
    return fill(text, one=one, two=two, one_small=lower_first(one), two_small=lower_first(two)), answer


def _ask_number(drawer: QuestionDrawer) -> tuple[str, str]:
    """A number on file, and one of the question's own."""
    kind = drawer.random.choice(("times", "times", "times", "plus", "rest", "part", "percent", "discount", "raise"))
    value = drawer.draw_value(
        lambda data: is_number(data) and (kind != "times" or data.times or drawer.random.random() < 0.2)
    )
    if kind in ("discount", "raise") and value.data.unit not in MONEY:
        raise NoQuestion
    percents = kind in ("percent", "discount", "raise")
    number = drawer.number(3, 60) if percents else drawer.number(2, 12)
    if kind == "rest" and drawer.amount(value) < float(number):
        raise NoQuestion
    less, more = (100 - int(number)) / 100, (100 + int(number)) / 100
    expression = {
        "times": f"{value.quote} * {number}", "plus": f"{value.quote} + {number}", "rest": f"{value.quote} - {number}",
        "part": f"{value.quote} / {number}", "percent": f"{value.quote} * {number} / 100",
        "discount": f"{value.quote} * {less}", "raise": f"{value.quote} * {more}",
    }[kind]  # fmt: skip
    if kind == "times" and value.data.times:
        text = choose(value.data.times, drawer.split, drawer.random).replace(IT, value.subject.words)
    else:
        text = fill(drawer.text(kind), v=value.words)
    return fill(text, n=drawer.gap(number)), drawer.plan.compute(expression)


def _ask_pair(drawer: QuestionDrawer) -> tuple[str, str]:
    """Two numbers put together."""
    kind = drawer.random.choice(("difference", "difference_more", "sum", "mean", "ratio", "share"))
    first, second = drawer.draw_values(2, lambda data: is_number(data) and (kind != "difference_more" or data.more))
    less = kind == "difference_more" and drawer.random.random() < 0.5
    numbers = drawer.amount(first), drawer.amount(second)
    if numbers[0] == numbers[1] or (kind in ("ratio", "share") and not all(numbers)):
        raise NoQuestion
    if kind.startswith("difference") and (numbers[0] < numbers[1]) != less:
        raise NoQuestion  # steps follow the words: another draw has the larger one first
    high, low = (second, first) if less else (first, second)
    text = fill(
        drawer.text(kind), v=first.words, w=second.words, x=first.subject.words, y=second.subject.words,
        more=first.data.less if less else first.data.more,
    )  # fmt: skip
    if kind == "mean":
        return text, _average(drawer, [first.quote, second.quote])
    expression = {
        "difference": f"{high.quote} - {low.quote}", "difference_more": f"{high.quote} - {low.quote}",
        "sum": f"{first.quote} + {second.quote}", "ratio": f"{first.quote} / {second.quote}",
        "share": f"{first.quote} / {second.quote} * 100",
    }[kind]  # fmt: skip
    return text, drawer.plan.compute(expression)


def _average(drawer: QuestionDrawer, quotes: Sequence[str]) -> str:
    """The mean: of a list where a function takes one, else by a sum."""
    if "mean" in drawer.works:
        return drawer.plan.do("mean", {"numbers": list(quotes)})
    return drawer.plan.compute(f"({' + '.join(quotes)}) / {len(quotes)}")


def _ask_three(drawer: QuestionDrawer) -> tuple[str, str]:
    values = drawer.draw_values(3, is_number)
    text = fill(drawer.text("mean_of_three"), **{key: value.words for key, value in zip("vwu", values, strict=True)})
    return text, _average(drawer, [value.quote for value in values])


def _ask_larger(drawer: QuestionDrawer) -> tuple[str, str]:
    """Which of two has more, or less."""
    first, second = drawer.draw_values(2, lambda data: data.more and is_number(data))
    if drawer.amount(first) == drawer.amount(second):
        raise NoQuestion
    less = drawer.random.random() < 0.5
    more = first.data.less if less else first.data.more
    text = fill(drawer.text("larger"), x=first.subject.words, y=second.subject.words, more=more)
    parts: dict[str, JsonValue] = {
        "first_name": first.subject.thing, "first": first.quote,
        "second_name": second.subject.thing, "second": second.quote,
    }  # fmt: skip
    return text, drawer.plan.do("smaller" if less else "larger", parts)


def _ask_days(drawer: QuestionDrawer) -> tuple[str, str]:
    """The days between two dates, or to one from a day of the question."""
    if drawer.random.random() < 0.5:
        first, second = drawer.draw_values(2, is_date)
        if as_text(drawer.plan.read(first.quote)) >= as_text(drawer.plan.read(second.quote)):
            raise NoQuestion
        text = fill(drawer.text("days_between"), v=first.words, w=second.words)
        return text, drawer.plan.do("days_between", {"start": first.quote, "end": second.quote})
    value = drawer.draw_value(is_date)
    day = date.fromisoformat(as_text(drawer.plan.read(value.quote)))
    start = (day - timedelta(days=drawer.random.randint(3, 300))).isoformat()
    text = fill(drawer.text("days_until"), v=value.words, day=drawer.gap(start))
    return text, drawer.plan.do("days_between", {"start": start, "end": value.quote})


def _ask_later(drawer: QuestionDrawer) -> tuple[str, str]:
    value = drawer.draw_value(is_date)
    number = drawer.number(5, 120)
    text = fill(drawer.text("later"), v=value.words, n=drawer.gap(number))
    return text, drawer.plan.do("add_days", {"date": value.quote, "days": int(number)})


def _ask_convert(drawer: QuestionDrawer) -> tuple[str, str]:
    value = drawer.draw_value(lambda data: is_number(data) and data.unit in UNITS)
    unit = drawer.random.choice(UNITS[value.data.unit])
    text = fill(drawer.text("convert"), v=value.words, unit=unit)
    parts: dict[str, JsonValue] = {"value": value.quote, "from_unit": value.data.unit, "to_unit": unit}
    return text, drawer.plan.do("convert", parts)


GROUP_WORKS = {
    "count": "count", "total": "sum", "average": "mean", "highest": "largest", "lowest": "smallest",
    "name_of_highest": "name_of_largest", "name_of_lowest": "name_of_smallest",
}  # fmt: skip
# The questions of the test split stay those that were measured before lists had a length.
MORE_COUNTS: Mapping[str, Sequence[str]] = {"train": ("count",) * 9, "validation": ("count",) * 9}
LENGTH_SHARE = 0.7  # of what counts a list quotes its length; else a function counts


def _ask_group(drawer: QuestionDrawer) -> tuple[str, str]:
    """Something of all things that share a thing."""
    kind, shared = drawer.draw_field(has_group)
    data = drawer.domain.things[kind].fields[shared]
    owner = drawer.reach(data.gives.thing, drawer.random.choices((0, 1), (80, 20))[0])
    group = choose(data.group, drawer.split, drawer.random)
    need = group.replace(IT, add_article(drawer.domain.things[data.gives.thing].one))
    rows = drawer.plan.list_group(kind, shared, owner.thing, need)
    there = drawer.plan.read(rows)
    assert isinstance(there, list), "a group is a list"
    row = drawer.random.choice(("list", "list", *GROUP_WORKS, *MORE_COUNTS.get(drawer.split, ())))
    if row in GROUP_WORKS and GROUP_WORKS[row] not in drawer.works:
        raise NoQuestion
    named = row.startswith("name")
    if len(there) < (2 if named or row in ("highest", "lowest", "average") else 1):
        raise NoQuestion
    words = group.replace(IT, owner.words)
    if row == "list":
        return fill(drawer.text(row), group=words), f"{rows}[*].name"
    if row == "count":
        is_length = drawer.split in MORE_COUNTS and drawer.random.random() < LENGTH_SHARE
        answer = f"{rows}.length" if is_length else drawer.plan.do("count", {"items": rows})
        return fill(drawer.text(row), group=words), answer
    names = [name for name, data in drawer.domain.things[kind].fields.items() if is_number(data) and name != shared]
    if not names:
        raise NoQuestion
    name = drawer.random.choice(names)
    numbers = drawer.plan.read(f"{rows}[*].{name}")
    if isinstance(numbers, list) and len(set(map(str, numbers))) < len(numbers):
        raise NoQuestion  # two have the same
    parts: dict[str, JsonValue] = {"numbers": f"{rows}[*].{name}"}
    if named:
        parts = {"names": f"{rows}[*].name", **parts}
    text = fill(drawer.text(row), group=words, label=name.replace("_", " "))
    return text, drawer.plan.do(GROUP_WORKS[row], parts)


KINDS: Mapping[str, Ask] = {
    "value": _ask_value,
    "chain": _ask_chain,
    "calculation": _ask_calculation,
    "calculation_chain": _ask_calculation_chain,
    "fields": _ask_fields,
    "two": _ask_two,
    "number": _ask_number,
    "pair": _ask_pair,
    "three": _ask_three,
    "larger": _ask_larger,
    "days": _ask_days,
    "later": _ask_later,
    "convert": _ask_convert,
    "group": _ask_group,
}
