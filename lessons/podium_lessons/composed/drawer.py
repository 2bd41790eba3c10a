"""What composed questions are made of: values of a domain, looked up over any number of hops, and words for them.

The answer comes first: a chain of calls is drawn with its values, then the words for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from podium_lessons.composed.domain import IT, DomainData, FieldData
from podium_lessons.composed.functions import DomainFunction, make_general
from podium_lessons.composed.plan import ComposedPlan
from podium_lessons.composed.texts import choose, load_texts
from podium_lessons.everyday.step_writer import Function

DEPTHS = (0, 1, 2)  # hops from a name to the thing that is asked about
DEPTH_WEIGHTS = (70, 24, 6)
ASK_SHARE = 0.6  # of the values are asked for in a question of their field's own

Fits: TypeAlias = Callable[[FieldData], object]
Ask: TypeAlias = "Callable[[QuestionDrawer], tuple[str, str]]"  # gives the text of a question, and its answer


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

    def draw(self, ask: Ask) -> Draft:
        """A question of a kind (questions.py). Raises NoQuestion, BadCall or WorkerFault where the draw makes none."""
        self._start()
        text, answer = ask(self)
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

    def draw_field(self, fits: Fits) -> tuple[str, str]:
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

    def draw_value(self, fits: Fits, depth: int | None = None) -> Value:
        """A value of a field that fits."""
        kind, name = self.draw_field(fits)
        return self.look_up(self.reach(kind, self.draw_depth() if depth is None else depth), name)

    def draw_values(self, count: int, fits: Fits) -> list[Value]:
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


def is_any(_data: FieldData) -> bool:
    return True


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
