"""Composed questions: values of a domain, looked up over any number of hops, and what is asked of them.

The answer comes first: a chain of calls is drawn with its values, then the words for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from random import Random

from podium_lessons.composed.domain import IT, CalculationData, DomainData, FieldData
from podium_lessons.composed.functions import DomainFunction, add_article, make_general
from podium_lessons.composed.plan import ComposedPlan
from podium_lessons.composed.texts import choose, load_texts
from podium_lessons.step_writer import Function
from pool_registry.actions import JsonValue, as_text

DEPTHS = (0, 1, 2)  # hops from a name to the thing that is asked about
DEPTH_WEIGHTS = (70, 24, 6)
ASK_SHARE = 0.6  # of the values are asked for in a question of their field's own
UNITS: Mapping[str, tuple[str, ...]] = {
    "kilometres": ("miles",), "km": ("miles",), "metres": ("feet",), "kilos": ("pounds", "grams"),
    "kilograms": ("pounds", "grams"), "kg": ("pounds", "grams"), "litres": ("gallons",), "grams": ("ounces", "kg"),
    "minutes": ("hours", "seconds"), "hours": ("minutes",), "days": ("hours",), "centimetres": ("inches",),
}  # fmt: skip
MONEY = frozenset({"euros", "dollars", "pounds", "francs", "crowns", "EUR", "USD"})


class NoQuestion(Exception):
    """Raised where a draw makes no question: draw again."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a value is of: a kind, the words for it, and its name or what quotes it."""

    kind: str
    words: str
    thing: str


@dataclass(frozen=True, slots=True)
class Value:
    """A value: the words for it with their article, its quote, and where it is from."""

    words: str
    quote: str
    subject: Subject
    name: str
    data: FieldData


@dataclass(frozen=True, slots=True)
class Draft:
    """A question before its way of typing: text with gaps, what stands in them, its plan, and what answers it."""

    text: str
    gaps: Mapping[str, str]
    plan: ComposedPlan
    answer: str


@dataclass(slots=True)
class QuestionDrawer:
    """Draws questions of a domain for functions that are cut already. `works` are the functions that put together."""

    domain: DomainData
    cut: Sequence[DomainFunction]
    works: Mapping[str, Function]
    split: str
    random: Random
    plan: ComposedPlan = field(init=False)
    gaps: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._start()

    def draw(self, kind: str) -> Draft:
        """A question of one of KINDS. Raises NoQuestion, BadCall or WorkerFault where the draw makes none."""
        self._start()
        text, answer = KINDS[kind](self)
        return Draft(text, dict(self.gaps), self.plan, answer)

    def _start(self) -> None:
        functions = {
            function.spec.name: Function(function.spec.name, function.config.parameters, "") for function in self.cut
        }
        self.plan = ComposedPlan({**self.works, **functions}, cut=self.cut)
        self.gaps = {}

    # what questions are made of

    def text(self, row: str) -> str:
        """A text that puts values together."""
        return choose(load_texts()[row], self.split, self.random)

    def gap(self, value: str) -> str:
        """A gap with this in it, so that no slip of the finger changes it."""
        key = next((key for key, there in self.gaps.items() if there == value), f"g{len(self.gaps)}")
        self.gaps[key] = value
        return f"{{{key}}}"

    def name_thing(self, kind: str, others: Sequence[str] = ()) -> Subject:
        """A thing of a kind by its name, not one of `others`."""
        free = [name for name in self.domain.things[kind].names if name not in others]
        name = self.random.choice(free)
        return Subject(kind, self.gap(name), name)

    def reach(self, kind: str, depth: int) -> Subject:
        """A thing of a kind, named over so many hops: "the grower of Black Krim"."""
        if not depth:
            return self.name_thing(kind)
        ways = [
            (other, name)
            for other, thing in self.domain.things.items()
            for name, data in thing.fields.items()
            if data.gives.thing == kind
        ]
        if not ways:
            raise NoQuestion
        other, name = self.random.choice(ways)
        value = self.look_up(self.reach(other, depth - 1), name)
        return Subject(kind, value.words, value.quote)

    def look_up(self, subject: Subject, name: str) -> Value:
        """A field of a thing."""
        data = self.domain.things[subject.kind].fields[name]
        noun = choose(data.nouns, self.split, self.random)
        one = self.domain.things[subject.kind].one
        need = make_general(self.random.choice(data.nouns), one)
        quote = self.plan.look_up(subject.kind, subject.thing, name, need)
        return Value(f"the {noun.replace(IT, subject.words)}", quote, subject, name, data)

    def draw_field(self, fits: Callable[[FieldData], object]) -> tuple[str, str]:
        """A kind of things and one of its fields that fits."""
        fields = [
            (kind, name)
            for kind, thing in self.domain.things.items()
            for name, data in thing.fields.items()
            if fits(data)
        ]
        if not fields:
            raise NoQuestion
        return self.random.choice(fields)

    def draw_depth(self) -> int:
        return self.random.choices(DEPTHS, DEPTH_WEIGHTS)[0]

    def draw_value(self, fits: Callable[[FieldData], object], depth: int | None = None) -> Value:
        """A value of a field that fits."""
        kind, name = self.draw_field(fits)
        return self.look_up(self.reach(kind, self.draw_depth() if depth is None else depth), name)

    def draw_values(self, count: int, fits: Callable[[FieldData], object]) -> list[Value]:
        """The same field of several things."""
        kind, name = self.draw_field(fits)
        things: list[str] = []
        values = []
        for _ in range(count):
            subject = self.name_thing(kind, things)
            things.append(subject.thing)
            values.append(self.look_up(subject, name))
        return values

    def ask(self, value: Value) -> str:
        """A question for a value."""
        if self.random.random() < ASK_SHARE:
            return choose(value.data.asks, self.split, self.random).replace(IT, value.subject.words)
        return self.text("value").replace("{v}", value.words)

    def number(self, low: int, high: int) -> str:
        return str(self.random.randint(low, high))

    def amount(self, value: Value) -> float:
        number = self.plan.read(value.quote)
        assert isinstance(number, int | float), "it was drawn as a number"
        return number


