"""Kind `orchestrator`: runs an episode of its own, one level deeper, through the running episode's scope."""

from __future__ import annotations

from pydantic import Field

from pool_registry.errors import WorkerFault
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, Worker, one_string


class RecursionConfig(StrictModel):
    orchestrator: str = Field(
        default="same", min_length=1, description="same (that of the running episode), or a name such as fan_out."
    )


class Recursion(Worker[RecursionConfig]):
    role = "recursion"
    label = "Orchestrator"
    summary = "Runs an episode of its own, one level deeper."
    icon = "M20 12a8 8 0 1 1-2.6-5.9 M20 3v5h-5"
    Config = RecursionConfig
    sample = {"instruction": "A question that can be answered on its own."}
    parameters = one_string("instruction", "A self-contained query for the inner episode.")

    async def call(self, call: Call) -> Reply:
        if call.scope is None:
            raise WorkerFault("no_episode", "this worker runs inside an episode only; use it in a plan")
        return await call.scope.descend(self.config.orchestrator, call.text("instruction"), call.visible)
