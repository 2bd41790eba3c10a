"""The shape of a plan: its calls and their wiring, with a place for every value that its question states.

Plans with the same shape differ in those values alone. What a plan says and its question does not, such as the unit of
a result, is part of the shape: so a shape holds no word of a question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from orchestrator.plan import Turn
from orchestrator.quotes import REFERENCE, WHOLE_QUOTE
from pool_registry.actions import JsonValue, as_text

PLACE = "\ue000"  # stands for a stated value; private use, so that no plan holds it
_NUMBER = re.compile(r"(?<![\w.$])[0-9]+(?:\.[0-9]+)?(?![\w.]|,[0-9])")
_STATED_NUMBER = re.compile(r"(?<![\w.])[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?!\w|\.[0-9])")
_TYPES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}
NUMBER = "number"  # the parameter that a number inside a longer text becomes
Properties: TypeAlias = Callable[[str], Mapping[str, JsonValue]]


@dataclass(frozen=True, slots=True)
class Slot:
    """A value that the question states: the step and the name of the argument that it stands in, the JSON Schema that
    holds for it there, and itself."""

    step: int
    name: str
    schema: Mapping[str, JsonValue]
    value: JsonValue


@dataclass(frozen=True, slots=True)
class TemplateStep:
    """One call, with PLACE for stated values, in the order of the template's slots."""

    worker: str
    arguments: Mapping[str, JsonValue]
    access: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """The shape of a plan, and the values that its question states."""

    steps: tuple[TemplateStep, ...]
    answer: JsonValue
    slots: tuple[Slot, ...]

    @property
    def shape(self) -> str:
        """Equal for plans that differ in stated values alone."""
        steps = [(step.worker, step.arguments, step.access) for step in self.steps]
        return json.dumps([steps, self.answer], sort_keys=True)


def make_template(query: str, turn: Turn, properties: Properties) -> Template | None:
    """The template of a plan that solved `query`; None where it is none. `properties` gives those of a worker's
    arguments. Its steps are numbered from 1 on."""
    if PLACE in json.dumps([dict(step.arguments) for step in turn.steps], ensure_ascii=False, default=str):
        return None
    marks = _Marks(query)
    steps = []
    for step in turn.steps:
        rules = properties(step.worker)
        arguments = {
            name: marks.take_out(value, step.id, name, rules.get(name))
            for name, value in sorted(step.arguments.items())
        }
        steps.append(TemplateStep(step.worker, arguments, tuple(sorted({*step.access, *step.references}))))
    return Template(tuple(steps), turn.answer, tuple(marks.slots))


@dataclass
class _Marks:
    """Takes the values out of a plan that the question states."""

    query: str
    slots: list[Slot] = field(default_factory=list)

    def take_out(self, value: JsonValue, step: int, name: str, rule: JsonValue) -> JsonValue:
        """`value` with PLACE for what is stated of it."""
        if isinstance(value, Mapping):
            return {key: self.take_out(item, step, key, _rule_of(rule, key)) for key, item in sorted(value.items())}
        if isinstance(value, list | tuple):
            items = rule.get("items") if isinstance(rule, Mapping) else None
            return [self.take_out(item, step, name, items) for item in value]
        if states(self.query, value):
            self.slots.append(Slot(step, name, _write_schema(rule, value), value))
            return PLACE
        if isinstance(value, str) and not WHOLE_QUOTE.fullmatch(value):
            return _NUMBER.sub(lambda match: self._take_number(match[0], step), _protect(value)).translate(_UNPROTECT)
        return value

    def _take_number(self, text: str, step: int) -> str:
        if not states(self.query, number := _read_number(text)):
            return text
        self.slots.append(Slot(step, NUMBER, {"type": "number"}, number))
        return PLACE


# The digits of a quote such as $1[0] are no numbers of the text: they are written in others while it is searched.
_PROTECT = {ord(str(digit)): 0xE010 + digit for digit in range(10)}
_UNPROTECT = {code: chr(digit) for digit, code in _PROTECT.items()}


def _protect(text: str) -> str:
    return REFERENCE.sub(lambda match: match[0].translate(_PROTECT), text)


def states(query: str, value: JsonValue) -> bool:
    """Whether a question states a value: a text word for word, whatever its case, or a number in digits."""
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return any(_read_number(match) == value for match in _STATED_NUMBER.findall(query))
    if not isinstance(value, str) or not value.strip() or REFERENCE.search(value):
        return False
    words = r"\s+".join(map(re.escape, value.split()))
    return re.search(rf"(?<!\w){words}(?!\w)", query, re.IGNORECASE) is not None


def _read_number(text: str) -> int | float:
    number = float(text.replace(",", ""))
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def _rule_of(rule: JsonValue, key: str) -> JsonValue:
    properties = rule.get("properties") if isinstance(rule, Mapping) else None
    return properties.get(key) if isinstance(properties, Mapping) else None


def _write_schema(rule: JsonValue, value: JsonValue) -> dict[str, JsonValue]:
    """What the worker says of an argument, without its default: a question states it. A rule that needs the rest of its
    schema is replaced by the type of the value."""
    if isinstance(rule, Mapping) and rule and "$ref" not in as_text(dict(rule)):
        return {key: item for key, item in rule.items() if key != "default"}
    return {"type": _TYPES.get(type(value), "string")}
