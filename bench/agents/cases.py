"""The tasks of the proving ground, made of cases: questions with a number, whose right findings only the seed knows.

route     one question: who knows this?
check     one question, of a pool with cheap experts that may agree, and a dear one
chain     two questions, the second hangs on the finding of the first
join      two questions apart from each other, whose findings are then joined
nobody    one question of a topic that nobody knows: the right answer is a refusal
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal, TypeAlias, get_args

from bench.agents.ground import EVERYBODY, NOBODY, Ground, split_questions
from orchestrator.engine.events import TaskRef
from podium_lessons.agents.topics import load_topics
from trainer.tasks.task import Task
from trainer.tasks.verifier import ExactText, RefusalVerifier

Kind: TypeAlias = Literal["route", "check", "chain", "join", "nobody"]
KINDS: tuple[Kind, ...] = get_args(Kind)
KEY_WORD_CHARS = 4  # shorter words say little: "the", "my"
JOIN = "Join both findings"


@dataclass(frozen=True, slots=True)
class Case:
    """A question with its number. `given` are the cases whose findings it hangs on."""

    number: int
    question: str
    topic: int
    given: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The case as a query or an instruction words it."""
        given = " and ".join(f"case {number}" for number in self.given)
        return f"{self.question} (case {self.number}{f', given the finding of {given}' if given else ''})"

    @property
    def key_words(self) -> frozenset[str]:
        """What must be read to know the question."""
        return read_words(self.question)


def read_words(text: str) -> frozenset[str]:
    """The words of a text that say something."""
    return frozenset(word for word in re.findall(r"\w+", text.lower()) if len(word) >= KEY_WORD_CHARS)


def write_finding(number: int, token: str) -> str:
    """How an expert says what it has found."""
    return f"The finding of case {number}: {token}"


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


@dataclass
class Book:
    """The cases by number, and their right findings, which only the seed knows."""

    seed: int
    cases: dict[int, Case] = field(default_factory=dict)

    def add(self, question: str, topic: int, given: Sequence[int] = ()) -> Case:
        """A new case with the next number."""
        case = Case(len(self.cases) + 1, question, topic, tuple(given))
        self.cases[case.number] = case
        return case

    def write_token(self, case: Case, given: Sequence[str], error: int = 0) -> str:
        """The finding of a case after these findings: the right one, or one of the errors that can be made."""
        return hashlib.sha256(f"{self.seed}/{case.number}/{','.join(given)}/{error}".encode()).hexdigest()[:8]

    def find_right_token(self, case: Case) -> str:
        """The right finding, after right ones."""
        return self.write_token(case, [self.find_right_token(self.cases[number]) for number in case.given])

    def make_task(self, task: GroundTask) -> Task:
        """The task as the product runs and grades it."""
        last = task.cases[-1]
        right = RefusalVerifier() if task.kind == "nobody" else ExactText(self._write_answer(last))
        return Task(TaskRef(f"ground_{task.kind}", 0, "test", last.number), task.query, right)

    def _write_answer(self, case: Case) -> str:
        return write_finding(case.number, self.find_right_token(case))


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
