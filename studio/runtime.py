"""The running studio behind the pages: its store, its open pools, the episodes in flight.

Everything asynchronous happens on one event loop in one thread of its own, so that an episode outlives
the browser event that started it. Pages and routes call these methods from any thread.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from orchestrator.approval.records import Verdict
from orchestrator.engine.budget import Budget
from orchestrator.engine.edits import AnyEdit
from orchestrator.engine.episode import Episode
from orchestrator.engine.events import FollowUp
from orchestrator.errors import InvalidEdits, OrchestratorError
from orchestrator.policies.model import warm_up
from orchestrator.traces.store import Store
from orchestrator.what_if import Variation, vary
from pool_registry.actions import Action, JsonValue, Observation, Status
from pool_registry.calls.call_cache import CallCache
from pool_registry.calls.call_cache_table import DatabaseCacheStore
from pool_registry.calls.circuit_breaker import circuit_of
from pool_registry.calls.live_pool import LivePool, LiveWorker, open_live_pool
from pool_registry.calls.run_limits import NO_RUN_LIMITS, RunLimits
from pool_registry.deployment_mode import ModeName
from pool_registry.errors import PoolError, StorageError, WorkerFault
from pool_registry.kinds import open_worker
from pool_registry.pool import Pool
from pool_registry.secrets import redact
from pool_registry.worker import Visible, WorkerSpec
from studio.access.accounts import Accounts, current_user
from studio.access.roles import Rights
from studio.approvals import claim_plan, make_decision, read_waiting
from studio.episodes import RecordedRun, load_recorded, prepare_resumed, prepare_run, prepare_variation
from studio.forks import fork_for
from studio.worker_health import RECENT, Probe, WorkerHealth, assess_worker
from trainer.demonstrations.second_try import SecondTry, make_second_try, open_budget, take_verdict
from trainer.errors import MENDABLE
from trainer.jobs.queue import JobStore
from trainer.tasks.practice.make_tasks import PracticeOptions
from trainer.tasks.practice.progress import Watch
from trainer.tasks.practice.stored import make_and_save

T = TypeVar("T")
log = logging.getLogger(__name__)
UNNAMED = "the person at this studio"  # who decides where nobody logs in


class Runtime:
    """The studio's store, open pools and running episodes. `close()` ends it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.jobs = JobStore(store.engine, store.home)
        self.probes: dict[str, Probe] = {}  # by worker spec as JSON
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="episodes", daemon=True)
        self._thread.start()
        self._pools: dict[str, LivePool] = {}
        self._call_cache = CallCache(DatabaseCacheStore(store.engine))
        self._budgets: dict[str, Budget] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._trying = asyncio.Semaphore()  # second tries are made one after the other
        self._warm: set[str] = set()
        self._loading: set[str] = set()
        self._watches: dict[str, Watch] = {}  # of practice tasks that are being made, by pool

    def close(self) -> None:
        """Stop running episodes, close the pools and write every event."""
        self._await(self._shut_down(), timeout=10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        self.store.close()

    # Episodes

    def start_episode(
        self,
        pool_name: str,
        orchestrator: str,
        query: str,
        user: str = "",
        mode: ModeName | None = None,
        run_limits: RunLimits = NO_RUN_LIMITS,
        follow_up: FollowUp | None = None,
    ) -> str:
        """Start an episode and return its id as soon as its trace has begun. `user` is by default the user of
        the current request, `mode` the pool's; `run_limits` are what the run is limited to, `follow_up` what it goes
        on with.

        Raises PoolError or OrchestratorError when it cannot start or cannot be recorded.
        """
        pool = self.open_pool(self.store.pools.latest(pool_name).pool)
        settings = pool.pool.mode.model_copy(update={"name": mode}) if mode else None
        user = user or current_user.get()
        return self._start(
            lambda: prepare_run(
                self.store,
                pool,
                orchestrator,
                query,
                user=user,
                mode=settings,
                run_limits=run_limits,
                follow_up=follow_up,
            )
        )

    def find_rights(self, user: str) -> Rights:
        """What a person who is logged in may do; "" where nobody logs in. Raises AccountError."""
        return Accounts(self.store.engine).find_rights(user) if user else Rights()

    def check_plan_edits(self, episode_id: str, edits: Sequence[AnyEdit]) -> Variation:
        """Compute what editing the plan of an episode that waits would change. Runs nothing.

        Raises what `read_waiting` raises, and InvalidEdits.
        """
        plan = read_waiting(self.store, episode_id)
        return vary(plan.episode, plan.held.round, edits, self.open_pool(plan.pool))

    def decide(
        self,
        episode_id: str,
        verdict: Verdict,
        note: str = "",
        edits: Sequence[AnyEdit] = (),
        round_seen: int | None = None,
    ) -> str:
        """Decide about the plan of an episode that waits, of the round that was seen where it is named, in the name of
        the current request's user; the episode goes on at once. Returns its id.

        Raises what `read_waiting` raises, InvalidEdits, UnknownOrchestrator, and NotWaiting when somebody was faster.
        """
        plan = read_waiting(self.store, episode_id, round_seen)
        pool = self.open_pool(plan.pool)
        decision = make_decision(plan, pool, verdict, current_user.get() or UNNAMED, note, edits)

        def claim() -> RecordedRun:
            run = prepare_resumed(self.store, pool, plan.episode, decision)
            claim_plan(self.store, plan)
            return run

        return self._start(claim)

    def open_recorded(self, episode_id: str) -> tuple[Episode, LivePool]:
        """Load a recorded episode that has ended, and open the version of the pool that it ran on.

        Raises EpisodeNotFound, DamagedTrace, PoolNotFound, or InvalidEdits while the episode still runs.
        """
        episode, pool = load_recorded(self.store, episode_id)
        return episode, self.open_pool(pool)

    def open_pool(self, pool: Pool) -> LivePool:
        """The open version of a pool. Raises InvalidPool."""
        return self._await(self._open(pool))

    def vary(self, episode_id: str, number: int, edits: Sequence[AnyEdit]) -> Variation:
        """Compute what editing round `number` of a recorded episode would keep and call again. Runs nothing.

        Raises what `open_recorded` raises, and InvalidEdits with the problems at their steps.
        """
        episode, pool = self.open_recorded(episode_id)
        return vary(episode, number, edits, pool)

    def start_variation(
        self, episode_id: str, number: int, edits: Sequence[AnyEdit], *, on_copies: bool = False
    ) -> str:
        """Start a recorded episode with one round edited (orchestrator/what_if.py) and return the new one's id;
        `on_copies` of what its steps may change (studio/forks.py).

        Raises what `vary` raises, and InvalidEdits when nothing is edited.
        """
        if not edits:
            raise InvalidEdits([("", "nothing is changed yet: edit, add or remove a step, or change the answer")])
        episode, pool = self.open_recorded(episode_id)
        variation, user = vary(episode, number, edits, pool), current_user.get()
        fork = fork_for(variation, pool) if on_copies else None
        return self._start(lambda: prepare_variation(self.store, pool, variation, user=user, fork=fork))

    def _start(self, prepare: Callable[[], RecordedRun]) -> str:
        """Start a run and return its episode's id once its trace is on disk; one whose trace cannot be written is
        stopped."""
        episode_id = self._await(self._launch(prepare))
        try:
            self.store.traces.flush()
        except StorageError:
            self.stop_episode(episode_id)
            raise
        return episode_id

    def stop_episode(self, episode_id: str) -> bool:
        """Stop an episode; False when this process does not run it."""
        budget = self._budgets.get(episode_id)
        if budget is None:
            return False
        self._loop.call_soon_threadsafe(budget.stop)
        return True

    def warm_up(self, checkpoint: str) -> None:
        """Load a checkpoint in the background. Errors are reported when an episode uses it."""
        if checkpoint not in self._warm:
            self._warm.add(checkpoint)
            asyncio.run_coroutine_threadsafe(self._warm_up(checkpoint), self._loop)

    def is_loading(self, checkpoint: str) -> bool:
        """Whether `warm_up` is loading a checkpoint at present."""
        return checkpoint in self._loading

    async def _warm_up(self, checkpoint: str) -> None:
        self._loading.add(checkpoint)
        try:
            with suppress(OrchestratorError, WorkerFault):
                await warm_up(checkpoint)
        finally:
            self._loading.discard(checkpoint)

    async def _launch(self, prepare: Callable[[], RecordedRun]) -> str:
        """Prepare a run on this loop, whose clock its budget goes by, and start it as a task of its own."""
        run = prepare()
        self._budgets[run.id] = run.budget
        task = asyncio.create_task(self._finish(run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.sleep(0)  # lets the task record the episode's first event
        return run.id

    async def _finish(self, run: RecordedRun) -> None:
        try:
            episode = await run.run()
        finally:
            del self._budgets[run.id]
        await run.learn(episode)

    # Verdicts

    def take_verdict(self, episode_id: str) -> None:
        """Draw the consequences of a verdict that has just been recorded: a second try of the run begins in the
        background, or the lesson of one is kept or forgotten. Raises EpisodeNotFound and InvalidPool."""
        second = take_verdict(self.store, episode_id)
        if second is not None:
            self._await(self._launch_second_try(second))

    async def _launch_second_try(self, second: SecondTry) -> None:
        task = asyncio.create_task(self._try_again(second))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(_log_failure)

    async def _try_again(self, second: SecondTry) -> None:
        self._budgets[second.id] = budget = open_budget(second)
        try:
            async with self._trying:
                await make_second_try(second, self._use(second.pool), budget, self.store)
        finally:
            del self._budgets[second.id]

    # Practice tasks

    def start_making(self, pool: str, options: PracticeOptions, watch: Watch) -> None:
        """Start making a pool's practice tasks, which goes on when whoever asked has left; `find_making` follows it.

        Raises UnusableTasks while they are being made, PoolNotFound, or UnwritablePath.
        """
        self._await(self._launch_making(pool, options, watch))

    def stop_making(self, pool: str) -> bool:
        """Stop it, with what is kept so far; False when this process does not make tasks for the pool."""
        watch = self._watches.get(pool)
        if watch is not None:
            watch.stop()
        return watch is not None

    async def _launch_making(self, pool: str, options: PracticeOptions, watch: Watch) -> None:
        task = asyncio.create_task(self._make(pool, options, watch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(_log_failure)
        await asyncio.sleep(0)  # lets it take the lock and write its record, or fail at that
        if task.done():
            task.result()

    async def _make(self, pool: str, options: PracticeOptions, watch: Watch) -> None:
        self._watches.setdefault(pool, watch)
        try:
            await make_and_save(self.store, pool, options, watch=watch)
        finally:
            if self._watches.get(pool) is watch:
                del self._watches[pool]

    # Workers

    def try_worker(self, spec: WorkerSpec, arguments: Mapping[str, JsonValue], seen: str = "") -> Observation:
        """Call a worker as configured, saved or not. `seen` is passed as the output of an earlier step.

        Raises InvalidPool when the worker cannot be opened.
        """
        visible = (Visible(1, "you", Observation(Status.OK, seen)),) if seen else ()
        return self._await(self._try(spec, arguments, visible))

    def check_workers(self, specs: Sequence[WorkerSpec]) -> list[Probe]:
        """Probe workers concurrently and keep the results for their cards."""
        return self._await(self._check_all(specs))

    def worker_health(self, spec: WorkerSpec, pool: str = "") -> WorkerHealth:
        """A worker's health from its last probe, its circuit breaker and its recent calls, on any pool or on `pool`."""
        calls = self.store.traces.recent_calls(spec.name, pool, RECENT)
        return assess_worker(spec, self.probes.get(spec.model_dump_json()), calls, circuit_of(spec))

    def list_health(self, pool: Pool) -> dict[str, WorkerHealth]:
        """The health of every worker of a pool, by name. Only those that were ever called have calls to look up."""
        called = self.store.traces.list_called_workers()
        return {
            spec.name: self.worker_health(spec, pool.name)
            if spec.name in called
            else assess_worker(spec, self.probes.get(spec.model_dump_json()), [], circuit_of(spec))
            for spec in pool.workers
        }

    async def _try(
        self, spec: WorkerSpec, arguments: Mapping[str, JsonValue], visible: tuple[Visible, ...]
    ) -> Observation:
        pool = LivePool(Pool(name="try", workers=(spec,)), {spec.name: LiveWorker(spec, open_worker(spec))})
        try:
            return await pool.call(Action(spec.name, arguments), visible)
        finally:
            await pool.close()

    async def _check_all(self, specs: Sequence[WorkerSpec]) -> list[Probe]:
        probes = await asyncio.gather(*map(self._check, specs))
        self.probes |= {spec.model_dump_json(): probe for spec, probe in zip(specs, probes, strict=True)}
        return probes

    async def _check(self, spec: WorkerSpec) -> Probe:
        try:
            worker = open_worker(spec)
            try:
                async with asyncio.timeout(20):
                    return Probe(True, redact(await worker.check()))
            finally:
                await worker.close()
        except (WorkerFault, PoolError) as fault:
            return Probe(False, redact(str(fault)))
        except TimeoutError:
            return Probe(False, "no answer within 20 s")

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a short coroutine on the episodes' event loop and wait for its result, from any thread."""
        return self._await(coroutine)

    # The loop

    async def _open(self, pool: Pool) -> LivePool:
        """Open the pool, or return it if it is open. Pools of earlier versions stay open until `close`."""
        if pool.hash not in self._pools:
            self._pools[pool.hash] = open_live_pool(pool, self._call_cache)
        return self._pools[pool.hash]

    @asynccontextmanager
    async def _use(self, pool: Pool) -> AsyncIterator[LivePool]:
        yield await self._open(pool)

    async def _shut_down(self) -> None:
        for budget in list(self._budgets.values()):
            budget.stop()
        for watch in list(self._watches.values()):
            watch.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        for pool in self._pools.values():
            await pool.close()

    def _await(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        future: Future[T] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        return future.result(timeout)


def _log_failure(task: asyncio.Task[None]) -> None:
    """Log what nobody foresaw; what a person can mend stands in the record."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, MENDABLE):
        log.error("work in the background failed", exc_info=error)
