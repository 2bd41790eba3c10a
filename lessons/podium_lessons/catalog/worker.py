"""Kind `catalog_tool`: a tool of the catalog. It does nothing: what it returns follows from what it was told, so that
an answer shows whether every argument was right."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property

from pydantic import Field, field_validator

from podium_lessons.catalog.catalog_data import CatalogTool, ParameterData, find_tool
from pool_registry.actions import JsonValue
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, Worker, WorkerSpec
from trainer.tasks.suite import make_random

WORDS = ("amber", "birch", "cobalt", "delta", "ember", "fjord", "grove", "harbor", "indigo", "juniper", "kelp", "lotus")
LARGEST_NUMBER = 900.0


class CatalogToolConfig(StrictModel):
    tool: str = Field(description="Which tool of the catalog.")
    seed: int = Field(description="What its results are drawn from.")
    whole: bool = Field(default=False, description="Whether it returns an object, not its first field alone.")
    lists: tuple[str, ...] = Field(default=(), description="Parameters that take a list.")
    choices: tuple[str, ...] = Field(default=(), description="Parameters whose schema names every value.")
    example: dict[str, JsonValue] = Field(default_factory=dict, description="A call, on its card.")

    @field_validator("tool")
    @classmethod
    def _is_there(cls, tool: str) -> str:
        if find_tool(tool) is None:
            raise ValueError(f"there is no tool {tool!r}")
        return tool


class CatalogWorker(Worker[CatalogToolConfig]):
    label = "Tool of a catalog"
    summary = "A simulated tool with the parameters of a real one; its results follow from its arguments."
    icon = "M5 4h14v16H5z M9 9h6 M9 13h6"
    template = None  # training needs it; a person would not add it
    cacheable = True
    wording = ("seed",)
    Config = CatalogToolConfig

    def __init__(self, spec: WorkerSpec, config: CatalogToolConfig) -> None:
        super().__init__(spec, config)
        outputs: dict[str, JsonValue] = {name: {"type": kind} for name, kind in _find(config.tool).outputs.items()}
        self.returns = {"type": "object", "properties": outputs} if config.whole else {}

    @property
    def sample(self) -> Mapping[str, JsonValue]:  # type: ignore[override]
        return self.config.example

    @cached_property
    def parameters(self) -> Mapping[str, JsonValue]:
        tool = _find(self.config.tool)
        return {
            "type": "object",
            "properties": {name: self._describe(name, parameter) for name, parameter in tool.parameters.items()},
            "required": [name for name, parameter in tool.parameters.items() if parameter.required],
            "additionalProperties": False,
        }

    def _describe(self, name: str, parameter: ParameterData) -> dict[str, JsonValue]:
        schema: dict[str, JsonValue] = {"type": parameter.type}
        if name in self.config.choices:
            schema["enum"] = list(parameter.values)
        if name in self.config.lists:
            schema = {"type": "array", "items": schema}
        return schema | {"description": parameter.hint}

    async def call(self, call: Call) -> Reply:
        return Reply(compute_result(self.config, call.arguments))


def compute_result(config: CatalogToolConfig, arguments: Mapping[str, JsonValue]) -> JsonValue:
    """What a call returns: numbers and words that any other argument changes."""
    outputs = _find(config.tool).outputs
    told = json.dumps({name: _normalize(value) for name, value in sorted(arguments.items())}, ensure_ascii=False)
    random = make_random(f"catalog/{config.seed}/{config.tool}/{told}")
    result: dict[str, JsonValue] = {
        name: round(random.uniform(2, LARGEST_NUMBER), 1)
        if kind == "number"
        else f"{random.choice(WORDS)}-{random.randint(100, 999)}"
        for name, kind in outputs.items()
    }
    return result if config.whole else next(iter(result.values()))


def _find(name: str) -> CatalogTool:
    tool = find_tool(name)
    assert tool is not None, "the configuration was checked"
    return tool


def _normalize(value: JsonValue) -> JsonValue:
    """A value without case, and numbers of one type."""
    if isinstance(value, list):
        return [_normalize(item) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return " ".join(str(value).casefold().split())
