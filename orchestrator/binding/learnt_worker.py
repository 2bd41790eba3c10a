"""What a checkpoint keeps of each worker that it learnt, so that it can be bound to the workers of another pool."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from assets import asset
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import LivePool, LiveWorker, open_live_pool
from pool_registry.starter import starter_pool
from pool_registry.strict_model import FrozenModel
from pool_registry.worker import Role


class LearntWorker(FrozenModel):
    """A worker as the checkpoint knew it. `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    role: Role
    parameters: Mapping[str, JsonValue]


def describe_learnt(worker: LiveWorker) -> LearntWorker:
    """What is kept of a worker."""
    spec = worker.spec
    return LearntWorker(
        name=spec.name, description=spec.description, role=worker.role, parameters=dict(worker.parameters)
    )


def describe_learnt_pool(pool: LivePool) -> tuple[LearntWorker, ...]:
    """What is kept of the workers of a pool, in its order."""
    return tuple(map(describe_learnt, pool.workers.values()))


def describe_starter(pool_hash: str) -> tuple[LearntWorker, ...]:
    """The workers of the starter pool where this is its hash, for manifests that keep none; () for any other, and in
    a published Space, which has no starter pool."""
    if not asset("pools/starter.yaml").is_file() or pool_hash != starter_pool().hash:
        return ()
    return _describe_starter()


@cache
def _describe_starter() -> tuple[LearntWorker, ...]:
    return describe_learnt_pool(open_live_pool(starter_pool()))  # nothing is called: there is nothing to close