def is_number(data: FieldData) -> bool:
    return data.gives.number is not None


def is_date(data: FieldData) -> bool:
    return data.gives.date is not None


def fill(text: str, **words: str) -> str:
    """A text with its gaps filled; gaps of things stay."""
    for key, word in words.items():
        text = text.replace(f"{{{key}}}", word)
    return text


def lower_first(text: str) -> str:
    """A sentence to go on with: its first letter small, but for "I" and what stands in a gap."""
    return text if text.startswith(("I ", "I'", "{")) else text[:1].lower() + text[1:]


def end(text: str) -> str:
    """A sentence with its stop."""
    return text if text[-1] in ".?!" else f"{text}."


def _ask_value(drawer: QuestionDrawer) -> tuple[str, str]:
    value = drawer.draw_value(lambda data: True, 0)
    return drawer.ask(value), value.quote


def _ask_chain(drawer: QuestionDrawer) -> tuple[str, str]:
    value = drawer.draw_value(lambda data: True, drawer.random.choices((1, 2), (75, 25))[0])
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
        value = (first + timedelta(days=random.randrange(365 * (parameter.date[1] - parameter.date[0] + 1)))).isoformat()
    else:
        value = random.choice(parameter.choice)
    return drawer.gap(as_text(value)), value


def _ask_fields(drawer: QuestionDrawer) -> tuple[str, str]:
    """Two fields of one thing."""
    kind, first = drawer.draw_field(lambda data: True)
    others = [name for name in drawer.domain.things[kind].fields if name != first]
    subject = drawer.reach(kind, drawer.random.choices((0, 1), (80, 20))[0])
    values = [drawer.look_up(subject, name) for name in (first, drawer.random.choice(others))]
    return _put_two(drawer, values)


def _ask_two(drawer: QuestionDrawer) -> tuple[str, str]:
    """Two values that have nothing to do with each other, or the same of two things."""
    if drawer.random.random() < 0.4:
        values = drawer.draw_values(2, lambda data: True)
    else:
        values = [drawer.draw_value(lambda data: True) for _ in range(2)]
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
    value = drawer.draw_value(lambda data: is_number(data) and (kind != "times" or data.times or drawer.random.random() < 0.2))
    if kind in ("discount", "raise") and value.data.unit not in MONEY:
        raise NoQuestion
    percents = kind in ("percent", "discount", "raise")
    number = drawer.number(3, 60) if percents else drawer.number(2, 12)
    if kind == "rest" and drawer.amount(value) < float(number):
        raise NoQuestion
    expression = {
        "times": f"{value.quote} * {number}", "plus": f"{value.quote} + {number}", "rest": f"{value.quote} - {number}",
        "part": f"{value.quote} / {number}", "percent": f"{value.quote} * {number} / 100",
        "discount": f"{value.quote} * {(100 - int(number)) / 100}", "raise": f"{value.quote} * {(100 + int(number)) / 100}",
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


def _ask_group(drawer: QuestionDrawer) -> tuple[str, str]:
    """Something of all things that share a thing."""
    kind, shared = drawer.draw_field(lambda data: data.group)
    data = drawer.domain.things[kind].fields[shared]
    owner = drawer.reach(data.gives.thing, drawer.random.choices((0, 1), (80, 20))[0])
    group = choose(data.group, drawer.split, drawer.random)
    need = group.replace(IT, add_article(drawer.domain.things[data.gives.thing].one))
    rows = drawer.plan.list_group(kind, shared, owner.thing, need)
    there = drawer.plan.read(rows)
    assert isinstance(there, list), "a group is a list"
    row = drawer.random.choice(("list", "list", *GROUP_WORKS))
    if row in GROUP_WORKS and GROUP_WORKS[row] not in drawer.works:
        raise NoQuestion
    named = row.startswith("name")
    if len(there) < (2 if named or row in ("highest", "lowest", "average") else 1):
        raise NoQuestion
    words = group.replace(IT, owner.words)
    if row == "list":
        return fill(drawer.text(row), group=words), f"{rows}[*].name"
    if row == "count":
        return fill(drawer.text(row), group=words), drawer.plan.do("count", {"items": rows})
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


KINDS: Mapping[str, Callable[[QuestionDrawer], tuple[str, str]]] = {
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
