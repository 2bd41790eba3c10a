"""A cache of observations: an equal call that may see the same outputs is not made twice.

The key is everything the worker sees: what the worker is, its arguments and the outputs it may read. Calls
in progress are shared, too. Failures are not kept. Without a store the cache ends with the process.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol

from pool_registry.actions import NO_USAGE, Observation
from pool_registry.calls.worker_state import WorkerState
from pool_registry.worker import Call

MAX_ENTRIES = 100_000


class CacheStore(Protocol):
    """The storage in which observations outlive the process. Both methods may block; they are called on a thread."""

    def get(self, key: str) -> Observation | None: ...

    def put(self, key: str, observation: Observation) -> None: ...


class CallCache:
    """A cache of observations; the oldest is dropped when it is full. `hits` counts the calls that were saved."""

    def __init__(self, store: CacheStore | None = None, max_entries: int = MAX_ENTRIES) -> None:
        self._store = store
        self._observations: OrderedDict[str, Observation] = OrderedDict()
        self._running: dict[str, asyncio.Future[Observation]] = {}
        self._max_entries = max_entries
        self.hits = 0

    def records(self, worker: WorkerState) -> bool:
        """Whether a recorded observation of this worker may stand for a call."""
        return worker.spec.cache

    def as_recorded(self, observation: Observation) -> Observation:
        """The observation of a call that was not made: nothing was spent on it."""
        return replace(observation, latency_s=0.0, usage=NO_USAGE, cached=True)

    async def observation(self, key: str, make: Callable[[], Awaitable[Observation]]) -> tuple[Observation, bool]:
        """Return the observation cached under `key`, else that of `make`, and whether it was cached."""
        observation = self._observations.get(key) or await self._await_running(key)
        if observation is not None and observation.ok:
            self.hits += 1
            return observation, True
        return await self._make(key, make)

    async def _await_running(self, key: str) -> Observation | None:
        """Wait for an equal call in progress; None when there is none or its caller was cancelled."""
        running = self._running.get(key)
        if running is None:
            return None
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if running.cancelled() and task is not None and not task.cancelling():
                return None
            raise  # this call itself was cancelled, perhaps together with the one it waited for

    async def _make(self, key: str, make: Callable[[], Awaitable[Observation]]) -> tuple[Observation, bool]:
        running: asyncio.Future[Observation] = asyncio.get_running_loop().create_future()
        self._running[key] = running
        try:
            stored = None if self._store is None else await asyncio.to_thread(self._store.get, key)
            observation = await make() if stored is None else stored
            running.set_result(observation)
        finally:
            if not running.done():
                running.cancel()
            if self._running.get(key) is running:
                del self._running[key]
        if stored is not None:
            self.hits += 1
        if observation.ok and observation.answered_by is None:  # another worker's answer is not this one's
            self._observations[key] = observation
            if len(self._observations) > self._max_entries:
                self._observations.popitem(last=False)
            if self._store is not None and stored is None:
                await asyncio.to_thread(self._store.put, key, observation)
        return observation, stored is not None


def key_of(identity: str, call: Call) -> str:
    """Return the cache key of a call: equal for equal calls only."""
    seen = [
        [view.worker, view.observation.value, view.observation.status, _error_parts(view.observation)]
        for view in call.visible
    ]
    content = json.dumps([identity, dict(call.arguments), seen], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def _error_parts(observation: Observation) -> list[str]:
    return [] if observation.error is None else [observation.error.code, observation.error.message]
