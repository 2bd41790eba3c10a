"""One pool and one orchestrator, ready to answer: what the HTTP APIs and the MCP server share.

An episode belongs to the request that started it: when the request is over, however it ended, the episode is
stopped, and with it every call that its workers have in flight. One that has handed calls of the client's tools over
waits for the request that brings their outputs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from orchestrator.checkpoints import checkpoint_names
from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Decision
from orchestrator.errors import InvalidQuery, OrchestratorError
from orchestrator.policies.model import warm_up
from orchestrator.traces.store import Store
from pool_registry.calls.call_cache import CallCache
from pool_registry.calls.call_cache_table import DatabaseCacheStore
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.deployment_mode import ModeName, tighten_mode
from pool_registry.errors import WorkerFault
from studio.approvals import WaitingPlan, claim_plan
from studio.episodes import SERVED, make_orchestrator_with_memory, prepare_resumed, prepare_run
from studio.model_server.approvals import Approvals
from studio.model_server.client_tools import read_episode_id
from studio.model_server.errors import ApiError, invalid_value
from studio.model_server.kept_responses import KeptResponses
from studio.model_server.request import EpisodeRequest, RequestLimits, tighten_limits
from studio.model_server.served_episode import ServedEpisode
from studio.model_server.setup import EpisodeSetup

CLOSE_S = 5.0
MAX_HELD = 1000  # runs whose plan waits that the server keeps the client's tools of


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A pool and an orchestrator under one model name, with the server's own limits."""

    pool: str
    orchestrator: str
    model: str = ""
    limits: RequestLimits = field(default_factory=RequestLimits)
    max_concurrency: int = 128
    mode: ModeName | None = None  # stricter than the pool's
    record: bool = True  # False: nothing of any request is stored

    @property
    def name(self) -> str:
        """The model's name for clients."""
        return self.model or f"podium-{self.pool}"


