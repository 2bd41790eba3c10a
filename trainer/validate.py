"""Validates tasks by execution: the reference plan, run through the real workers, must give the answer."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.episode import Episode
from orchestrator.policies.oracle import OraclePolicy
from orchestrator.run import NoSink
from pool_registry.actions import as_text
from pool_registry.live import LivePool
from trainer.evaluate import attempt
from trainer.tasks.task import Task


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a task's reference plan does not earn its answer on a pool."""

    task: Task
    reason: str


async def validate(task: Task, pool: LivePool) -> Problem | None:
    """Run the reference plan through the executor and grade it; None when all is well."""
    episode = await attempt(task, OraclePolicy(task.oracle_turn), pool, NoSink())
    if episode.graded is not None and episode.graded.correct:
        return None
    return Problem(task, _reason(task, episode))


def _reason(task: Task, episode: Episode) -> str:
    errors = [
        f"step {k} ({run.step.worker}): {run.observation.error.message}"
        for k, run in episode.steps.items()
        if run.observation is not None and run.observation.error is not None
    ]
    turns = [done.turn.error for done in episode.rounds if done.turn is not None and done.turn.error]
    return "; ".join(errors or turns) or f"the plan gives {as_text(episode.answer)}, expected {task.expected}"
