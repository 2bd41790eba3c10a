"""The running studio behind the pages: its store, its open pools, the episodes in flight.

Everything asynchronous happens on one event loop in one thread of its own, so that an episode outlives
the browser event that started it. Pages and routes call these methods from any thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from orchestrator.engine.budget import Budget
from orchestrator.engine.edits import AnyEdit
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, check_query, new_episode_id, run_episode
from orchestrator.errors import InvalidEdits, OrchestratorError
from orchestrator.failure_memory.lessons import memory_of
from orchestrator.failure_memory.write_lesson import remember
from orchestrator.policies.model import remembering, warm_up
from orchestrator.policies.registry import make_orchestrator
from orchestrator.traces.store import Store
from orchestrator.what_if import Variation, run_variation, vary
from pool_registry.actions import Action, JsonValue, Observation, Status
from pool_registry.calls.call_cache import Recall
from pool_registry.calls.call_cache_table import DatabaseShelf
from pool_registry.calls.circuit_breaker import circuit_of
from pool_registry.calls.live_pool import LivePool, LiveWorker, open_live_pool
from pool_registry.errors import PoolError, StorageError, WorkerFault
from pool_registry.kinds import open_worker
from pool_registry.pool import Pool
from pool_registry.secrets import redact
from pool_registry.worker import Visible, WorkerSpec
from studio.access.accounts import current_user
from studio.headless import recorded_run
from studio.worker_health import RECENT, Health, WorkerHealth, judge
from trainer.evaluation.trials import grade, resolve
from trainer.tasks import recognize
from trainer.tasks.task import Task

T = TypeVar("T")


class Runtime:
    """Start with `Runtime(store)`, end with `close()`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.health: dict[str, Health] = {}  # by worker spec as JSON
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="episodes", daemon=True)
        self._thread.start()
        self._pools: dict[str, LivePool] = {}
        self._recall = Recall(DatabaseShelf(store.engine))
        self._budgets: dict[str, Budget] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._warm: set[str] = set()

    def close(self) -> None:
        """Stop what runs, give back what is open, write out every event."""
        self._await(self._shut_down(), timeout=10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        self.store.close()

    # Episodes

    def start_episode(self, pool_name: str, orchestrator: str, query: str, user: str = "") -> str:
        """Start an episode for `user`, or who the request at hand comes from, and return its id as soon as its trace
        has begun.

        Raises PoolError or OrchestratorError when it cannot start or be recorded.
        """
        check_query(query)
        return self._begun(self._await(self._start(pool_name, orchestrator, query, user or current_user.get())))

    def recorded(self, episode_id: str) -> tuple[Episode, LivePool]:
        """A recorded episode that has ended, and the version of the pool that it ran on, open.

        Raises EpisodeNotFound, DamagedTrace, PoolNotFound, or InvalidEdits while it is under way.
        """
        episode, pool = recorded_run(self.store, episode_id)
        return episode, self._await(self._live(pool))

    def varied(self, episode_id: str, number: int, edits: Sequence[AnyEdit]) -> Variation:
        """What editing round `number` of a recorded episode would keep and call anew. Runs nothing.

        Raises what `recorded` raises, and InvalidEdits with the problems at their steps.
        """
        episode, pool = self.recorded(episode_id)
        return vary(episode, number, edits, pool)

    def start_variation(self, episode_id: str, number: int, edits: Sequence[AnyEdit]) -> str:
        """Start a recorded episode with one round edited (orchestrator/what_if.py) and return the new one's id.

        Raises what `varied` raises, and InvalidEdits when nothing is edited.
        """
        if not edits:
            raise InvalidEdits([("", "nothing is changed yet: edit, add or remove a step, or change the answer")])
        episode, pool = self.recorded(episode_id)
        return self._begun(self._await(self._start_variation(vary(episode, number, edits, pool), pool)))

    def _begun(self, episode_id: str) -> str:
        """The id of an episode that was started, once its trace is on disk; where that cannot be, it is stopped."""
        try:
            self.store.traces.flush()
        except StorageError:
            self.stop_episode(episode_id)
            raise
        return episode_id

    def stop_episode(self, episode_id: str) -> bool:
        """Press the stop button; False when this process does not run that episode."""
        budget = self._budgets.get(episode_id)
        if budget is None:
            return False
        self._loop.call_soon_threadsafe(budget.stop)
        return True

    def warm_up(self, checkpoint: str) -> None:
        """Load a checkpoint while nobody waits for it yet; what goes wrong is told when it is used."""
        if checkpoint not in self._warm:
            self._warm.add(checkpoint)
            asyncio.run_coroutine_threadsafe(self._warm_up(checkpoint), self._loop)

    async def _warm_up(self, checkpoint: str) -> None:
        with suppress(OrchestratorError, WorkerFault):
            await warm_up(checkpoint)

    async def _start(self, pool_name: str, name: str, query: str, user: str) -> str:
        pool = await self._live(self.store.pools.latest(pool_name).pool)
        task = recognize(query)
        orchestrator = make_orchestrator(name, pool, task.oracle_turn if task else None)
        orchestrator = remembering(orchestrator, memory_of(pool.pool, self.store.reflections))
        spec = EpisodeSpec(query, task=task.ref if task else None, id=new_episode_id(), user=user)
        sink = self.store.traces
        return await self._launch(
            spec.id,
            pool,
            task,
            lambda budget: run_episode(spec, orchestrator, pool, sink=sink, budget=budget, resolve=resolve),
        )

    async def _start_variation(self, wanted: Variation, pool: LivePool) -> str:
        task, new_id, sink = recognize(wanted.origin.query), new_episode_id(), self.store.traces
        ref, user = task.ref if task else None, current_user.get()  # the caller's context came along
        return await self._launch(
            new_id,
            pool,
            task,
            lambda budget: run_variation(
                wanted, pool, episode_id=new_id, task=ref, sink=sink, budget=budget, resolve=resolve, user=user
            ),
        )

    async def _launch(
        self, episode_id: str, pool: LivePool, task: Task | None, run: Callable[[Budget], Awaitable[Episode]]
    ) -> str:
        """Set an episode going beside this call."""
        budget = self._budgets[episode_id] = Budget(pool.pool.limits)
        running = asyncio.create_task(self._finish(episode_id, pool, task, run(budget)))
        self._tasks.add(running)
        running.add_done_callback(self._tasks.discard)
        await asyncio.sleep(0)  # its first event is on its way
        return episode_id

    async def _finish(self, episode_id: str, pool: LivePool, task: Task | None, running: Awaitable[Episode]) -> None:
        """Run an episode to its end, grade it where its query has a known answer, and learn from it if it failed."""
        try:
            episode = await running
            if task is not None:
                await grade(episode, task, self.store.traces, pool)
        finally:
            del self._budgets[episode_id]
        await remember(episode, pool, self.store.reflections)

    # Workers

    def try_worker(self, spec: WorkerSpec, arguments: Mapping[str, JsonValue], seen: str = "") -> Observation:
        """One call to a worker as configured, saved or not; it may see `seen` as an earlier step's output.

        Raises InvalidPool when it cannot be opened.
        """
        visible = (Visible(1, "you", Observation(Status.OK, seen)),) if seen else ()
        return self._await(self._try(spec, arguments, visible))

    def check_workers(self, specs: Sequence[WorkerSpec]) -> list[Health]:
        """Probe workers, all at once, and remember the results for their cards."""
        return self._await(self._check_all(specs))

    def worker_health(self, spec: WorkerSpec, pool: str = "") -> WorkerHealth:
        """A worker's light from its last probe, its recent calls (with `pool`: on that pool) and its breaker."""
        calls = self.store.traces.recent_calls(spec.name, pool, RECENT)
        return judge(spec, self.health.get(spec.model_dump_json()), calls, circuit_of(spec))

    async def _try(
        self, spec: WorkerSpec, arguments: Mapping[str, JsonValue], visible: tuple[Visible, ...]
    ) -> Observation:
        alone = LivePool(Pool(name="try", workers=(spec,)), {spec.name: LiveWorker(spec, open_worker(spec))})
        try:
            return await alone.call(Action(spec.name, arguments), visible)
        finally:
            await alone.close()

    async def _check_all(self, specs: Sequence[WorkerSpec]) -> list[Health]:
        found = await asyncio.gather(*map(self._check, specs))
        self.health |= {spec.model_dump_json(): health for spec, health in zip(specs, found, strict=True)}
        return found

    async def _check(self, spec: WorkerSpec) -> Health:
        try:
            worker = open_worker(spec)
            try:
                async with asyncio.timeout(20):
                    return Health(True, redact(await worker.check()))
            finally:
                await worker.close()
        except (WorkerFault, PoolError) as fault:
            return Health(False, redact(str(fault)))
        except TimeoutError:
            return Health(False, "no answer within 20 s")

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run something short beside the episodes and wait for it, from any thread."""
        return self._await(coroutine)

    # The loop

    async def _live(self, pool: Pool) -> LivePool:
        """The open pool for this content; versions that are no longer current stay open until closed."""
        if pool.hash not in self._pools:
            self._pools[pool.hash] = open_live_pool(pool, self._recall)
        return self._pools[pool.hash]

    async def _shut_down(self) -> None:
        for budget in list(self._budgets.values()):
            budget.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        for pool in self._pools.values():
            await pool.close()

    def _await(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        future: Future[T] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        return future.result(timeout)
