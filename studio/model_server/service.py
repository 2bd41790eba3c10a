"""One pool and one orchestrator, ready to answer: what the HTTP APIs and the MCP server share.

An episode belongs to the request that started it: when the request is over, however it ended, the episode is
stopped, and with it every call that its workers have in flight. One that has handed calls of the client's tools over
waits for the request that brings their outputs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from orchestrator.checkpoints import checkpoint_names
from orchestrator.engine.budget import Budget
from orchestrator.engine.episode import Episode
from orchestrator.engine.events import SERVED
from orchestrator.engine.release import Decision
from orchestrator.errors import InvalidQuery, OrchestratorError
from orchestrator.policies.model import warm_up
from orchestrator.traces.store import Store
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.deployment_mode import DeploymentMode, tighten_mode
from pool_registry.errors import WorkerFault
from studio.approvals import WaitingPlan, claim_plan
from studio.episodes import prepare_resumed, prepare_run
from studio.model_server.approvals import Approvals
from studio.model_server.chat_follow_ups import AnsweredRuns, read_chat
from studio.model_server.client_tools import read_episode_id
from studio.model_server.errors import ApiError, invalid_value
from studio.model_server.kept_responses import KeptResponses
from studio.model_server.request import EpisodeRequest, tighten_limits
from studio.model_server.served_episode import ServedEpisode
from studio.model_server.setup import EpisodeSetup, reads_conversation
from studio.model_server.shadows import Shadows
from studio.model_server.sides import ServedModel, Sides
from trainer.demonstrations.second_try import SecondTry, make_second_try, open_budget

__all__ = ["ServedModel", "Service", "holds_plans"]

CLOSE_S = 5.0
MAX_HELD = 1000  # runs whose plan waits that the server keeps the client's tools of


class Service:
    """Answers requests with one pool and one orchestrator, or with those of a deployment. Make and close it on the
    event loop that serves.

    Raises PoolNotFound, InvalidPool or UnknownOrchestrator when the model cannot be served.
    """

    def __init__(self, store: Store, model: ServedModel) -> None:
        self.store, self.model = store, model
        self.sides = Sides(store, model)
        self._tasks: set[asyncio.Task[Episode]] = set()
        self._episodes: dict[str, ServedEpisode] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._budgets: dict[str, Budget] = {}  # of second tries that wait or run
        self._trying = asyncio.Semaphore()  # they are made one after the other
        self._held: dict[str, EpisodeSetup] = {}  # of runs whose plan waits, by their ids
        self.approvals = Approvals(store, self)
        self.responses = KeptResponses(store.home)
        self.responses.delete_old()
        self._runs = AnsweredRuns(store.traces)
        self.answered = self.failed = 0  # runs that ended with an answer, and without one
        self._shadows = Shadows(store, lambda: self.running)
        self._warming = asyncio.create_task(self._warm_up())

    @property
    def running(self) -> int:
        """How many episodes run; those that wait for their client do not count."""
        return sum(not episode.waits for episode in self._episodes.values())

    @property
    def mode(self) -> DeploymentMode:
        return self.sides.serving.mode

    @property
    def pool_hash(self) -> str:
        return self.sides.serving.pool.hash

    @property
    def record(self) -> bool:
        """Whether anything of a request may be stored."""
        return self.sides.serving.model.record

    async def refresh(self) -> None:
        """Take over what the record of a deployment says now; a request is answered by what served when it came. Raises
        ApiError where the record cannot be read."""
        if await self.sides.refresh():
            self._warming.cancel()
            self._warming = asyncio.create_task(self._warm_up())
            await self._close_unused()

    async def read(self, request: EpisodeRequest, user: str) -> EpisodeRequest:
        """The request with its last message read as a follow-up of those before it, where that is on."""
        side = self.sides.choose(request, user)
        if not side.model.follow_ups:
            return request
        stands_alone = not reads_conversation(side.model.orchestrator)
        return await read_chat(request, side.pool, self._runs, user, stands_alone)

    def start_episode(self, request: EpisodeRequest, user: str) -> ServedEpisode:
        """Start an episode, or go on with the one that waits for the outputs which the request brings. Raises ApiError
        when too many run or the query is not usable.

        Episodes read the pool's failure memory but add nothing to it: queries of strangers are not learnt from.
        """
        self._shadows.make_way()
        waiting = self._resume(request, user)
        if waiting is not None:
            return waiting
        if self.running >= self.model.max_concurrency:
            message = f"{self.model.max_concurrency} requests are being answered; try again in a moment"
            raise ApiError(429, message, "rate_limit_exceeded", headers={"retry-after": "1"})
        side = self.sides.choose(request, user)
        record = request.record and side.model.record
        mode = tighten_mode(side.mode, request.mode)
        if not record and mode.name != "autonomous":
            message = f"in the mode {mode.name} plans wait for a person, who reads them where they are stored"
            raise ApiError(400, message, "unsupported_value", "store")
        setup = EpisodeSetup(side.pool if record else side.pool.forget_calls(), side.orchestrator, request)
        episode = ServedEpisode(self.store, setup, user, record, side.headers)
        allowed = tighten_limits(side.pool.pool.limits, side.model.limits, request.limits)
        try:
            run = prepare_run(
                self.store, setup.pool, setup.orchestrator, setup.query,
                user=user, source=SERVED, limits=setup.take_limits(allowed), sink=episode, graded=False,
                mode=mode, wrap=setup.wrap, for_person=setup.for_person, served_as=side.served_as,
                follow_up=request.follow_up,
            )  # fmt: skip
        except InvalidQuery as error:
            raise ApiError(400, str(error), "invalid_value") from error
        except OrchestratorError as error:
            if request.run_limits.without_workers:
                raise invalid_value("podium.without_workers", f"{side.orchestrator} needs more: {error}") from error
            # A checkpoint that was deleted meanwhile.
            raise ApiError(503, str(error), "orchestrator_failed") from error
        self._follow(episode, episode.start(run))
        return episode

    def find_pool(self, pool_hash: str) -> LivePool | None:
        """A pool that is open here, by its hash."""
        return self.sides.find_pool(pool_hash)

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
        episode.on_answer = lambda text: self._keep_run(episode, text)
        task.add_done_callback(lambda done: self._let_go(episode, done))

    def _keep_run(self, episode: ServedEpisode, text: str) -> None:
        if episode.record:
            self._runs.keep(episode.user, episode.request, text, episode.id)

    def _let_go(self, episode: ServedEpisode, task: asyncio.Task[Episode]) -> None:
        """Forget an episode that is over; of one whose plan waits keep what its request came with."""
        self._tasks.discard(task)
        self._episodes.pop(episode.id, None)
        ended = None if task.cancelled() or task.exception() is not None else task.result().ended
        if ended is not None and ended.outcome == "answered":
            self.answered += 1
            if not episode.setup.request.readings:
                self._shadows.offer(self.sides, episode)
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

    def try_again(self, second: SecondTry) -> None:
        """Make the second try that a verdict has started in the background."""
        self._budgets[second.id] = open_budget(second)
        self.keep_running(self._try_again(second))

    async def _try_again(self, second: SecondTry) -> None:
        try:
            async with self._trying:
                await make_second_try(second, live_pool(second.pool), self._budgets[second.id], self.store)
        finally:
            del self._budgets[second.id]

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
        for budget in self._budgets.values():
            budget.stop()
        await self._shadows.close()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=CLOSE_S)
        if self._background:
            await asyncio.wait(set(self._background), timeout=CLOSE_S)
        await self.sides.close()

    async def _warm_up(self) -> None:
        """Load checkpoints before their first request; errors are reported to that request."""
        sides = [side for side in (self.sides.serving, self.sides.candidate) if side is not None]
        for name in [side.orchestrator for side in sides if side.orchestrator in checkpoint_names()]:
            with suppress(OrchestratorError, WorkerFault):
                await warm_up(name)

    async def _close_unused(self) -> None:
        """Close the pools of versions that are served no more, once no run uses them."""
        setups = [*(episode.setup for episode in self._episodes.values()), *self._held.values()]
        await self.sides.close_unused({setup.pool.hash for setup in setups} | self._shadows.pools)


def holds_plans(store: Store, model: ServedModel) -> bool:
    """Whether plans of this model may have to wait for a person."""
    return tighten_mode(model.read_pool(store).pool.mode, model.mode).name != "autonomous"
