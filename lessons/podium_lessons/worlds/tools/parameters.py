"""The parameters of tools: what they are before they have names, and their rule in a schema."""

from __future__ import annotations

from dataclasses import dataclass

from pool_registry.actions import JsonValue


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter before it has a name. `choices` make it an enum."""

    role: str
    about: str
    example: JsonValue
    type: str = "string"
    choices: tuple[str, ...] = ()
    names: tuple[str, ...] = ()  # where they are not those of the role


def write_rule(parameter: Parameter) -> dict[str, JsonValue]:
    """The rule of a parameter in the schema of a tool's arguments."""
    rule: dict[str, JsonValue] = {"type": parameter.type}
    if parameter.choices:
        rule["enum"] = list(parameter.choices)
    if parameter.about:
        rule["description"] = parameter.about
    if parameter.example != "" and not parameter.choices:
        rule["examples"] = [parameter.example]
    return rule
