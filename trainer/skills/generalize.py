"""Generalises templates of one shape: the values that their questions state become parameters of one skill."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pool_registry.actions import JsonValue
from pool_registry.workers.skill import SkillConfig, SkillStep, list_places
from trainer.skills.template import PLACE, Slot, Template


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a skill: its name, the JSON Schema of its values, and the places of its slots in a template."""

    name: str
    schema: Mapping[str, JsonValue]
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Generalization:
    """The plan of a skill before it is tested, and its parameters."""

    config: SkillConfig
    parameters: tuple[Parameter, ...]

    def read_arguments(self, template: Template) -> dict[str, JsonValue]:
        """The arguments with which the skill is the plan of this template, which has its shape."""
        return {row.name: template.slots[row.places[0]].value for row in self.parameters}


def generalize(templates: Sequence[Template]) -> Generalization:
    """The skill that these plans are cases of; all have the same shape."""
    first = templates[0]
    reserved = {name for step in first.steps for name in list_places(step.arguments)}
    parameters = _name_parameters(_merge_slots(templates), first.slots, reserved)
    names = {place: row.name for row in parameters for place in row.places}
    writer = iter([names[place] for place in range(len(first.slots))])
    steps = []
    for step in first.steps:
        arguments = {name: _put_names(value, writer) for name, value in step.arguments.items()}
        steps.append(SkillStep(worker=step.worker, arguments=arguments, access=step.access))
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {row.name: dict(row.schema) for row in parameters},
        "required": [row.name for row in parameters],
        "additionalProperties": False,
    }
    return Generalization(SkillConfig(steps=tuple(steps), answer=first.answer, parameters=schema), parameters)


def differ(templates: Sequence[Template]) -> bool:
    """Whether some value is another in some of these."""
    return len({json.dumps([slot.value for slot in template.slots]) for template in templates}) > 1


def _merge_slots(templates: Sequence[Template]) -> list[list[int]]:
    """The places of the slots that are one parameter. Two are, where they are equal in every plan, of which there are
    several: under the same name, or under two that take other values from plan to plan, for then it is no accident."""
    values = [
        [json.dumps(_fold(template.slots[place].value)) for template in templates]
        for place in range(len(templates[0].slots))
    ]
    slots, merged = templates[0].slots, list[list[int]]()
    for place, own in enumerate(values):
        same = next((row for row in merged if _are_one(slots[row[0]], slots[place], values[row[0]], own)), None)
        if same is None:
            merged.append([place])
        else:
            same.append(place)
    return merged


def _are_one(one: Slot, other: Slot, values: Sequence[str], others: Sequence[str]) -> bool:
    if len(values) < 2 or values != others or one.schema.get("type") != other.schema.get("type"):
        return False
    return one.name == other.name or len(set(values)) > 1


def _fold(value: JsonValue) -> JsonValue:
    return " ".join(value.casefold().split()) if isinstance(value, str) else value


def _name_parameters(
    merged: Sequence[Sequence[int]], slots: Sequence[Slot], reserved: set[str]
) -> tuple[Parameter, ...]:
    """The parameters by the names that the workers give their arguments; a second one of a name is numbered."""
    parameters: dict[str, Parameter] = {}
    for places in merged:
        slot = slots[places[0]]
        name, number = _to_name(slot.name), 1
        while name in parameters or name in reserved:
            number += 1
            name = f"{_to_name(slot.name)}_{number}"
        parameters[name] = Parameter(name, slot.schema, tuple(places))
    return tuple(parameters.values())


def _to_name(text: str) -> str:
    """A name that can stand in braces."""
    name = "".join(char if char.isascii() and (char.isalnum() or char == "_") else "_" for char in text)
    return name if name[:1].isalpha() or name[:1] == "_" else f"_{name}"


def _put_names(value: JsonValue, names: Iterator[str]) -> JsonValue:
    """`value` with the names of parameters in braces at its places, in the order in which they were taken out."""
    if isinstance(value, str):
        parts = value.split(PLACE)
        return "".join([parts[0], *(f"{{{next(names)}}}{part}" for part in parts[1:])])
    if isinstance(value, Mapping):
        return {key: _put_names(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_put_names(item, names) for item in value]
    return value
