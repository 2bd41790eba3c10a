"""The words of a project: one YAML file for each, in podium_lessons/data/projects.

A project is a handful of functions that a person wrote for a shop, a club or a job, and the questions that this person
types about it. A file holds words; figures, and whose value is which, are drawn from a seed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from random import Random

from pydantic import Field, model_validator

from podium_lessons.lesson_data import FOLDER as DATA
from podium_lessons.projects.calls import LookUp, PlannedCall, list_gaps, parse_call
from pool_registry.actions import JsonValue
from trainer.tasks.task_data import TaskData, read_task_data

FOLDER = DATA / "projects"
KIND = re.compile(r"([a-z_]+?)\d?")  # {flower} and {flower2} are two flowers
_GAP = re.compile(r"\{(\w+)\}")
_QUOTE = re.compile(r"\$(\d+)")


class ValueData(TaskData):
    """What a function gives: a `number` between the first and the second with so many decimals, a `date` between two
    years, one of some texts, or a thing of a kind."""

    number: tuple[float, float, int] | None = None
    date: tuple[int, int] | None = None
    text: tuple[str, ...] = ()
    thing: str = ""

    @model_validator(mode="after")
    def _is_one(self) -> ValueData:
        given = [self.number, self.date, self.text, self.thing]
        if sum(bool(value) for value in given) != 1:
            raise ValueError("gives one of number, date, text, thing")
        if self.number and self.number[0] >= self.number[1]:
            raise ValueError("a number needs low < high")
        if self.text and len(set(self.text)) < 3:
            raise ValueError("a text is one of at least 3 different ones")
        return self

    def draw(self, random: Random, things: Sequence[str] = ()) -> JsonValue:
        """A value; where it is a thing, one of these."""
        if self.number:
            low, high, decimals = self.number
            number = round(random.uniform(low, high), decimals)
            return number if decimals else int(number)
        if self.date:
            first, last = date(self.date[0], 1, 1), date(self.date[1], 12, 31)
            return (first + timedelta(days=random.randint(0, (last - first).days))).isoformat()
        return random.choice(self.text or things)


class FunctionData(TaskData):
    """A function that takes one thing of the kind `takes`. `needs` say what a step is for that calls it; the last two
    `descriptions` are kept for the test split."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{1,40}$")
    takes: str
    parameters: tuple[str, ...] = Field(min_length=2)
    gives: ValueData
    needs: tuple[str, ...] = Field(min_length=2)
    descriptions: tuple[str, ...] = Field(min_length=5)


class QuestionData(TaskData):
    """Ways to ask one question; the last two `texts` are kept for the test split. podium_lessons/projects/calls.py says
    how `steps` are written. `numbers` are low, high and decimals of number gaps, `dates` the years of date gaps.
    `answer` quotes several steps where all of them are the answer."""

    steps: tuple[str, ...] = Field(min_length=1)
    texts: tuple[str, ...] = Field(min_length=6)
    numbers: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    dates: dict[str, tuple[int, int]] = Field(default_factory=dict)
    answer: str = ""

    @property
    def calls(self) -> tuple[PlannedCall, ...]:
        return tuple(map(parse_call, self.steps))

    @model_validator(mode="after")
    def _is_whole(self) -> QuestionData:
        gaps = {gap for call in self.calls for gap in list_gaps(call)}
        for text in self.texts:
            if set(_GAP.findall(text)) != gaps:
                raise ValueError(f"the gaps of {text!r} are not those of its steps: {', '.join(sorted(gaps))}")
        for place, step in enumerate(self.steps, start=1):
            if any(int(number) >= place for number in _QUOTE.findall(step)):
                raise ValueError(f"step {place} quotes a later one: {step!r}")
        quoted = {int(number) for text in (*self.steps, self.answer) for number in _QUOTE.findall(text)}
        idle = set(range(1, len(self.steps) + (1 if self.answer else 0))) - quoted
        if idle:
            raise ValueError(f"nothing quotes step {min(idle)} of {self.texts[0]!r}")
        return self


class BeyondData(TaskData):
    """What no function of the project can do though it sounds like it."""

    need: str
    texts: tuple[str, ...] = Field(min_length=2)


class ProjectData(TaskData):
    """A project. `things` are what questions name, by kind. `held_out` projects are never learnt from."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{1,30}$")
    held_out: bool = False
    things: dict[str, tuple[str, ...]] = Field(min_length=1)
    tools: tuple[FunctionData, ...] = Field(min_length=4)
    questions: tuple[QuestionData, ...] = Field(min_length=8)
    beyond: tuple[BeyondData, ...] = Field(min_length=4)

    def tool(self, name: str) -> FunctionData:
        """The function of this name. Raises KeyError."""
        by_name = {tool.name: tool for tool in self.tools}
        return by_name[name]

    @model_validator(mode="after")
    def _fits_together(self) -> ProjectData:
        problems = [*self._list_problems()]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _list_problems(self) -> Iterator[str]:
        names = [tool.name for tool in self.tools]
        if len(set(names)) < len(names):
            yield "two tools have one name"
        every = [thing.casefold() for things in self.things.values() for thing in things]
        yield from (f"{thing!r} stands among the things twice" for thing in {x for x in every if every.count(x) > 1})
        yield from (f"fewer than 6 things of the kind {kind}" for kind, bank in self.things.items() if len(bank) < 6)
        for tool in self.tools:
            for kind in filter(None, (tool.takes, tool.gives.thing)):
                if kind not in self.things:
                    yield f"{tool.name}: there is no kind {kind!r}"
        for question in self.questions:
            yield from self._check_question(question, names)
        for beyond in self.beyond:
            gaps = {gap for text in beyond.texts for gap in _GAP.findall(text)}
            yield from (
                f"no kind for {{{gap}}} of {beyond.need!r}" for gap in gaps if kind_of_gap(gap) not in self.things
            )

    def _check_question(self, question: QuestionData, names: list[str]) -> Iterator[str]:
        drawn = {*question.numbers, *question.dates}
        for gap in {gap for call in question.calls for gap in list_gaps(call)} - drawn:
            if kind_of_gap(gap) not in self.things:
                yield f"no kind of things for {{{gap}}} of {question.texts[0]!r}, and no numbers or dates"
        for call in question.calls:
            if not isinstance(call, LookUp):
                continue
            if call.tool not in names:
                yield f"there is no tool {call.tool!r} for {question.texts[0]!r}"
                continue
            takes = self.tool(call.tool).takes
            if quote := _QUOTE.fullmatch(call.argument):
                source = question.calls[int(quote[1]) - 1]
                is_known = isinstance(source, LookUp) and source.tool in names
                kind = self.tool(source.tool).gives.thing if is_known and isinstance(source, LookUp) else "?"
            else:
                kind = kind_of_gap(call.argument.strip("{}"))
            if kind not in ("?", takes):
                yield f"{call.tool} takes a {takes}, not a {kind or 'value'}: {question.texts[0]!r}"


def kind_of_gap(gap: str) -> str:
    """The kind of things that a gap stands for: that of {flower2} is flower."""
    match = KIND.fullmatch(gap)
    return match[1] if match else gap


@cache
def list_projects() -> tuple[str, ...]:
    """The names of all projects that ship."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


@cache
def load_project(name: str) -> ProjectData:
    """The words of a project. Raises UnusableTasks with every place in its file that is wrong."""
    return read_project(FOLDER / f"{name}.yaml")


def read_project(path: Path) -> ProjectData:
    """The words in a file. Raises UnusableTasks."""
    return read_task_data(path, ProjectData)
