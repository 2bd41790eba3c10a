"""Tries a lesson (after Reflexion, arXiv 2303.11366): the failed query once more, by the same orchestrator, with this
lesson alone before it. The task's verifier or judge says whether the answer is right this time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal

from orchestrator.engine.budget import Budget
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import Orchestrator, Sink
from orchestrator.engine.events import Retried
from orchestrator.errors import UnknownOrchestrator
from orchestrator.failure_memory.decay import note_retry
from orchestrator.failure_memory.lessons import LessonAlone, LessonRow
from orchestrator.plan import Lesson, Turn
from orchestrator.policies.model import ModelPolicy, with_memory
from orchestrator.policies.options.wrapper import unwrap
from orchestrator.policies.registry import make_orchestrator
from orchestrator.traces.store import Store
from pool_registry.calls.effect_free_pool import refuse_effects
from pool_registry.calls.live_pool import LivePool
from pool_registry.calls.spending import charge_calls_to
from trainer.evaluation.trials import run_task
from trainer.tasks.task import Task

Outcome = Literal["right", "wrong", "no_reader", "not_graded"]


@dataclass(frozen=True, slots=True)
class LessonTrial:
    """What came of a try. "no_reader": its orchestrator is gone, or is shown no lessons; "not_graded": nothing said
    whether the answer is right. `episode` is the trace of the try, "" where there was none."""

    outcome: Outcome
    episode: str = ""


async def try_lesson(
    row: LessonRow, failed: Episode, task: Task, pool: LivePool, sink: Sink, budget: Budget | None = None
) -> LessonTrial:
    """Run the task once with a lesson, and grade it; with a `budget` within what it has left."""
    assert failed.started is not None, "the episode has failed"
    lesson = Lesson(row.query, row.sentence, row.written_by, row.episode, 0.0)
    reader = make_reader(failed.started.orchestrator, pool, task.oracle_turn)
    if reader is None:
        return LessonTrial("no_reader")
    policy, limits = with_memory(reader, LessonAlone(lesson)), budget.limits if budget else None
    episode = await run_task(task, policy, pool, sink, limits, budget=budget, retry_of=failed)
    if episode.graded is None:
        return LessonTrial("not_graded", episode.id)
    return LessonTrial("right" if episode.graded.correct else "wrong", episode.id)


def make_reader(name: str, pool: LivePool, oracle_turn: Turn | None = None) -> Orchestrator | None:
    """The orchestrator of that name, where it is still there and reads lessons."""
    try:
        made = make_orchestrator(name, pool, oracle_turn)
    except UnknownOrchestrator:
        return None
    innermost = unwrap(made)
    return made if isinstance(innermost, ModelPolicy) and innermost.reads_memory else None


async def retry_with_lesson(
    row: LessonRow, failed: Episode, task: Task, pool: LivePool, budget: Budget, store: Store
) -> None:
    """Run a question that has just failed once more with its lesson, in what its run has left of its budget, and keep
    the lesson only if the answer is right then. The trace of the failed run says what came of it.

    No worker is called whose calls may have effects: the failed run may have called it already. Where plans wait for a
    person, and where nothing of the budget is left, nothing is tried.
    """
    started, ended = failed.started, failed.ended
    assert started is not None and ended is not None, "the episode has failed"
    waits = started.mode is not None and started.mode.name != "autonomous"
    if waits or budget.check_limits() is not None:
        return
    with charge_calls_to(budget.spending):
        trial = await try_lesson(row, failed, task, refuse_effects(pool), store.traces, budget)
    if trial.outcome in ("right", "wrong"):
        await asyncio.to_thread(settle_lesson, store, row, trial)
        store.traces.append(failed.id, Retried(trial.episode, trial.outcome == "right", ended.at))


def settle_lesson(store: Store, row: LessonRow, trial: LessonTrial) -> None:
    """Keep a lesson that was right when it was tried, with the run that shows it, and forget one that was wrong."""
    if trial.outcome == "right":
        note_retry(store.engine, row.episode, trial.episode)
    if trial.outcome == "wrong":
        store.lessons.forget(row.pool, row.id)
