"""The task source `everyday:held_out`: questions written by hand, on the starter pool. Nobody learns from them."""

from __future__ import annotations

from functools import cache

from pydantic import Field

from orchestrator.engine.events import TaskRef
from orchestrator.plan import Step, Turn
from orchestrator.quotes import references
from orchestrator.reader.refusal import refuse
from podium_lessons.lesson_data import load_lesson_data
from pool_registry.actions import JsonValue
from pool_registry.starter import starter_pool
from trainer.errors import UnknownTask
from trainer.tasks.sources.source import TaskList, check_split
from trainer.tasks.task import Task
from trainer.tasks.task_data import TaskData
from trainer.tasks.verifier import AnyVerifier, ExactText, NumberWithin, OneOf, RefusalVerifier

FAMILY = "everyday"
NAME = "everyday:held_out"
VERSION = 1


class HeldOutStep(TaskData):
    """A call of the reference plan. `sees` are earlier steps that its arguments do not quote."""

    need: str
    worker: str
    arguments: dict[str, JsonValue]
    sees: tuple[int, ...] = ()


class HeldOutQuestion(TaskData):
    """A question with its answer: a number with a tolerance, a text, or texts that mean the same. Without an answer it
    is one to refuse, for want of `need`."""

    query: str
    answer: float | str | tuple[str, ...] | None = None
    tolerance: float = Field(default=1e-6, ge=0)
    plan: tuple[HeldOutStep, ...] = ()
    need: str = ""


class HeldOutData(TaskData):
    """All questions of the file."""

    questions: tuple[HeldOutQuestion, ...]


class HeldOutSource(TaskList):
    """The questions in the order of a seed. They make up the test split; there is no other."""

    def __init__(self) -> None:
        super().__init__(NAME, list(list_held_out_tasks()))

    def tasks(self, split: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
        if check_split(split) != "test":
            raise UnknownTask(f"{NAME} is for testing; its only split is test")
        return super().tasks(split, count, seed, levels)


@cache
def list_held_out_tasks() -> tuple[Task, ...]:
    """Every question as a task on the starter pool, in the order of the file."""
    questions = load_lesson_data("everyday_held_out", HeldOutData).questions
    return tuple(_make_task(index, question) for index, question in enumerate(questions))


def _make_task(index: int, question: HeldOutQuestion) -> Task:
    ref = TaskRef(FAMILY, min(max(len(question.plan), 1), 3), "test", index, VERSION)
    return Task(ref, question.query, _make_verifier(question), _make_turn(question), starter_pool())


def _make_verifier(question: HeldOutQuestion) -> AnyVerifier:
    answer = question.answer
    if answer is None:
        return RefusalVerifier()
    if isinstance(answer, float):
        return NumberWithin(answer, question.tolerance)
    return ExactText(answer) if isinstance(answer, str) else OneOf(answer)


def _make_turn(question: HeldOutQuestion) -> Turn:
    if question.answer is None:
        return Turn(answer=refuse(question.need))
    steps = tuple(_make_step(number, step) for number, step in enumerate(question.plan, start=1))
    return Turn(steps, f"${len(steps)}")


def _make_step(number: int, step: HeldOutStep) -> Step:
    access = sorted(references(step.arguments) | set(step.sees))
    return Step(number, step.worker, step.arguments, tuple(access), need=step.need)
