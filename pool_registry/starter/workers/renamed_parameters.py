"""Kind `renamed_parameters`: another tool whose parameters have other names. For training on pools that vary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from pydantic import Field

from pool_registry.actions import JsonValue
from pool_registry.errors import InvalidPool
from pool_registry.starter.workers.inner_tool import InnerTool, InnerToolConfig
from pool_registry.worker import Call, Reply, WorkerSpec

T = TypeVar("T")


class RenamedParametersConfig(InnerToolConfig):
    names: dict[str, str] = Field(description="The tool's parameters and what they are called here.")


class RenamedParameters(InnerTool[RenamedParametersConfig]):
    label = "Renamed parameters"
    summary = "Another tool whose parameters have other names, to practise reading schemas."
    icon = "M4 7h10 M4 12h6 M4 17h10 M17 8l4 4-4 4"
    Config = RenamedParametersConfig

    def __init__(self, spec: WorkerSpec, config: RenamedParametersConfig) -> None:
        super().__init__(spec, config)
        properties = self._inner.parameters.get("properties")
        there = set(properties) if isinstance(properties, dict) else set()
        unknown = sorted(config.names.keys() - there)
        if unknown:
            raise InvalidPool([("names", f"the tool has no parameter {unknown[0]!r}; it has: {', '.join(there)}")])
        shown = [config.names.get(name, name) for name in there]
        if len(set(shown)) < len(shown):
            raise InvalidPool([("names", "two parameters would have the same name")])
        self._originals = {new: old for old, new in config.names.items()}
        self.sample = self._rename(self._inner.sample)
        self.cacheable = self._inner.cacheable  # type: ignore[misc]  # the class can only say no for all

    @property
    def only_reads(self) -> bool:
        return self._inner.only_reads

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        schema = dict(self._inner.parameters)
        properties, required = schema.get("properties"), schema.get("required")
        if isinstance(properties, dict):
            schema["properties"] = self._rename(properties)
        if isinstance(required, list):
            schema["required"] = [self.config.names.get(str(name), str(name)) for name in required]
        return schema

    async def call(self, call: Call) -> Reply:
        arguments = {self._originals.get(name, name): value for name, value in call.arguments.items()}
        return await self._inner.call(replace(call, arguments=arguments))

    def _rename(self, values: Mapping[str, T]) -> dict[str, T]:
        return {self.config.names.get(name, name): value for name, value in values.items()}
