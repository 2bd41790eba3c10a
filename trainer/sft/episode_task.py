"""A recorded run, or a what-if of one, as a task: its query, its answer, and the plan that led to it."""

from __future__ import annotations

import asyncio
import json

from orchestrator.dialects.plan_json import PlanDialect
from orchestrator.engine.episode import Episode
from orchestrator.plan import Turn
from orchestrator.traces.store import Store
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from trainer.errors import UnusableTasks
from trainer.sft.demonstrations import find_plan
from trainer.tasks.sources.jsonl import TaskLine


def make_line_of_episode(store: Store, episode_id: str, pool: str) -> TaskLine:
    """The line of a task file for an episode whose answer a person takes to be right.

    Raises EpisodeNotFound, and UnusableTasks where the run has no answer, or no plan on this pool that led to it.
    """
    episode = store.traces.episode(episode_id)
    if episode.answer is None:
        raise UnusableTasks(f"the run {episode_id} has no answer, so it is no task")
    plan = asyncio.run(_find_plan(episode, store.pools.latest(pool).pool))
    if plan is None:
        raise UnusableTasks(
            f"the run {episode_id} has no plan on the pool {pool} that led to its answer: correct a step of it "
            "(What if), or write the plan by hand"
        )
    written = json.loads(PlanDialect().format(Turn(plan.steps, plan.answer), ()))
    return TaskLine(query=episode.query, answer=episode.answer, plan=written, split="train")


async def _find_plan(episode: Episode, pool: Pool) -> Turn | None:
    async with live_pool(pool) as live:
        return find_plan(episode, live)
