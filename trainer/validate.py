"""Validates tasks by execution: the reference plan, run through the real workers, must give the answer."""

from __future__ import annotations

from orchestrator.run import NoSink
from pool_registry.live import LivePool
from trainer.evaluate import attempt
from trainer.tasks.task import Task


async def problem_of(task: Task, pool: LivePool) -> str | None:
    """Why a task's reference plan does not earn its answer on this pool, or None."""
    done = await attempt("oracle", task, pool, NoSink())
    if done.correct:
        return None
    failed = [
        f"step {k} ({run.step.worker}): {run.observation.error.message}"
        for k, run in done.episode.steps.items()
        if run.observation is not None and run.observation.error is not None
    ]
    return "; ".join(failed) or f"the plan gives {done.episode.answer}, expected {task.expected}"
