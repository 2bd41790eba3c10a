"""The tasks of the proving ground.

route     one question: who knows this?
check     one question, of a pool with cheap experts that may agree, and a dear one
chain     two questions, the second hangs on the finding of the first
join      two questions apart from each other, whose findings are then joined
nobody    one question of a topic that nobody knows: the right answer is a refusal
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias, get_args

from bench.agents.ground import Ground
from orchestrator.engine.events import TaskRef
from podium_lessons.agents.cases import Book, Case
from podium_lessons.agents.experts import EVERYBODY, NOBODY
from podium_lessons.agents.topics import load_topics, split_questions
from trainer.tasks.task import Task
from trainer.tasks.verifier import RefusalVerifier

Kind: TypeAlias = Literal["route", "check", "chain", "join", "nobody"]
KINDS: tuple[Kind, ...] = get_args(Kind)
JOIN = "Join both findings"


@dataclass(frozen=True, slots=True)
class GroundTask:
    """A task: its cases, the last of which is the one that is to be answered. `topics` are those that it needs."""

    kind: Kind
    cases: tuple[Case, ...]

    @property
    def query(self) -> str:
        return "\n".join(case.text for case in self.cases)

    @property
    def topics(self) -> tuple[int, ...]:
        return tuple(case.topic for case in self.cases if case.topic != EVERYBODY)


def make_task(book: Book, task: GroundTask) -> Task:
    """The task as the product runs and grades it."""
    last = task.cases[-1]
    verifier = RefusalVerifier() if task.kind == "nobody" else book.make_verifier(last)
    return Task(TaskRef(f"ground_{task.kind}", 0, "test", last.number), task.query, verifier)


def draw_tasks(ground: Ground, book: Book, kind: Kind, amount: int) -> list[GroundTask]:
    """So many tasks of a kind, drawn by the book's seed; their cases are added to the book."""
    random = Random(f"{book.seed}/{kind}")
    return [GroundTask(kind, tuple(_draw_cases(ground, book, kind, random))) for _ in range(amount)]


def _draw_cases(ground: Ground, book: Book, kind: Kind, random: Random) -> list[Case]:
    if kind == "nobody":
        unknown = [topic for topic in load_topics() if topic not in ground.topics]
        return [book.add(random.choice(random.choice(unknown).questions), NOBODY)]
    first, second = random.sample(range(len(ground.topics)), 2)
    cases = [_ask(ground, book, first, random)]
    if kind == "chain":
        cases.append(_ask(ground, book, second, random, [cases[0].number]))
    if kind == "join":
        cases.append(_ask(ground, book, second, random))
        cases.append(book.add(JOIN, EVERYBODY, [case.number for case in cases]))
    return cases


def _ask(ground: Ground, book: Book, topic: int, random: Random, given: Sequence[int] = ()) -> Case:
    return book.add(random.choice(split_questions(ground.topics[topic])[1]), topic, given)
