"""One pool and one orchestrator, ready to answer: what the HTTP APIs and the MCP server share.

An episode belongs to the request that started it: when the request is over, however it ended, the episode is
stopped, and with it every call that its workers have in flight.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field

from orchestrator.checkpoints import checkpoint_names
from orchestrator.engine.budget import Budget
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, Orchestrator, check_query, new_episode_id, run_episode
from orchestrator.engine.events import EpisodeEnded, Event
from orchestrator.errors import InvalidQuery, OrchestratorError
from orchestrator.failure_memory.lessons import memory_of
from orchestrator.policies.model import remembering, warm_up
from orchestrator.policies.registry import make_orchestrator
from orchestrator.traces.store import Store
from pool_registry.calls.call_cache import Recall
from pool_registry.calls.call_cache_table import DatabaseShelf
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.errors import WorkerFault
from studio.model_server.errors import ApiError
from studio.model_server.request import RequestLimits, tightened
from trainer.evaluation.trials import resolve

CLOSE_S = 5.0


@dataclass(frozen=True, slots=True)
class Offer:
    """What is served: a pool and an orchestrator under one name, with the server's own limits."""

    pool: str
    orchestrator: str
    model: str = ""
    limits: RequestLimits = field(default_factory=RequestLimits)
    at_once: int = 128

    @property
    def name(self) -> str:
        """The model's name for clients."""
        return self.model or f"podium-{self.pool}"


class Running:
    """One episode on its way. Iterate over `events`; `stop` ends it, and does nothing when it has ended."""

    def __init__(self, episode: str, budget: Budget) -> None:
        self.id = episode
        self._budget = budget
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self.task: asyncio.Task[Episode] | None = None

    def take(self, event: Event | None) -> None:
        self._events.put_nowait(event)

    def stop(self) -> None:
        self._budget.stop()

    async def events(self, silence_s: float) -> AsyncIterator[Event | None]:
        """Its events until it has ended, and None whenever nothing happened for so many seconds."""
        while True:
            try:
                event = await asyncio.wait_for(self._events.get(), silence_s)
            except TimeoutError:
                yield None
                continue
            if event is None:
                return
            yield event

    async def result(self) -> tuple[Episode, EpisodeEnded]:
        """The finished episode and how it ended."""
        assert self.task is not None, "the service starts the task before it hands this out"
        episode = await asyncio.shield(self.task)
        assert episode.ended is not None, "run_episode always ends an episode"
        return episode, episode.ended


class _Watched:
    """A sink that writes every trace and tells one episode's events to who waits for it."""

    def __init__(self, store: Store, running: Running) -> None:
        self._store, self._running = store, running

    def append(self, episode_id: str, event: Event) -> None:
        self._store.traces.append(episode_id, event)
        if episode_id == self._running.id:
            self._running.take(event)


class Service:
    """Make and close it on the event loop that serves.

    Raises PoolNotFound, InvalidPool or UnknownOrchestrator when the offer cannot be served.
    """

    def __init__(self, store: Store, offer: Offer) -> None:
        self.store, self.offer = store, offer
        stored = store.pools.latest(offer.pool)
        self.version = stored.version
        self._pool: LivePool = open_live_pool(stored.pool, Recall(DatabaseShelf(store.engine)))
        self._tasks: set[asyncio.Task[Episode]] = set()
        self._running: set[Running] = set()
        self.started = 0
        self._orchestrator()  # says now what it lacks
        self._warming = asyncio.create_task(self._warm_up())

    @property
    def running(self) -> int:
        """How many episodes are on their way."""
        return len(self._running)

    @property
    def pool_hash(self) -> str:
        return self._pool.hash

    def begin(self, query: str, limits: RequestLimits, user: str) -> Running:
        """Start an episode. Raises ApiError when too many run or the query cannot be one."""
        if len(self._running) >= self.offer.at_once:
            message = f"{self.offer.at_once} requests are being answered; try again in a moment"
            raise ApiError(429, message, "rate_limit_exceeded", headers={"retry-after": "1"})
        try:
            check_query(query)
            orchestrator = self._orchestrator()
        except InvalidQuery as error:
            raise ApiError(400, str(error), "invalid_value") from error
        except OrchestratorError as error:  # a checkpoint that was deleted meanwhile
            raise ApiError(503, str(error), "orchestrator_failed") from error
        allowed = tightened(self._pool.pool.limits, self.offer.limits, limits)
        budget = Budget(allowed)
        running = Running(new_episode_id(), budget)
        spec = EpisodeSpec(query, id=running.id, user=user)
        sink = _Watched(self.store, running)
        running.task = asyncio.create_task(
            run_episode(spec, orchestrator, self._pool, limits=allowed, sink=sink, budget=budget, resolve=resolve)
        )
        self._running.add(running)
        self._tasks.add(running.task)
        self.started += 1
        running.task.add_done_callback(lambda task: self._ended(running, task))
        return running

    async def close(self) -> None:
        """Stop what runs, wait for it, close the workers."""
        self._warming.cancel()
        for running in list(self._running):
            running.stop()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=CLOSE_S)
        await self._pool.close()

    def _ended(self, running: Running, task: asyncio.Task[Episode]) -> None:
        self._running.discard(running)
        self._tasks.discard(task)
        running.take(None)

    def _orchestrator(self) -> Orchestrator:
        """It reads the pool's failure memory but never adds to it: strangers' queries teach it nothing."""
        orchestrator = make_orchestrator(self.offer.orchestrator, self._pool)
        return remembering(orchestrator, memory_of(self._pool.pool, self.store.reflections))

    async def _warm_up(self) -> None:
        """Load a checkpoint before the first request; what goes wrong is told to that request."""
        if self.offer.orchestrator in checkpoint_names():
            with suppress(OrchestratorError, WorkerFault):
                await warm_up(self.offer.orchestrator)
