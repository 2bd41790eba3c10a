"""Recorded runs for tests: real workers on a reference plan, under any orchestrator's name, without a model."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Turn
from orchestrator.policies.baselines.oracle import OraclePolicy
from orchestrator.traces.store import Store
from pool_registry.calls.live_pool import live_pool
from trainer.evaluation.trials import grade_episode, make_inner_orchestrator
from trainer.tasks import find_task


class Named(Orchestrator):
    """An orchestrator that plays a given turn under another one's name."""

    def __init__(self, name: str, turn: Turn) -> None:
        self.name = name
        self._turn = OraclePolicy(turn)

    async def turn(self, episode: Episode) -> Turn:
        return await self._turn.turn(episode)


def record_run(store: Store, orchestrator: str, family: str = "itinerary", level: int = 3, index: int = 0) -> str:
    """Run one task on the starter pool; the episode's id."""

    async def run() -> str:
        task = find_task(family, level, "test", index)
        assert task.oracle_turn is not None
        async with live_pool(store.pools.latest("starter").pool) as pool:
            named = Named(orchestrator, task.oracle_turn)
            spec = EpisodeSpec(task.query, task=task.ref)
            episode = await run_episode(spec, named, pool, sink=store.traces, resolve=make_inner_orchestrator)
            await grade_episode(episode, task, store.traces, pool)
        store.traces.flush()
        return episode.id

    with ThreadPoolExecutor(1) as thread:  # Playwright's own loop may run in this one
        return thread.submit(lambda: asyncio.run(run())).result()
