"""What a plan for a generated task leads to."""

from __future__ import annotations

import asyncio

from orchestrator.engine.episode_loop import NoSink
from orchestrator.plan import Turn
from orchestrator.policies.registry import make_orchestrator
from pool_registry.calls.live_pool import live_pool
from trainer.evaluation.trials import run_task
from trainer.tasks.task import Task


def answer_by(task: Task, turn: Turn) -> bool:
    """Whether a plan for the task leads to the right answer."""

    async def run() -> bool:
        assert task.pool is not None
        async with live_pool(task.pool) as live:
            episode = await run_task(task, make_orchestrator("oracle", live, turn), live, NoSink())
            return task.verifier.accepts(episode.answer)

    return asyncio.run(run())
