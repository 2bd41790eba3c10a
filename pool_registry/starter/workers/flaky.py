"""Kind `flaky`: another worker that fails now and then. For training and testing recovery.

Whether a call fails depends on the seed and the arguments alone: episodes can be repeated, and asking
again in the same words fails again, so that only another way helps.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Literal

from pydantic import Field

from pool_registry.errors import WorkerFault
from pool_registry.starter.workers.inner_tool import InnerTool, InnerToolConfig
from pool_registry.worker import Call, Reply

FailedStatus = Literal["EXEC_ERR", "TIMEOUT"]


class FlakyConfig(InnerToolConfig):
    rate: float = Field(default=0.3, ge=0, le=1, description="Which share of all calls fails.")
    statuses: tuple[FailedStatus, ...] = Field(
        default=("EXEC_ERR",), min_length=1, description="How they fail; TIMEOUT takes the worker's whole time-out."
    )
    seed: int = Field(default=0, description="Another number makes other calls fail.")


class Flaky(InnerTool[FlakyConfig]):
    label = "Flaky tool"
    summary = "Another tool that fails now and then, to practise recovery."
    icon = "M13 3L5 14h6l-1 7 9-12h-6z"
    wording = ("seed",)
    Config = FlakyConfig

    async def call(self, call: Call) -> Reply:
        failure = self._failure(call)
        if failure == "TIMEOUT":
            await asyncio.sleep(2 * self.spec.timeout_s)
        if failure is not None:
            raise WorkerFault("unavailable", f"{self.spec.name} is out of order; use another worker for this")
        return await self._inner.call(call)

    def _failure(self, call: Call) -> FailedStatus | None:
        """Decide how this call fails; None when it does not."""
        key = json.dumps([self.config.seed, dict(call.arguments)], sort_keys=True)
        drawn = hashlib.blake2b(key.encode(), digest_size=8).digest()
        if int.from_bytes(drawn[:4]) >= self.config.rate * 2**32:
            return None
        return self.config.statuses[int.from_bytes(drawn[4:]) % len(self.config.statuses)]