class Service:
    """Answers requests with one pool and one orchestrator. Make and close it on the event loop that serves.

    Raises PoolNotFound, InvalidPool or UnknownOrchestrator when the model cannot be served.
    """

    def __init__(self, store: Store, model: ServedModel) -> None:
        self.store, self.model = store, model
        stored = store.pools.latest(model.pool)
        self._pool: LivePool = open_live_pool(stored.pool, CallCache(DatabaseCacheStore(store.engine)))
        self._tasks: set[asyncio.Task[Episode]] = set()
        self._episodes: dict[str, ServedEpisode] = {}
        self._background: set[asyncio.Task[None]] = set()
        self.mode = tighten_mode(self._pool.pool.mode, model.mode)
        self._held: dict[str, EpisodeSetup] = {}  # of runs whose plan waits, by their ids
        self.approvals = Approvals(store, self._pool, self)
        self.responses = KeptResponses(store.home)
        self.responses.delete_old()
        self.answered = self.failed = 0  # runs that ended with an answer, and without one
        make_orchestrator_with_memory(store, self._pool, model.orchestrator)  # raises now what every request would
        self._warming = asyncio.create_task(self._warm_up())

    @property
    def running(self) -> int:
        """How many episodes run; those that wait for their client do not count."""
        return sum(not episode.waits for episode in self._episodes.values())

    @property
    def pool_hash(self) -> str:
        return self._pool.hash

    def start_episode(self, request: EpisodeRequest, user: str) -> ServedEpisode:
        """Start an episode, or go on with the one that waits for the outputs which the request brings. Raises ApiError
        when too many run or the query is not usable.

        Episodes read the pool's failure memory but add nothing to it: queries of strangers are not learnt from.
        """
        waiting = self._resume(request, user)
        if waiting is not None:
            return waiting
        if self.running >= self.model.max_concurrency:
            message = f"{self.model.max_concurrency} requests are being answered; try again in a moment"
            raise ApiError(429, message, "rate_limit_exceeded", headers={"retry-after": "1"})
        record = request.record and self.model.record
        mode = tighten_mode(self.mode, request.mode)
        if not record and mode.name != "autonomous":
            message = f"in the mode {mode.name} plans wait for a person, who reads them where they are stored"
            raise ApiError(400, message, "unsupported_value", "store")
        setup = EpisodeSetup(self._pool if record else self._pool.forget_calls(), self.model.orchestrator, request)
        episode = ServedEpisode(self.store, setup, user, record)
        allowed = tighten_limits(self._pool.pool.limits, self.model.limits, request.limits)
        try:
            run = prepare_run(
                self.store, setup.pool, setup.orchestrator, setup.query,
                user=user, source=SERVED, limits=setup.take_limits(allowed), sink=episode, graded=False,
                mode=mode, wrap=setup.wrap, for_person=setup.for_person,
            )  # fmt: skip
        except InvalidQuery as error:
            raise ApiError(400, str(error), "invalid_value") from error
        except OrchestratorError as error:
            if request.run_limits.without_workers:
                raise invalid_value(
                    "podium.without_workers", f"{self.model.orchestrator} needs more: {error}"
                ) from error
            # A checkpoint that was deleted meanwhile.
            raise ApiError(503, str(error), "orchestrator_failed") from error
        self._follow(episode, episode.start(run))
        return episode

    def find_held(self, episode_id: str) -> EpisodeSetup | None:
        """What the request of a run whose plan waits came with; None after a restart of the server."""
        return self._held.get(episode_id)

    def resume_held(self, plan: WaitingPlan, decision: Decision, user: str) -> ServedEpisode:
        """Go on with a run whose plan waited, with the tools and settings of its client. Raises UnknownOrchestrator,
        and NotWaiting where somebody has decided meanwhile."""
        setup = self._held[plan.row.id]
        episode = ServedEpisode(self.store, setup, user)
        run = prepare_resumed(self.store, setup.pool, plan.episode, decision, episode, setup.wrap)
        turns = [done.turn for done in plan.episode.rounds]
        episode.progress.take_turns(turn for turn in [*turns, decision.turn] if turn is not None)
        claim_plan(self.store, plan)
        self._held.pop(plan.row.id)
        self._follow(episode, episode.start(run, plan.episode))
        return episode

    def _follow(self, episode: ServedEpisode, task: asyncio.Task[Episode]) -> None:
        self._episodes[episode.id] = episode
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._let_go(episode, done))

    def _let_go(self, episode: ServedEpisode, task: asyncio.Task[Episode]) -> None:
        """Forget an episode that is over; of one whose plan waits keep what its request came with."""
        self._tasks.discard(task)
        self._episodes.pop(episode.id, None)
        ended = None if task.cancelled() or task.exception() is not None else task.result().ended
        if ended is not None and ended.outcome == "answered":
            self.answered += 1
        elif ended is not None or task.cancelled() or task.exception() is not None:
            self.failed += 1
        else:
            self._held[episode.id] = episode.setup
            while len(self._held) > MAX_HELD:
                self._held.pop(next(iter(self._held)))

    def keep_running(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the rest of a request in the background."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def stop_episode(self, episode_id: str, user: str) -> None:
        """Stop an episode of this user, if it still runs."""
        episode = self._episodes.get(episode_id)
        if episode is not None and episode.user == user:
            episode.stop()

    def _resume(self, request: EpisodeRequest, user: str) -> ServedEpisode | None:
        """The episode of this client that waits for the outputs of the request, which it now has; None where none
        does: the calls and outputs are then part of the conversation."""
        for call in request.outputs:
            episode = self._episodes.get(read_episode_id(call))
            if episode is not None and episode.user == user and episode.resume(request):
                return episode
        return None

    async def close(self) -> None:
        """Stop the running episodes, wait for them, close the workers."""
        self._warming.cancel()
        for episode in list(self._episodes.values()):
            episode.stop()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=CLOSE_S)
        if self._background:
            await asyncio.wait(set(self._background), timeout=CLOSE_S)
        await self._pool.close()

    async def _warm_up(self) -> None:
        """Load a checkpoint before the first request; errors are reported to that request."""
        if self.model.orchestrator in checkpoint_names():
            with suppress(OrchestratorError, WorkerFault):
                await warm_up(self.model.orchestrator)


def holds_plans(store: Store, model: ServedModel) -> bool:
    """Whether plans of this model may have to wait for a person."""
    return tighten_mode(store.pools.latest(model.pool).pool.mode, model.mode).name != "autonomous"
