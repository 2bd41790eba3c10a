"""An open pool: calls that never raise.

`LivePool.call` turns an action into an observation. What happens on the way is listed in layers.py. A run
that its caller limits has a view of the pool (`LivePool.limit`), which holds back what run_limits.py says.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property

from pool_registry.actions import Action, JsonValue, Observation, Status
from pool_registry.calls.call_cache import CallCache
from pool_registry.calls.layers import Answer, Peers, stack_answer_layers
from pool_registry.calls.live_worker import LiveWorker, OnStart
from pool_registry.calls.run_limits import NO_RUN_LIMITS, RunLimits, Source, check_run_limits
from pool_registry.errors import InvalidPool
from pool_registry.kinds import open_worker
from pool_registry.pool import Pool
from pool_registry.schemas.coerce_arguments import Coerced
from pool_registry.worker import Call, Scope, Visible, WorkerSpec

MAX_NAMES = 24  # in the sentence about an unknown worker: a model reads it

__all__ = ["LivePool", "LiveWorker", "OnStart", "live_pool", "open_live_pool"]


class LivePool:
    """A pool whose enabled workers can be called. Bound to the event loop that opened it.

    `judges` are the workers that only grade answers: no plan, policy or model sees them.
    """

    def __init__(self, pool: Pool, workers: Mapping[str, LiveWorker], cache: CallCache | None = None) -> None:
        self.pool = pool
        self.workers = workers
        self.judges: Mapping[str, LiveWorker] = {}
        self.cache = CallCache() if cache is None else cache
        self.run_limits = NO_RUN_LIMITS
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
        if not self.run_limits.seen_by:
            return await self.call_reader(action, visible, scope, on_start)
        sources = list_sources(visible)
        hidden = self.run_limits.explain_hidden(action.worker, sources)
        if hidden is not None:
            return Observation.failure(Status.PARSE_ERR, "hidden_output", hidden)
        readers = self.run_limits.find_readers(sources)
        pool = self if readers is None else self.narrow(readers)  # only they may shorten what it sees, or take over
        return await pool.call_reader(action, visible, scope, on_start)

    async def call_reader(
        self, action: Action, visible: tuple[Visible, ...], scope: Scope | None, on_start: OnStart | None
    ) -> Observation:
        """Run one action of a worker that may see all that it is given."""
        worker = self.workers.get(action.worker)
        if worker is None:
            return Observation.failure(Status.PARSE_ERR, "unknown_worker", self.unknown_worker(action.worker))
        problem = worker.argument_problem(action.arguments)
        if problem is None:
            return await self._answer(worker, Call(action.arguments, visible, scope), on_start)
        coerced = self.coerce(worker, action.arguments)
        if coerced is None:
            return Observation.failure(Status.PARSE_ERR, "bad_arguments", problem)
        observation = await self._answer(worker, Call(coerced.arguments, visible, scope), on_start)
        return replace(observation, notes=coerced.notes)

    def coerce(self, worker: LiveWorker, arguments: Mapping[str, JsonValue]) -> Coerced | None:
        """Arguments that the worker refuses, as it accepts them; None where it or the pool does not."""
        return None if self.pool.limits.exact_arguments else worker.coerce(arguments)

    async def _answer(self, worker: LiveWorker, call: Call, on_start: OnStart | None) -> Observation:
        answer = self._answers.get(worker.spec.name)
        if answer is None:
            peers = Peers(self.workers, self.cache, self.run_limits)
            answer = self._answers[worker.spec.name] = stack_answer_layers(worker, peers)
        return await answer(call, on_start)

    def unknown_worker(self, name: str) -> str:
        """Build the sentence that tells a model which workers there are."""
        if name in self.run_limits.without_workers:
            return f"this run may not call {name}; use one of: {', '.join([*self.workers][:MAX_NAMES])}"
        if name in self.judges:
            return f"{name} only judges answers; use one of: {', '.join([*self.workers][:MAX_NAMES])}"
        names, which = list(self.workers), "use one of"
        if len(names) > MAX_NAMES:
            names, which = get_close_matches(name[:80], names, MAX_NAMES, cutoff=0), "the nearest names are"
        return f"there is no worker {name[:80]!r}; {which}: {', '.join(names)}"

    def narrow(self, names: Collection[str], run_limits: RunLimits | None = None) -> LivePool:
        """This pool with these workers alone, and perhaps with other limits. Names that it lacks are left out."""
        kept = {name: worker for name, worker in self.workers.items() if name in names}
        pool = LivePool(self.pool, kept, self.cache)
        pool.stand_for(self, run_limits)
        pool.judges = {name: judge for name, judge in self.judges.items() if name in names}
        return pool

    def forget_calls(self) -> LivePool:
        """This pool with a cache of calls of its own, in memory alone: nothing of its calls is stored."""
        pool = LivePool(self.pool, self.workers)
        pool.stand_for(self)
        return pool

    def stand_for(self, pool: LivePool, run_limits: RunLimits | None = None) -> None:
        """Take over what another pool, of which this one is a view, is recorded as, its judges, and its limits where it
        has none of its own."""
        self.hash = pool.hash
        self.judges = pool.judges
        self.run_limits = pool.run_limits if run_limits is None else run_limits

    def check_limits(self, limits: RunLimits) -> None:
        """Raise InvalidRunLimits where a run on this pool cannot keep these limits."""
        names = {*self.workers, *(spec.name for spec in self.pool.workers)}
        check_run_limits(limits, self.pool.name, names, self.workers)

    def limit(self, limits: RunLimits) -> LivePool:
        """This pool as one run may use it; itself where nothing is limited, or just so already."""
        if not limits or limits == self.run_limits:
            return self
        pool = self.narrow({*self.workers, *self.judges}.difference(limits.without_workers), limits)
        pool.pool = _limit_content(self.pool, limits)
        return pool

    def limit_inner(self, runners: Iterable[str], visible: Sequence[Visible]) -> LivePool:
        """This pool for an episode that one of `runners` runs for a call that sees `visible`: with the readers of that
        alone, and without workers whose outputs a runner may not see."""
        limits, required = self.run_limits, set(runners)
        if not limits.seen_by:
            return self
        readers = limits.find_readers(list_sources(visible))
        kept = [
            name
            for name in self.workers
            if (readers is None or name in readers) and required <= {*limits.seen_by.get(name, required), name}
        ]
        return self.narrow(kept, limits.without_steps())

    def list_answerers(self, name: str) -> Iterator[str]:
        """A worker and those that would take over for it."""
        seen: set[str] = set()
        while name in self.workers and name not in seen:
            seen.add(name)
            yield name
            name = self.workers[name].spec.fallback

    def list_called(self, name: str) -> list[str]:
        """A worker of this pool and those that it calls itself, as a skill does, and they again; those of them that are
        there."""
        names, called = [name], dict[str, None]()
        for worker in names:  # grows as it goes
            if worker in self.workers and worker not in called:
                called[worker] = None
                names += self.workers[worker].worker.called_workers
        return list(called)

    def find_judge(self, name: str) -> LiveWorker | None:
        """The worker that is to grade an answer, one that only judges or any other; None where it is not there."""
        return self.judges.get(name) or self.workers.get(name)

    async def close(self) -> None:
        for worker in (*self.workers.values(), *self.judges.values()):
            await worker.close()


def list_sources(visible: Sequence[Visible]) -> list[Source]:
    """Whose outputs a call sees: those of each step's worker, and of the one that answered in its place."""
    sources = [(view.step, view.worker) for view in visible]
    return sources + [(view.step, name) for view in visible if (name := view.observation.answered_by) is not None]


