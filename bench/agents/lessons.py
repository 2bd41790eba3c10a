"""What orchestrators do on the test tasks of the source `agents`, and whether they refuse what agents know."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.agents.rows import Row
from orchestrator.engine.episode_loop import NoSink
from orchestrator.policies.registry import make_orchestrator
from orchestrator.reader.refusal import is_refusal
from podium_lessons.agents.source import open_agents
from pool_registry.calls.live_pool import live_pool
from trainer.evaluation.trials import run_task
from trainer.results.statistics import bootstrap_mean
from trainer.tasks.task import Task


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a task ended; nobody of its pool knows the answer where it is not `answerable`."""

    answerable: bool
    refused: bool
    right: bool


def measure_lessons(options: argparse.Namespace) -> Iterator[Row]:
    """A row for each orchestrator and level."""
    source = open_agents()
    for policy in options.learned:
        for level in source.levels:
            tasks = source.tasks("test", options.tasks, levels=(level,))
            yield describe(policy, level, asyncio.run(play_tasks(policy, tasks)))


async def play_tasks(policy: str, tasks: Sequence[Task]) -> list[Outcome]:
    """Run each task on its own pool, one after another."""
    return [await play_task(policy, task) for task in tasks]


async def play_task(policy: str, task: Task) -> Outcome:
    assert task.pool is not None and task.oracle_turn is not None, "lessons bring pools and plans"
    async with live_pool(task.pool) as live:
        episode = await run_task(task, make_orchestrator(policy, live), live, NoSink())
    right = bool(task.verifier.accepts(episode.answer))
    return Outcome(bool(task.oracle_turn.steps), is_refusal(episode.answer), right)


def describe(policy: str, level: int, outcomes: Sequence[Outcome]) -> Row:
    """The row of an orchestrator on tasks of a level."""
    right = bootstrap_mean([float(outcome.right) for outcome in outcomes])
    answerable = [outcome for outcome in outcomes if outcome.answerable]
    return {
        "part": "lessons",
        "pools": "redrawn",
        "topics": "unseen",
        "policy": policy,
        "level": level,
        "tasks": len(outcomes),
        "right": round(right.mean, 4),
        "low": round(right.low, 4),
        "high": round(right.high, 4),
        "answerable": len(answerable),
        "refused": sum(outcome.refused for outcome in answerable),
        "right_refusals": sum(outcome.refused for outcome in outcomes if not outcome.answerable),
    }
