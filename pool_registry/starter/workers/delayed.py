"""Kind `delayed`: another tool that answers later. For training on workers of different speeds.

The wait is real: the executor's clock, time-outs and traces see it, and calls are never answered from a cache. How long
it is stands in the worker's configuration, which is part of the pool of every trace.
"""

from __future__ import annotations

import asyncio

from pydantic import Field

from pool_registry.starter.workers.inner_tool import InnerTool, InnerToolConfig
from pool_registry.worker import Call, Reply

MAX_LATENCY_MS = 60_000


class DelayedConfig(InnerToolConfig):
    latency_ms: int = Field(ge=0, le=MAX_LATENCY_MS, description="Milliseconds that pass before each call.")


class Delayed(InnerTool[DelayedConfig]):
    label = "Delayed tool"
    summary = "Another tool that answers later, to practise plans that wait little."
    icon = "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18z M12 7v5l3 3"
    Config = DelayedConfig

    async def call(self, call: Call) -> Reply:
        await asyncio.sleep(self.config.latency_ms / 1000)
        return await self._inner.call(call)
