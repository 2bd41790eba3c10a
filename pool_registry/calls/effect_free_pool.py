"""A pool for trials: of its workers only those are called whose calls have no effects, or that a person allows.

Language models answer as ever, unless they are marked as having effects."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import LivePool
from pool_registry.calls.live_worker import LiveWorker
from pool_registry.errors import WorkerFault
from pool_registry.worker import Call, Reply, Worker

MAY_HAVE_EFFECTS = "may_have_effects"


def list_refused_workers(pool: LivePool, allowed: Collection[str] = ()) -> list[str]:
    """The names of the workers whose calls may have effects and that nobody allowed."""
    return [name for name, live in pool.workers.items() if live.has_effects and name not in allowed]


def refuse_effects(pool: LivePool, allowed: Collection[str] = ()) -> LivePool:
    """The pool in which a call of such a tool fails and says why. The pool that is given must be closed by its opener.

    A tool also refuses where it would take over for another worker.
    """
    refused = list_refused_workers(pool, allowed)
    workers = dict(pool.workers)
    for name in refused:
        live = pool.workers[name]
        workers[name] = LiveWorker(live.spec, RefusedWorker(live.worker))
    guarded = LivePool(pool.pool, workers)
    guarded.stand_for(pool)
    return guarded


class RefusedWorker(Worker[Any]):
    """Takes the arguments of the worker that it stands for, and calls nothing."""

    def __init__(self, worker: Worker[Any]) -> None:
        super().__init__(worker.spec, worker.config)
        self._parameters = worker.parameters

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return self._parameters

    async def call(self, call: Call) -> Reply:  # noqa: ARG002
        raise WorkerFault(
            MAY_HAVE_EFFECTS, f"a call of {self.spec.name} may have effects, and this is a trial; allow it by name"
        )
