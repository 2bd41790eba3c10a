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
from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EpisodeEnded, Event
from orchestrator.errors import InvalidQuery, OrchestratorError
from orchestrator.policies.model import warm_up
from orchestrator.traces.store import Store
from pool_registry.calls.call_cache import CallCache
from pool_registry.calls.call_cache_table import DatabaseCacheStore
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.errors import WorkerFault
from pool_registry.pool import Pool
from studio.episodes import RecordedRun, make_orchestrator_with_memory, prepare_run
from studio.model_server.errors import ApiError
from studio.model_server.request import RequestLimits, tighten_limits

CLOSE_S = 5.0


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A pool and an orchestrator under one model name, with the server's own limits."""

    pool: str
    orchestrator: str
    model: str = ""
    limits: RequestLimits = field(default_factory=RequestLimits)
    max_concurrency: int = 128

    @property
    def name(self) -> str:
        """The model's name for clients."""
        return self.model or f"podium-{self.pool}"


class ServedEpisode:
    """One episode that answers one request, and the sink of its events. Iterate over `events`; `stop` ends it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._run: RecordedRun | None = None
        self._task: asyncio.Task[Episode] | None = None

    def start(self, run: RecordedRun) -> asyncio.Task[Episode]:
        """Start the run as a task of its own."""
        self._run = run
        self._task = asyncio.create_task(run.run())
        self._task.add_done_callback(lambda _: self._events.put_nowait(None))
        return self._task

    @property
    def id(self) -> str:
        assert self._run is not None, "the service starts a run before it hands this out"
        return self._run.id

    @property
    def pool(self) -> Pool:
        """The pool that it runs on."""
        assert self._run is not None, "the service starts a run before it hands this out"
        return self._run.pool

    def append(self, episode_id: str, event: Event) -> None:
        """Record an event. Those of this episode, not of episodes inside it, also go to `events`."""
        self._store.traces.append(episode_id, event)
        if episode_id == self.id:
            self._events.put_nowait(event)

    def stop(self) -> None:
        """Stop the episode; does nothing when it has ended."""
        if self._run is not None:
            self._run.budget.stop()

    async def events(self, silence_s: float) -> AsyncIterator[Event | None]:
        """Yield events until the episode has ended, and None whenever `silence_s` seconds passed without one."""
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
        """Wait for the finished episode and how it ended."""
        assert self._task is not None, "the service starts the task before it hands this out"
        episode = await asyncio.shield(self._task)
        assert episode.ended is not None, "run_episode always ends an episode"
        return episode, episode.ended


class Service:
    """Answers requests with one pool and one orchestrator. Make and close it on the event loop that serves.

    Raises PoolNotFound, InvalidPool or UnknownOrchestrator when the model cannot be served.
    """

    def __init__(self, store: Store, model: ServedModel) -> None:
        self.store, self.model = store, model
        stored = store.pools.latest(model.pool)
        self._pool: LivePool = open_live_pool(stored.pool, CallCache(DatabaseCacheStore(store.engine)))
        self._tasks: set[asyncio.Task[Episode]] = set()
        self._episodes: set[ServedEpisode] = set()
        self.started = 0
        make_orchestrator_with_memory(store, self._pool, model.orchestrator)  # raises now what every request would
        self._warming = asyncio.create_task(self._warm_up())

    @property
    def running(self) -> int:
        """How many episodes run."""
        return len(self._episodes)

    @property
    def pool_hash(self) -> str:
        return self._pool.hash

    def start_episode(self, query: str, limits: RequestLimits, user: str) -> ServedEpisode:
        """Start an episode. Raises ApiError when too many run or the query is not usable.

        Episodes read the pool's failure memory but add nothing to it: queries of strangers are not learnt from.
        """
        if len(self._episodes) >= self.model.max_concurrency:
            message = f"{self.model.max_concurrency} requests are being answered; try again in a moment"
            raise ApiError(429, message, "rate_limit_exceeded", headers={"retry-after": "1"})
        allowed = tighten_limits(self._pool.pool.limits, self.model.limits, limits)
        episode = ServedEpisode(self.store)
        try:
            run = prepare_run(
                self.store, self._pool, self.model.orchestrator, query,
                user=user, limits=allowed, sink=episode, graded=False,
            )  # fmt: skip
        except InvalidQuery as error:
            raise ApiError(400, str(error), "invalid_value") from error
        except OrchestratorError as error:  # a checkpoint that was deleted meanwhile
            raise ApiError(503, str(error), "orchestrator_failed") from error
        task = episode.start(run)
        self._episodes.add(episode)
        self._tasks.add(task)
        self.started += 1
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._episodes.discard(episode))
        return episode

    async def close(self) -> None:
        """Stop the running episodes, wait for them, close the workers."""
        self._warming.cancel()
        for episode in list(self._episodes):
            episode.stop()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=CLOSE_S)
        await self._pool.close()

    async def _warm_up(self) -> None:
        """Load a checkpoint before the first request; errors are reported to that request."""
        if self.model.orchestrator in checkpoint_names():
            with suppress(OrchestratorError, WorkerFault):
                await warm_up(self.model.orchestrator)
