"""The reader for agents that ships: what it writes to agents on topics that its training never had."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.engine.episode_loop import NoSink
from orchestrator.policies.registry import make_orchestrator
from podium_lessons.agents.source import open_agents
from pool_registry.calls.live_pool import live_pool
from trainer.evaluation.trials import run_task

pytestmark = pytest.mark.slow
TASKS = 12


def test_it_puts_most_questions_to_an_agent_in_words_that_it_can_answer():
    async def run() -> list[bool]:
        outcomes = []
        for task in open_agents().tasks("test", TASKS, levels=(1,)):
            if task.pool is None or task.oracle_turn is None or not task.oracle_turn.steps:
                continue  # nobody of its pool knows the answer
            async with live_pool(task.pool) as live:
                episode = await run_task(task, make_orchestrator("smollm2-agents", live), live, NoSink())
            outcomes.append(bool(task.verifier.accepts(episode.answer)))
        return outcomes

    outcomes = asyncio.run(run())
    assert len(outcomes) >= 6 and sum(outcomes) >= 0.6 * len(outcomes)
