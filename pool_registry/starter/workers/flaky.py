"""Kind `flaky`: another worker that fails now and then. For training and testing recovery.

Whether a call fails depends on the seed and the arguments alone: episodes can be repeated, and asking
again in the same words fails again, so that only another way helps.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, field_validator

from pool_registry.actions import JsonValue
from pool_registry.errors import InvalidPool, WorkerFault
from pool_registry.kinds import kind_of, load_config, open_worker
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, Worker, WorkerSpec

FailedStatus = Literal["EXEC_ERR", "TIMEOUT"]


class FlakyConfig(StrictModel):
    inner: dict[str, JsonValue] = Field(description="The tool that is called: its name, kind, description, config.")
    rate: float = Field(default=0.3, ge=0, le=1, description="Which share of all calls fails.")
    statuses: tuple[FailedStatus, ...] = Field(
        default=("EXEC_ERR",), min_length=1, description="How they fail; TIMEOUT takes the worker's whole time-out."
    )
    seed: int = Field(default=0, description="Another number makes other calls fail.")

    @field_validator("inner")
    @classmethod
    def _a_tool(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        spec = WorkerSpec.model_validate(value)
        try:
            if kind_of(spec).role != "tool":
                raise ValueError("only tools can be made flaky; agents fail by themselves")
            load_config(spec)
        except InvalidPool as error:
            raise ValueError(str(error)) from error
        return value


class Flaky(Worker[FlakyConfig]):
    label = "Flaky tool"
    summary = "Another tool that fails now and then, to practise recovery."
    icon = "M13 3L5 14h6l-1 7 9-12h-6z"
    template = None  # its task family needs it; a person would not add it
    Config = FlakyConfig

    def __init__(self, spec: WorkerSpec, config: FlakyConfig) -> None:
        super().__init__(spec, config)
        self._inner: Worker[Any] = open_worker(WorkerSpec.model_validate(config.inner))
        self.sample, self.sample_seen = self._inner.sample, self._inner.sample_seen

    @classmethod
    def runs(cls, config: FlakyConfig) -> str:
        (inner,) = cls.inner_workers(config)
        return kind_of(inner).load().runs(load_config(inner))

    @classmethod
    def inner_workers(cls, config: FlakyConfig) -> tuple[WorkerSpec, ...]:
        return (WorkerSpec.model_validate(config.inner),)

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return self._inner.parameters

    async def call(self, call: Call) -> Reply:
        failure = self._failure(call)
        if failure == "TIMEOUT":
            await asyncio.sleep(2 * self.spec.timeout_s)
        if failure is not None:
            raise WorkerFault("unavailable", f"{self.spec.name} is out of order; use another worker for this")
        return await self._inner.call(call)

    async def check(self) -> str:
        return await self._inner.check()

    async def close(self) -> None:
        await self._inner.close()

    def _failure(self, call: Call) -> FailedStatus | None:
        """Decide how this call fails; None when it does not."""
        key = json.dumps([self.config.seed, dict(call.arguments)], sort_keys=True)
        drawn = hashlib.blake2b(key.encode(), digest_size=8).digest()
        if int.from_bytes(drawn[:4]) >= self.config.rate * 2**32:
            return None
        return self.config.statuses[int.from_bytes(drawn[4:]) % len(self.config.statuses)]
