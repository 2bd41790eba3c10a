"""The words of a domain: one YAML file for each, in podium_lessons/data/composed.

A domain (a seed library, a deploy queue, a court) has things with names, what is on file about them, calculations that
take several arguments, and wishes that nothing in it serves. Files hold words alone: values are drawn from a seed, and
functions, pools and questions are composed from them (source.py).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from podium_lessons.lesson_data import FOLDER as DATA
from podium_lessons.projects.project_data import ValueData
from trainer.tasks.task_data import TaskData, read_task_data

FOLDER = DATA / "composed"
HELD_OUT_DOMAINS = 5  # one of so many is kept for judging
IT = "{it}"
_GAP = re.compile(r"\{(\w+)\}")
_NAME = r"^[a-z][a-z0-9_]{1,40}$"


class FieldData(TaskData):
    """One thing that is on file about things of a kind.

    `nouns` name it as a noun phrase without article ("price of a packet of {it}"), where {it} is a name or a longer
    phrase ("the favourite of Ines"). `asks` are questions for it; `more` and `less` say of two things which value is
    higher and lower ("dearer", "cheaper"; of dates "later", "earlier"). `times` are questions for so many ({n}) at this
    figure each. `group` names all things that share a thing as their value ("varieties from {it}"). The last two of
    `asks` and the last of `descriptions`, `nouns`, `times` and `group` are kept for the test split.
    """

    gives: ValueData
    unit: str = ""
    descriptions: tuple[str, ...] = Field(min_length=4)
    nouns: tuple[str, ...] = Field(min_length=3)
    asks: tuple[str, ...] = Field(min_length=6)
    more: str = ""
    less: str = ""
    times: tuple[str, ...] = ()
    group: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_whole(self) -> FieldData:
        for text in (*self.nouns, *self.asks, *self.group):
            if _GAP.findall(text) != ["it"]:
                raise ValueError(f"{text!r} needs {IT} once and no other gap")
        for text in self.times:
            if sorted(_GAP.findall(text)) != ["it", "n"]:
                raise ValueError(f"{text!r} needs {IT} and {{n}} once, and no other gap")
        if (self.more or self.less or self.times) and not (self.gives.number or self.gives.date):
            raise ValueError("more, less and times are for numbers and dates")
        if bool(self.more) != bool(self.less):
            raise ValueError("more and less go together")
        if self.times and (len(self.times) < 4 or not self.gives.number):
            raise ValueError("times needs a number and at least 4 texts")
        if self.group and (len(self.group) < 3 or not self.gives.thing):
            raise ValueError("group needs a thing as value and at least 3 phrases")
        return self


class ThingData(TaskData):
    """A kind of things, with names as people write them."""

    one: str
    plural: str
    names: tuple[str, ...] = Field(min_length=8)
    fields: dict[str, FieldData] = Field(min_length=2)


class ParameterData(TaskData):
    """What a calculation takes: a thing of a kind, a number (low, high, decimals), a date of some years, or one of some
    words as a question says them."""

    thing: str = ""
    number: tuple[float, float, int] | None = None
    date: tuple[int, int] | None = None
    choice: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_one(self) -> ParameterData:
        if sum(bool(value) for value in (self.thing, self.number, self.date, self.choice)) != 1:
            raise ValueError("takes one of thing, number, date, choice")
        return self


class CalculationField(TaskData):
    """One value that a calculation gives. `asks` name every parameter that has no default; `unit` is its unit."""

    gives: ValueData
    unit: str = ""
    asks: tuple[str, ...] = Field(min_length=5)


class CalculationData(TaskData):
    """A function of several arguments, among them at least one thing. `need` says what a step is for that calls it."""

    name: str = Field(pattern=_NAME)
    need: str
    takes: dict[str, ParameterData] = Field(min_length=2)
    gives: dict[str, CalculationField] = Field(min_length=1)
    descriptions: tuple[str, ...] = Field(min_length=4)

    @model_validator(mode="after")
    def _asks_for_all(self) -> CalculationData:
        for field in self.gives.values():
            for text in field.asks:
                if sorted(_GAP.findall(text)) != sorted(self.takes):
                    raise ValueError(f"{text!r} needs the gaps {', '.join(self.takes)}, once each")
        return self


class BeyondData(TaskData):
    """A wish that nothing in the domain serves though it sounds so: for a `fact`, or to `change` something. Gaps are
    kinds of things."""

    need: str
    wish: Literal["fact", "change"]
    texts: tuple[str, ...] = Field(min_length=2)


class DomainData(TaskData):
    """A domain."""

    name: str = Field(pattern=_NAME)
    things: dict[str, ThingData] = Field(min_length=2)
    calculations: tuple[CalculationData, ...] = Field(min_length=1)
    beyond: tuple[BeyondData, ...] = Field(min_length=6)

    @model_validator(mode="after")
    def _fits_together(self) -> DomainData:
        if problems := [*self._list_problems()]:
            raise ValueError("; ".join(problems))
        return self

    def _list_problems(self) -> Iterator[str]:
        names = [name.casefold() for thing in self.things.values() for name in thing.names]
        yield from (f"{name!r} stands among the names twice" for name in {n for n in names if names.count(n) > 1})
        if not any(field.gives.thing for thing in self.things.values() for field in thing.fields.values()):
            yield "no field gives a thing of another kind"
        for kind, thing in self.things.items():
            for name, field in thing.fields.items():
                if not re.fullmatch(_NAME, name):
                    yield f"{kind}.{name} is no name in snake case"
                if field.gives.thing and field.gives.thing not in self.things:
                    yield f"{kind}.{name}: there is no kind {field.gives.thing!r}"
        for calculation in self.calculations:
            kinds = [parameter.thing for parameter in calculation.takes.values() if parameter.thing]
            if not kinds:
                yield f"{calculation.name} takes no thing"
            yield from (f"{calculation.name}: there is no kind {kind!r}" for kind in kinds if kind not in self.things)
        for beyond in self.beyond:
            gaps = {gap for text in beyond.texts for gap in _GAP.findall(text)}
            yield from (f"no kind for {{{gap}}} of {beyond.need!r}" for gap in gaps if gap not in self.things)
        if not any(beyond.wish == "change" for beyond in self.beyond):
            yield "no wish to change something"


@cache
def list_domains() -> tuple[str, ...]:
    """The names of all domains that ship."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


@cache
def load_domain(name: str) -> DomainData:
    """The words of a domain. Raises UnusableTasks with every place in its file that is wrong."""
    return read_task_data(FOLDER / f"{name}.yaml", DomainData)


def is_held_out(name: str) -> bool:
    """Whether no training sees a domain: one of five, by a number that follows from its name."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % HELD_OUT_DOMAINS == 0


def read_domain(path: Path) -> DomainData:
    """The words in a file. Raises UnusableTasks."""
    return read_task_data(path, DomainData)
