"""The pass@k check of made tasks: an agent of the pool must reach the answer from the query in one of k tries.

It plans with the pool as an orchestrator would, without the reference plan. A query that nobody can follow is left out
so, and one that asks for something else than its plan computes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.orchestrator_name import OrchestratorName
from orchestrator.policies.registry import make_orchestrator
from pool_registry.calls.live_pool import LivePool
from pool_registry.language_models.completion import Draw
from trainer.tasks.suite import make_random
from trainer.tasks.task import Task
from trainer.tasks.verifier import JudgeCheck, PythonCheck

AT_A_TIME = 4
TEMPERATURE = 1.0  # of the tries after the first, which is greedy


async def list_solved(tasks: Sequence[Task], agent: str, tries: int, pool: LivePool) -> list[bool]:
    """Whether the agent solves each task in one of so many tries. Raises UnknownOrchestrator where it cannot plan."""
    slots = asyncio.Semaphore(AT_A_TIME)
    name = str(OrchestratorName("model", agent, "plan"))
    make_orchestrator(name, pool, None)  # raises before anything is called

    async def is_solved(task: Task) -> bool:
        async with slots:
            for number in range(tries):
                if await _solves(task, name, pool, number):
                    return True
        return False

    return list(await asyncio.gather(*map(is_solved, tasks)))


async def _solves(task: Task, name: str, pool: LivePool, number: int) -> bool:
    draw = Draw(TEMPERATURE, make_random(f"practice/{task.query}/{number}").randrange(2**31)) if number else None
    episode = await run_episode(EpisodeSpec(task.query), make_orchestrator(name, pool, None, draw), pool)
    verifier = task.verifier
    assert not isinstance(verifier, PythonCheck | JudgeCheck), "made tasks are graded by their text alone"
    return verifier.accepts(episode.answer)
