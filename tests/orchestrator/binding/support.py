"""Workers with any schema and description, in an open pool, without anything behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.binding.learnt_worker import LearntWorker
from pool_registry.calls.live_pool import LivePool
from pool_registry.calls.live_worker import LiveWorker
from pool_registry.pool import Pool
from pool_registry.worker import Call, NoConfig, Reply, Worker, WorkerSpec

KINDS_OF_ROLES = {"tool": "calculator", "agent": "local_model", "recursion": "orchestrator"}


class Listed(Worker[NoConfig]):
    """A worker that is only looked at, but for its calls: it gives back its arguments."""

    def __init__(self, spec: WorkerSpec, schema: Mapping[str, Any]) -> None:
        super().__init__(spec, NoConfig())
        self._schema = schema

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self._schema

    async def call(self, call: Call) -> Reply:
        return Reply(dict(call.arguments))


def schema_of(types: Mapping[str, str], optional: Iterable[str] = ()) -> dict[str, Any]:
    """The JSON Schema of these parameters."""
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in types.items()},
        "required": [name for name in types if name not in optional],
        "additionalProperties": False,
    }


TEXT = schema_of({"text": "string"})


def worker(
    name: str, description: str, schema: Mapping[str, Any] = TEXT, role: str = "tool", price: float = 0.0
) -> LiveWorker:
    """A worker at hand."""
    spec = WorkerSpec(name=name, kind=KINDS_OF_ROLES[role], description=description, price_call=price)
    return LiveWorker(spec, Listed(spec, schema))


def learnt(name: str, description: str, schema: Mapping[str, Any] = TEXT, role: str = "tool") -> LearntWorker:
    """A worker that a checkpoint learnt."""
    return LearntWorker(name=name, description=description, role=role, parameters=schema)


def pool_of(*workers: LiveWorker) -> LivePool:
    """An open pool of these workers."""
    specs = tuple(item.spec for item in workers)
    return LivePool(Pool(name="hand", workers=specs), {item.spec.name: item for item in workers})
