"""The observation cache: an equal call of a cacheable worker is not made twice.

The key is everything the worker sees: its name, its arguments and the outputs it may read. Calls that
are under way are shared, too. Failures are not kept.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from dataclasses import asdict, replace

from pool_registry.actions import Action, Observation
from pool_registry.live import LivePool, OnStart
from pool_registry.worker import Scope, Visible

MAX_ENTRIES = 100_000


class CachingPool(LivePool):
    """A live pool that remembers. `hits` counts the calls that were not made."""

    def __init__(self, pool: LivePool, max_entries: int = MAX_ENTRIES) -> None:
        super().__init__(pool.pool, pool.workers)
        self.hash = pool.hash
        self._known: OrderedDict[str, Observation] = OrderedDict()
        self._running: dict[str, asyncio.Future[Observation]] = {}
        self._max_entries = max_entries
        self.hits = 0

    async def call(
        self,
        action: Action,
        visible: tuple[Visible, ...] = (),
        scope: Scope | None = None,
        on_start: OnStart | None = None,
    ) -> Observation:
        worker = self.workers.get(action.worker)
        if worker is None or not worker.worker.cacheable:
            return await super().call(action, visible, scope, on_start)
        key = _key(action, visible)
        found = self._known.get(key) or await self._shared(key)
        if found is not None and found.ok:
            self.hits += 1
            if on_start is not None:
                on_start()
            return replace(found, latency_s=0.0)
        return await self._made(key, action, visible, scope, on_start)

    async def _shared(self, key: str) -> Observation | None:
        """What an equal call that is under way brings; None when there is none, or its caller was stopped."""
        running = self._running.get(key)
        if running is None:
            return None
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if running.cancelled() and task is not None and not task.cancelling():
                return None
            raise  # this call itself was stopped, perhaps together with the one it waited for

    async def _made(
        self, key: str, action: Action, visible: tuple[Visible, ...], scope: Scope | None, on_start: OnStart | None
    ) -> Observation:
        running: asyncio.Future[Observation] = asyncio.get_running_loop().create_future()
        self._running[key] = running
        try:
            observation = await super().call(action, visible, scope, on_start)
            running.set_result(observation)
        finally:
            if not running.done():
                running.cancel()
            if self._running.get(key) is running:
                del self._running[key]
        if observation.ok:
            self._known[key] = observation
            if len(self._known) > self._max_entries:
                self._known.popitem(last=False)
        return observation


def _key(action: Action, visible: tuple[Visible, ...]) -> str:
    seen = [[view.worker, asdict(view.observation)["value"], view.observation.status] for view in visible]
    return json.dumps([action.worker, dict(action.arguments), seen], sort_keys=True, ensure_ascii=False)
