"""An open pool: calls that never raise.

`LivePool.call` turns an action into an observation. What happens on the way is listed in layers.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from difflib import get_close_matches
from functools import cached_property

from pool_registry.actions import Action, Observation, Status
from pool_registry.calls.call_cache import CallCache
from pool_registry.calls.layers import Answer, Peers, stack_answer_layers
from pool_registry.calls.live_worker import LiveWorker, OnStart
from pool_registry.errors import InvalidPool
from pool_registry.kinds import open_worker
from pool_registry.pool import Pool
from pool_registry.worker import Call, Scope, Visible

MAX_NAMES = 24  # in the sentence about an unknown worker: a model reads it

__all__ = ["LivePool", "LiveWorker", "OnStart", "live_pool", "open_live_pool"]


class LivePool:
    """A pool whose enabled workers can be called. Bound to the event loop that opened it."""

    def __init__(self, pool: Pool, workers: Mapping[str, LiveWorker], cache: CallCache | None = None) -> None:
        self.pool = pool
        self.workers = workers
        self.cache = CallCache() if cache is None else cache
        self._answers: dict[str, Answer] = {}  # stacked at a worker's first call: many pools are made, and few called

    @cached_property
    def hash(self) -> str:
        """The pool's hash, computed once: every episode records it."""
        return self.pool.hash

    async def call(
        self,
        action: Action,
        visible: tuple[Visible, ...] = (),
        scope: Scope | None = None,
        on_start: OnStart | None = None,
    ) -> Observation:
        """Run one action. Never raises; unknown workers and bad arguments are PARSE_ERR."""
        worker = self.workers.get(action.worker)
        if worker is None:
            return Observation.failure(Status.PARSE_ERR, "unknown_worker", self.unknown_worker(action.worker))
        problem = worker.argument_problem(action.arguments)
        if problem is not None:
            return Observation.failure(Status.PARSE_ERR, "bad_arguments", problem)
        answer = self._answers.get(action.worker)
        if answer is None:
            answer = self._answers[action.worker] = stack_answer_layers(worker, Peers(self.workers, self.cache))
        return await answer(Call(action.arguments, visible, scope), on_start)

    def unknown_worker(self, name: str) -> str:
        """Build the sentence that tells a model which workers there are."""
        names, which = list(self.workers), "use one of"
        if len(names) > MAX_NAMES:
            names, which = get_close_matches(name[:80], names, MAX_NAMES, cutoff=0), "the nearest names are"
        return f"there is no worker {name[:80]!r}; {which}: {', '.join(names)}"

    def narrow(self, names: Collection[str]) -> LivePool:
        """This pool with these workers alone. Names that it lacks are left out."""
        kept = {name: worker for name, worker in self.workers.items() if name in names}
        pool = LivePool(self.pool, kept, self.cache)
        pool.hash = self.hash
        return pool

    async def close(self) -> None:
        for worker in self.workers.values():
            await worker.close()


def open_live_pool(pool: Pool, cache: CallCache | None = None) -> LivePool:
    """Open every enabled worker. Raises InvalidPool when one is configured wrongly."""
    workers: dict[str, LiveWorker] = {}
    for spec in pool.enabled:
        try:
            workers[spec.name] = LiveWorker(spec, open_worker(spec))
        except InvalidPool as error:
            raise InvalidPool([(f"{spec.name}.{where}", what) for where, what in error.problems]) from error
    return LivePool(pool, workers, cache)


@asynccontextmanager
async def live_pool(pool: Pool, cache: CallCache | None = None) -> AsyncIterator[LivePool]:
    """Open a pool for the body of a `with` and close it after."""
    opened = open_live_pool(pool, cache)
    try:
        yield opened
    finally:
        await opened.close()