def _limit_content(pool: Pool, limits: RunLimits) -> Pool:
    """A pool's content without the workers that a run may not call, and with its cap on cost."""
    workers = tuple(spec for spec in pool.workers if spec.name not in limits.without_workers)
    caps = [cap for cap in (pool.limits.max_cost, limits.max_cost) if cap is not None]
    capped = pool.limits.model_copy(update={"max_cost": min(caps, default=None)})
    return pool.model_copy(update={"workers": workers, "limits": capped})


def open_live_pool(pool: Pool, cache: CallCache | None = None) -> LivePool:
    """Open every enabled worker. Raises InvalidPool when one is configured wrongly."""
    live = LivePool(pool, {spec.name: _open_worker(spec) for spec in pool.enabled}, cache)
    live.judges = {spec.name: _open_worker(spec) for spec in pool.switched_on if spec.judge_only}
    return live


def _open_worker(spec: WorkerSpec) -> LiveWorker:
    try:
        return LiveWorker(spec, open_worker(spec))
    except InvalidPool as error:
        raise InvalidPool([(f"{spec.name}.{where}", what) for where, what in error.problems]) from error


@asynccontextmanager
async def live_pool(pool: Pool, cache: CallCache | None = None) -> AsyncIterator[LivePool]:
    """Open a pool for the body of a `with` and close it after."""
    opened = open_live_pool(pool, cache)
    try:
        yield opened
    finally:
        await opened.close()
