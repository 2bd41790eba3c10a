"""The base of kinds that wrap another tool and change one thing about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import Field, field_validator

from pool_registry.actions import JsonValue
from pool_registry.errors import InvalidPool
from pool_registry.kinds import kind_of, load_config, open_worker
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Worker, WorkerSpec


class InnerToolConfig(StrictModel):
    inner: dict[str, JsonValue] = Field(description="The tool that is called: its name, kind, description, config.")

    @field_validator("inner")
    @classmethod
    def _a_tool(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        spec = WorkerSpec.model_validate(value)
        try:
            if kind_of(spec).role != "tool":
                raise ValueError("only tools can be wrapped, and no agents")
            load_config(spec)
        except InvalidPool as error:
            raise ValueError(str(error)) from error
        return value


C = TypeVar("C", bound=InnerToolConfig)


class InnerTool(Worker[C]):
    """A tool inside another worker. Subclasses say what `call` changes."""

    template = None  # training needs such workers; a person would not add them

    def __init__(self, spec: WorkerSpec, config: C) -> None:
        super().__init__(spec, config)
        self._inner: Worker[Any] = open_worker(WorkerSpec.model_validate(config.inner))
        self.sample, self.sample_seen = self._inner.sample, self._inner.sample_seen
        self.returns = self._inner.returns

    @classmethod
    def runs(cls, config: C) -> str:
        (inner,) = cls.inner_workers(config)
        return kind_of(inner).load().runs(load_config(inner))

    @classmethod
    def inner_workers(cls, config: C) -> tuple[WorkerSpec, ...]:
        return (WorkerSpec.model_validate(config.inner),)

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return self._inner.parameters

    async def check(self) -> str:
        return await self._inner.check()

    async def close(self) -> None:
        await self._inner.close()
