"""Runs a deployment's candidate on requests that were answered, and keeps what it answers as traces of their own.

A shadow never slows an answer down: one runs at a time, only while no request is being answered, and it is stopped as
soon as one comes, to be tried again later. Workers whose calls may have effects are not called, and all shadows of a
candidate together cost at most what its deployment allows. What waits is bounded; of more, the oldest are dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlalchemy.exc import SQLAlchemyError

from orchestrator.engine.events import SERVED
from orchestrator.errors import OrchestratorError
from orchestrator.traces.store import Store
from pool_registry.calls.effect_free_pool import refuse_effects
from pool_registry.errors import PoolError
from studio.deployments.store import Deployments
from studio.deployments.trial import sum_shadow_cost
from studio.episodes import RecordedRun, prepare_run
from studio.model_server.errors import ApiError
from studio.model_server.request import EpisodeRequest, tighten_limits
from studio.model_server.served_episode import ServedEpisode
from studio.model_server.setup import EpisodeSetup
from studio.model_server.sides import Side, Sides

log = logging.getLogger(__name__)
MAX_WAITING = 100  # requests
TRIES = 3  # of a shadow that requests stop
PAUSE_S = 0.05  # between two looks at whether requests are being answered


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """A request that a shadow is to run on, and the episode whose answer was given."""

    side: Side
    max_cost: float
    since: str
    request: EpisodeRequest
    user: str
    episode: str
    tries: int = 0


class Shadows:
    """The shadows of one server. `count_running` says how many requests are being answered."""

    def __init__(self, store: Store, count_running: Callable[[], int]) -> None:
        self._store, self._count_running = store, count_running
        self._waiting: deque[AnsweredRequest] = deque(maxlen=MAX_WAITING)
        self._task: asyncio.Task[None] | None = None
        self._current: AnsweredRequest | None = None
        self._run: RecordedRun | None = None
        self._has_made_way = False

    @property
    def pools(self) -> set[str]:
        """The pools in use, by their hashes."""
        current = [] if self._current is None else [self._current]
        return {row.side.pool.hash for row in (*self._waiting, *current)}

    def offer(self, sides: Sides, answered: ServedEpisode) -> None:
        """Run the candidate on a request. Not where none is tried in the shadow, where nothing of the request may be
        kept, where its plans wait for a person, or where its client's own tools would be called."""
        trial, side, request = sides.trial, sides.candidate, answered.setup.request
        if trial is None or side is None or trial.share is not None or not answered.record:
            return
        if request.tools.tools or request.mode not in (None, "autonomous"):
            return
        row = AnsweredRequest(side, trial.max_cost, sides.since, request, answered.user, answered.id)
        self._waiting.append(row)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    def make_way(self) -> None:
        """Stop the shadow that runs: a request has come."""
        if self._run is not None:
            self._has_made_way = True
            self._run.budget.stop()

    async def close(self) -> None:
        """Stop for good."""
        self._waiting.clear()
        self.make_way()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])  # however it ends: what closes after this must be closed

    async def _work(self) -> None:
        while self._waiting:
            if self._count_running():
                await asyncio.sleep(PAUSE_S)
                continue
            self._current = self._waiting.popleft()
            try:
                await self._run_one(self._current)
            except (OrchestratorError, PoolError, ApiError, SQLAlchemyError, OSError) as error:
                log.warning("%s cannot run in the shadow: %s", self._current.side.orchestrator, error)
            finally:
                self._current = self._run = None

    async def _run_one(self, row: AnsweredRequest) -> None:
        """Run one shadow; what a request stops, or comes before, waits again."""
        left = await asyncio.to_thread(self._find_budget, row)
        if left <= 0:
            return
        if self._count_running():
            self._waiting.append(row)
            return
        self._run, self._has_made_way = self._prepare(row, left), False
        await self._run.run()
        if self._has_made_way and row.tries + 1 < TRIES:
            self._waiting.append(replace(row, tries=row.tries + 1))

    def _find_budget(self, row: AnsweredRequest) -> float:
        """What a shadow may cost, US dollars: 0 where the candidate is not tried any longer, or has spent its own."""
        assert row.side.served_as is not None, "only deployments have candidates"
        now = Deployments(self._store.engine).latest(row.side.served_as.deployment)
        if now.at != row.since:
            return 0.0
        return row.max_cost - sum_shadow_cost(self._store, now.deployment, row.since)

    def _prepare(self, row: AnsweredRequest, max_cost: float) -> RecordedRun:
        side = row.side
        assert side.served_as is not None, "only deployments have candidates"
        setup = EpisodeSetup(refuse_effects(side.pool), side.orchestrator, _cap_cost(row.request, max_cost))
        allowed = tighten_limits(side.pool.pool.limits, side.model.limits, row.request.limits)
        return prepare_run(
            self._store, setup.pool, setup.orchestrator, setup.query,
            user=row.user, source=SERVED, limits=setup.take_limits(allowed), graded=False, mode=side.mode,
            wrap=setup.wrap, for_person=setup.for_person, served_as=replace(side.served_as, shadow_of=row.episode),
            follow_up=row.request.follow_up,
        )  # fmt: skip


def _cap_cost(request: EpisodeRequest, max_cost: float) -> EpisodeRequest:
    """The request with a cap that no call is made beyond, US dollars."""
    caps = [cap for cap in (request.run_limits.max_cost, max_cost) if cap is not None]
    return replace(request, run_limits=replace(request.run_limits, max_cost=min(caps)))
