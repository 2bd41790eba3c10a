"""Tries a lesson (after Reflexion, arXiv 2303.11366): the failed query once more, by the same orchestrator, with this
lesson alone before it. The task's verifier or judge says whether the answer is right this time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import Sink
from orchestrator.errors import UnknownOrchestrator
from orchestrator.failure_memory.lessons import FrozenMemory, LessonRow
from orchestrator.plan import Lesson
from orchestrator.policies.model import ModelPolicy, with_memory
from orchestrator.policies.options.wrapper import unwrap
from orchestrator.policies.registry import make_orchestrator
from pool_registry.calls.live_pool import LivePool
from trainer.evaluation.trials import run_task
from trainer.tasks.task import Task

Outcome = Literal["right", "wrong", "no_reader", "not_graded"]


@dataclass(frozen=True, slots=True)
class LessonTrial:
    """What came of a try. "no_reader": its orchestrator is gone, or is shown no lessons; "not_graded": nothing said
    whether the answer is right. `episode` is the trace of the try, "" where there was none."""

    outcome: Outcome
    episode: str = ""


async def try_lesson(row: LessonRow, failed: Episode, task: Task, pool: LivePool, sink: Sink) -> LessonTrial:
    """Run the task once with a lesson, and grade it."""
    assert failed.started is not None, "the episode has failed"
    lesson = Lesson(row.query, row.sentence, row.written_by, row.episode, 0.0)
    try:
        made = make_orchestrator(failed.started.orchestrator, pool, task.oracle_turn)
    except UnknownOrchestrator:
        return LessonTrial("no_reader")
    innermost = unwrap(made)
    if not (isinstance(innermost, ModelPolicy) and innermost.reads_memory):
        return LessonTrial("no_reader")
    episode = await run_task(task, with_memory(made, FrozenMemory((lesson,))), pool, sink)
    if episode.graded is None:
        return LessonTrial("not_graded", episode.id)
    return LessonTrial("right" if episode.graded.correct else "wrong", episode.id)
