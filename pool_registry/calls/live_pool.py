"""An open pool: calls that never raise.

`LivePool.call` turns an action into an observation. live_worker.py handles a single worker; this file handles
stands what concerns more than one: who is called, who takes over, and whose observations are recorded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property

from pool_registry.actions import NO_USAGE, Action, Failure, JsonValue, Observation, Status
from pool_registry.calls.call_cache import CallCache, key_of
from pool_registry.calls.live_worker import MAX_ERROR_CHARS, LiveWorker, OnStart
from pool_registry.calls.summarize import shorten_outputs
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
        self._recorded = {name for name, worker in workers.items() if worker.spec.cache}

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
        call = Call(action.arguments, visible, scope)
        if action.worker in self._recorded:
            return await self._use_cache(worker, action, call, on_start)
        return await self._call_fitted(worker, call, on_start)

    def _call_fitted(self, worker: LiveWorker, call: Call, on_start: OnStart | None) -> Awaitable[Observation]:
        """Call the worker by way of its summarizer and its fallbacks, where it has them."""
        if worker.spec.summarizer:
            return self._call_shortened(worker, call, on_start)
        return self._call_any(worker, call, on_start)

    async def _call_shortened(self, worker: LiveWorker, call: Call, on_start: OnStart | None) -> Observation:
        """Call the worker with outputs that its summarizer has shortened."""
        start = on_start and _Once(on_start)
        if start is not None:
            start()
        shortened = await shorten_outputs(worker, call, self.workers)
        made = await self._call_any(worker, shortened.call, start)
        return replace(made, latency_s=made.latency_s + shortened.latency_s, usage=made.usage + shortened.usage)

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

    async def _use_cache(self, worker: LiveWorker, action: Action, call: Call, on_start: OnStart | None) -> Observation:
        """Return the cached observation of an equal call, or make this call."""
        key = key_of(worker.identity, action, call.visible)
        observation, recorded = await self.cache.observation(key, lambda: self._call_fitted(worker, call, on_start))
        if not recorded:
            return observation
        if on_start is not None:
            on_start()
        return self._as_recorded(observation)

    def _as_recorded(self, observation: Observation) -> Observation:
        return replace(observation, latency_s=0.0, usage=NO_USAGE, cached=True)

    def _call_any(self, worker: LiveWorker, call: Call, on_start: OnStart | None) -> Awaitable[Observation]:
        """Call the worker, or whoever answers in its place."""
        if worker.spec.fallback:
            return self._call_in_turn(worker, call, on_start)
        return worker.call(call, on_start)

    async def _call_in_turn(self, worker: LiveWorker, call: Call, on_start: OnStart | None) -> Observation:
        """Call the worker and, while one fails, its fallbacks in turn; return the first success or the first failure.

        Time and usage of all of them are added up. When none succeeds, the first one's failure stands.
        """
        start = on_start and _Once(on_start)
        first = latest = await worker.call(call, start)
        latency_s, usage, attempts = first.latency_s, first.usage, ""
        while _needs_fallback(latest) and worker.spec.fallback in self.workers:  # a pool made for training may lack it
            other = self.workers[worker.spec.fallback]
            arguments = _adapt_arguments(call.arguments, worker, other)
            problem = other.argument_problem(arguments)
            if problem is not None:
                attempts += f"; {other.spec.name} cannot take over: {problem}"
                break
            latest = await other.call(replace(call, arguments=arguments), start)
            worker, latency_s, usage = other, latency_s + latest.latency_s, usage + latest.usage
            if latest.error is not None:
                attempts += f"; {other.spec.name} in its place: {latest.error.code}: {latest.error.message}"
        if latest is first and not attempts:
            return first
        if latest.ok:
            name = worker.spec.name
            return replace(latest, latency_s=latency_s, usage=usage, answered_by=name, instead_of=first.error)
        assert first.error is not None, "what failed says why"
        failure = Failure(first.error.code, f"{first.error.message}{attempts}"[:MAX_ERROR_CHARS])
        return replace(first, latency_s=latency_s, usage=usage, error=failure)


class _Once:
    """Calls `on_start` once, whichever worker answers in the end."""

    def __init__(self, on_start: OnStart) -> None:
        self._on_start: OnStart | None = on_start

    def __call__(self) -> None:
        if self._on_start is not None:
            self._on_start()
            self._on_start = None


def _needs_fallback(observation: Observation) -> bool:
    """Whether a fallback might succeed: not when the call itself was malformed."""
    if observation.status is Status.PARSE_ERR:
        return observation.error is not None and observation.error.code == "bad_output"
    return not observation.ok


def _adapt_arguments(
    arguments: Mapping[str, JsonValue], worker: LiveWorker, other: LiveWorker
) -> Mapping[str, JsonValue]:
    """Rename the instruction for another worker: one calls `instruction` what the other calls `query`."""
    mine, theirs = worker.instruction_parameter, other.instruction_parameter
    if mine is None or theirs is None or set(arguments) != {mine}:
        return arguments
    return {theirs: arguments[mine]}


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
