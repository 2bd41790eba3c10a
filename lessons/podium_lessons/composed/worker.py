"""Kind `composed`: a function of a domain. It looks up a thing, lists those that share something, or calculates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from podium_lessons.composed.domain import list_domains, load_domain
from podium_lessons.composed.values import Record, calculate, find_calculation, list_group, look_up
from podium_lessons.projects.project_data import ValueData
from pool_registry.actions import JsonValue
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, Worker, WorkerSpec

Form = Literal["record", "group", "calculation"]


class ComposedConfig(StrictModel):
    domain: str = Field(description="Which domain.")
    seed: int = Field(description="What its values are drawn from.")
    form: Form = Field(description="Whether it looks up a thing, lists things that share something, or calculates.")
    about: str = Field(description="The kind of things, or the calculation.")
    field: str = Field(default="", description="What the things of a list share.")
    fields: tuple[str, ...] = Field(min_length=1, description="What it gives.")
    bare: bool = Field(default=False, description="Whether it gives its one field itself, not an object.")
    parameters: dict[str, str] = Field(min_length=1, description="What it takes: what that is called.")
    hints: dict[str, str] = Field(default_factory=dict, description="What is said of its parameters.")
    choices: bool = Field(default=False, description="Whether its schema names the values of choices.")
    example: dict[str, JsonValue] = Field(default_factory=dict, description="A call, on its card.")

    @model_validator(mode="after")
    def _is_there(self) -> ComposedConfig:
        if self.domain not in list_domains():  # a pool may come from anywhere: this is no path
            raise ValueError(f"there is no domain {self.domain!r}")
        data = load_domain(self.domain)
        if self.form == "calculation":
            calculation = next((data for data in data.calculations if data.name == self.about), None)
            there = [*calculation.gives] if calculation else []
        else:
            there = [*data.things[self.about].fields] if self.about in data.things else []
        missing = next((name for name in (*self.fields, *filter(None, [self.field])) if name not in there), None)
        if missing is not None or not there:
            raise ValueError(f"{self.domain} has no {self.about}.{missing or ''}")
        return self


class ComposedFunction(Worker[ComposedConfig]):
    label = "Function of a domain"
    summary = "A function of a generated domain: looks up a thing, lists things, or calculates."
    icon = "M5 4h14v16H5z M9 9h6 M9 13h6"
    template = None  # training needs it; a person would not add it
    cacheable = True
    wording = ("seed",)
    Config = ComposedConfig

    def __init__(self, spec: WorkerSpec, config: ComposedConfig) -> None:
        super().__init__(spec, config)
        self.returns = describe_result(config)

    @property
    def sample(self) -> Mapping[str, JsonValue]:  # type: ignore[override]
        return self.config.example

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        config = self.config
        properties: dict[str, JsonValue] = {}
        for part, name in config.parameters.items():
            hint = config.hints.get(part)
            properties[name] = {**_describe_parameter(config, part), **({"description": hint} if hint else {})}
        return {
            "type": "object",
            "properties": properties,
            "required": [*properties],
            "additionalProperties": False,
        }

    async def call(self, call: Call) -> Reply:
        parts = {part: call.arguments[name] for part, name in self.config.parameters.items()}
        return Reply(run_function(self.config, parts))


def run_function(config: ComposedConfig, parts: Mapping[str, JsonValue]) -> JsonValue:
    """What a call gives. Raises BadCall."""
    if config.form == "group":
        rows = list_group(config.domain, config.seed, config.about, config.field, parts["thing"])
        return [{"name": row["name"], **_select(row, config)} for row in rows]
    if config.form == "record":
        record = look_up(config.domain, config.seed, config.about, parts["thing"])
    else:
        record = calculate(config.domain, config.seed, config.about, parts)
    return record[config.fields[0]] if config.bare else dict(_select(record, config))


def _select(record: Record, config: ComposedConfig) -> Record:
    return {name: record[name] for name in config.fields}


def _describe_parameter(config: ComposedConfig, part: str) -> dict[str, JsonValue]:
    if config.form != "calculation":
        return {"type": "string"}
    parameter = find_calculation(config.domain, config.about).takes[part]
    if parameter.number:
        return {"type": "number" if parameter.number[2] else "integer"}
    return {"type": "string", **({"enum": [*parameter.choice]} if config.choices and parameter.choice else {})}


def describe_result(config: ComposedConfig) -> dict[str, JsonValue]:
    """The JSON Schema of what a function gives; {} for a bare value."""
    if config.bare:
        return {}
    data = load_domain(config.domain)
    if config.form == "calculation":
        gives = {name: value.gives for name, value in find_calculation(config.domain, config.about).gives.items()}
    else:
        gives = {name: value.gives for name, value in data.things[config.about].fields.items()}
    properties: dict[str, JsonValue] = {name: {"type": _name_type(gives[name])} for name in config.fields}
    if config.form == "group":
        return {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}, **properties}}}
    return {"type": "object", "properties": properties}


def _name_type(gives: ValueData) -> str:
    return ("number" if gives.number[2] else "integer") if gives.number else "string"
