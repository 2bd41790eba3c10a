"""The pool of a training job: an equal call of a worker whose reply may stand for a new one is made once."""

from __future__ import annotations

from dataclasses import replace

from pool_registry.actions import Observation
from pool_registry.calls.call_cache import MAX_ENTRIES, CallCache
from pool_registry.calls.live_pool import LivePool


class CachingPool(LivePool):
    """A live pool that records what every cacheable worker returns, for as long as the job runs.

    A recorded observation still counts what the call had cost: rewards judge what an orchestrator asks
    for, and not whether another rollout had asked for it before.
    """

    def __init__(self, pool: LivePool, max_entries: int = MAX_ENTRIES) -> None:
        super().__init__(pool.pool, pool.workers, CallCache(max_entries=max_entries))
        self.hash = pool.hash
        cacheable = {name for name, live in pool.workers.items() if live.worker.cacheable}
        self._recorded |= {name for name in cacheable if pool.workers[name].spec.effects != "some"}

    @property
    def hits(self) -> int:
        """The number of calls that a recorded observation replaced."""
        return self.cache.hits

    def _as_recorded(self, observation: Observation) -> Observation:
        return replace(observation, latency_s=0.0, cached=True)
