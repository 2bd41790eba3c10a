"""The open pools of a job: its own, and those that tasks bring with them.

Tasks of the same pool share one open pool. Of the pools that no episode uses, a few stay open for the next task; the
one that was used longest ago is closed first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pool_registry.calls.caching_pool import CachingPool
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.pool import Pool
from trainer.tasks.task import Task

MAX_OPEN = 32  # pools beside the job's own that stay open
VaryTask = Callable[[Task], Task]


@runtime_checkable
class PoolKeeper(Protocol):
    """A sink that keeps the pools which its traces name."""

    def keep_pool(self, pool: Pool, pool_hash: str) -> None: ...


def keep_task(task: Task) -> Task:
    """The task as it is."""
    return task


@dataclass(slots=True)
class _OpenPool:
    """An open pool and how many episodes use it."""

    live: LivePool
    users: int = 0


class TaskPools:
    """Opens the pool of each task. `home` is the job's own, which its opener closes.

    `sink` gets the pools that it should keep for traces. `vary` draws the pool of a task (vary_pool.py). Where calls
    of `home` are cached, those of the other pools are too.
    """

    def __init__(
        self, home: LivePool, sink: object = None, vary: VaryTask = keep_task, max_open: int = MAX_OPEN
    ) -> None:
        self.home = home
        self.vary = vary
        self._keeper = sink if isinstance(sink, PoolKeeper) else None
        self._open: OrderedDict[str, _OpenPool] = OrderedDict()
        self._max_open = max_open
        self._past_hits = 0

    @property
    def hits(self) -> int:
        """The number of calls that a recorded observation replaced, in all pools."""
        pools = (self.home, *(opened.live for opened in self._open.values()))
        return self._past_hits + sum(map(_count_hits, pools))

    @asynccontextmanager
    async def open(self, task: Task) -> AsyncIterator[LivePool]:
        """The pool of a task, open for the body of the `with`. Raises InvalidPool."""
        if task.pool is None:
            yield self.home
            return
        pool_hash = task.pool.hash
        opened = self._find(task.pool, pool_hash)
        opened.users += 1
        try:
            yield opened.live
        finally:
            opened.users -= 1
            await self._close_oldest()

    async def close(self) -> None:
        """Close every pool but the job's own."""
        while self._open:
            await self._close(next(iter(self._open)))

    def _find(self, pool: Pool, pool_hash: str) -> _OpenPool:
        if pool_hash not in self._open:
            live = open_live_pool(pool)
            live.hash = pool_hash
            if self._keeper is not None:
                self._keeper.keep_pool(pool, pool_hash)
            self._open[pool_hash] = _OpenPool(CachingPool(live) if isinstance(self.home, CachingPool) else live)
        self._open.move_to_end(pool_hash)
        return self._open[pool_hash]

    async def _close_oldest(self) -> None:
        # An episode that ends while a pool closes closes others, and one that begins uses one: look again each time.
        while len(self._open) > self._max_open:
            idle = next((pool_hash for pool_hash, opened in self._open.items() if not opened.users), None)
            if idle is None:
                return
            await self._close(idle)

    async def _close(self, pool_hash: str) -> None:
        opened = self._open.pop(pool_hash)
        self._past_hits += _count_hits(opened.live)
        await opened.live.close()


def _count_hits(pool: LivePool) -> int:
    return pool.hits if isinstance(pool, CachingPool) else 0
