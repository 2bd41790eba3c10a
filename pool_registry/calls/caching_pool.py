"""The pool of a training job: an equal call of a worker whose reply may stand for a new one is made once."""

from __future__ import annotations

from dataclasses import replace

from pool_registry.actions import Observation
from pool_registry.calls.call_cache import MAX_ENTRIES, CallCache
from pool_registry.calls.live_pool import LivePool
from pool_registry.calls.worker_state import WorkerState


class CachingPool(LivePool):
    """A live pool that records what every repeatable worker returns, for as long as the job runs."""

    def __init__(self, pool: LivePool, max_entries: int = MAX_ENTRIES) -> None:
        super().__init__(pool.pool, pool.workers, JobCache(max_entries=max_entries))
        self.stand_for(pool)

    @property
    def hits(self) -> int:
        """The number of calls that a recorded observation replaced."""
        return self.cache.hits


class JobCache(CallCache):
    """Records every worker whose reply may stand for a new one, unless it has effects.

    A recorded observation still counts what the call had cost: rewards judge what an orchestrator asks
    for, and not whether another rollout had asked for it before.
    """

    def records(self, worker: WorkerState) -> bool:
        return super().records(worker) or (worker.worker.is_repeatable and worker.spec.effects != "some")

    def as_recorded(self, observation: Observation) -> Observation:
        return replace(observation, latency_s=0.0, cached=True)
