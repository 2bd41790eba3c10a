"""The task source `everyday`: plain questions, four in a row on one pool; `everyday:sums` and the like, of one subject;
and `everyday:held_out`, written by hand.

Half of the pools are a part of the starter pool, the others have tools of another cut for the same work. Everything
follows from the split, the seed and the group's number. Training and validation share wordings, but no query.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count as count_up

from orchestrator.engine.events import TaskRef
from orchestrator.plan import Turn
from orchestrator.reader.refusal import refuse
from podium_lessons.everyday.asks import expand, list_ways, make_turn
from podium_lessons.everyday.everyday_data import choose_texts, load_refusals, load_tools
from podium_lessons.everyday.held_out import HeldOutSource
from podium_lessons.everyday.pools import (
    EverydayPool,
    draw_other_works,
    list_starter_works,
    make_other_pool,
    make_starter_part,
)
from podium_lessons.everyday.questions.countries import list_countries
from podium_lessons.everyday.questions.draw_question import SUBJECTS, draw_question
from podium_lessons.everyday.questions.places import list_cities_by_name
from podium_lessons.everyday.questions.question import EverydayQuestion
from podium_lessons.everyday.solve_asks import make_verifier, try_solve
from podium_lessons.everyday.style import write_query
from podium_lessons.wordings import expand_choices
from trainer.errors import UnknownTask
from trainer.tasks.sources.source import TaskSource, check_levels, check_split
from trainer.tasks.suite import assign_split, make_random
from trainer.tasks.task import Task
from trainer.tasks.verifier import RefusalVerifier

FAMILY = "everyday"
HELD_OUT = "held_out"
VERSION = 10
GROUP = 4  # tasks that share a pool
LEVELS = (1, 2, 3)  # one step, two steps, more
REFUSED_SHARE = 0.1
MAX_DRAWS = 400
# Work that nothing else in an ordinary pool can stand in for: without it the right answer is a refusal.
IRREPLACEABLE = frozenset(
    {"distance", "local_time", "arrival", "molar_mass", "select", "rate", "airport_fact", "business_days",
     "edge_business_day", "next_business_day", "is_holiday", "next_holiday", "country_fact", "find_passage",
     "capital", "population", "area"}
)  # fmt: skip


class EverydaySource:
    """Everyday tasks, of one subject or of all."""

    levels = LEVELS

    def __init__(self, subject: str = "") -> None:
        self.name = f"{FAMILY}:{subject}" if subject else FAMILY
        self._subject = subject

    def tasks(self, split: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
        """`count` tasks, four in a row on one pool. Raises UnknownTask."""
        check_split(split)
        chosen = check_levels(levels, LEVELS)
        tasks: list[Task] = []
        for group in count_up():
            if len(tasks) >= count:
                return tasks[:count]
            tasks += _Group(self.name, self._subject, split, seed, group, chosen).tasks()
        raise AssertionError("count_up never ends")


def open_everyday(argument: str = "") -> TaskSource:
    """The source that a recipe names. Raises UnknownTask."""
    if argument == HELD_OUT:
        return HeldOutSource()
    if argument and argument not in SUBJECTS:
        names = ", ".join(f"{FAMILY}:{name}" for name in (*SUBJECTS, HELD_OUT))
        raise UnknownTask(f"there is no {FAMILY}:{argument}; use {FAMILY}, or one of {names}")
    return EverydaySource(argument)


class _Group:
    """Tasks that share a pool."""

    def __init__(self, family: str, subject: str, split: str, seed: int, number: int, levels: tuple[int, ...]) -> None:
        self._family = family
        self._subject = subject
        self._split = split
        self._levels = levels
        self._first = (seed * 1_000_003 + number) * GROUP % 2**40
        self._random = make_random(f"{VERSION}/{family}/{split}/{seed}/{levels}/{number}")
        self._on_starter = self._random.random() < 0.5
        self._possible = list_starter_works() if self._on_starter else draw_other_works(self._random)

    def tasks(self) -> list[Task]:
        """The tasks of the group; the pool is made for the questions that it is to answer."""
        random = self._random
        refused = [random.random() < REFUSED_SHARE and 1 in self._levels for _ in range(GROUP)]
        questions = [None if no else self._draw_question() for no in refused]
        works = list(dict.fromkeys(work for question in questions if question for work in self._list_works(question)))
        missing_question, missing = self._draw_missing(works) if any(refused) else (None, frozenset[str]())
        pool = self._make_pool(works, missing)
        tasks = []
        for place, question in enumerate(questions):
            if question is not None:
                tasks.append(self._make_task(place, question, pool))
            elif missing_question is not None:
                tasks.append(self._make_refusal(place, *missing_question, pool))
                missing_question = None
            else:
                tasks.append(self._make_refusal(place, *self._draw_refusal(), pool))
        return tasks

    def _make_pool(self, works: Sequence[str], missing: frozenset[str]) -> EverydayPool:
        if self._on_starter:
            return make_starter_part(works, missing, self._random)
        return make_other_pool(works, self._possible, missing, self._split, self._random, f"everyday-{self._first}")

    def _draw_question(self) -> EverydayQuestion:
        """A question that a pool with these possibilities answers, of one of the levels. Raises UnknownTask."""
        for _ in range(MAX_DRAWS):
            question = draw_question(self._split, self._random, self._subject)
            calls = expand(question.asks, self._possible)
            has_level = calls is not None and min(len(calls), LEVELS[-1]) in self._levels
            if has_level and try_solve(question.asks) is not None and self._belongs_here(question):
                return question
        raise UnknownTask(f"{self._family} has no questions of level {', '.join(map(str, self._levels))}")

    def _belongs_here(self, question: EverydayQuestion) -> bool:
        """Whether a query is of this split, so that none is of two."""
        if self._split == "test":
            return True
        place = assign_split(question.text.format(**question.gaps).casefold())
        return (place == "validation") == (self._split == "validation")

    def _list_works(self, question: EverydayQuestion) -> list[str]:
        calls = expand(question.asks, self._possible)
        assert calls is not None, "the question was drawn for these possibilities"
        return [call.work for call in calls]

    def _draw_missing(self, works: Sequence[str]) -> tuple[tuple[str, str] | None, frozenset[str]]:
        """A question (its query and its need) for a tool that the pool is not to have; every second time none."""
        if self._random.random() < 0.5:
            return None, frozenset()
        question = self._draw_question()
        missing = frozenset(call.work for ask in question.asks for way in list_ways(ask) for call in way)
        alike = missing | frozenset(_ALIKE.get(work, "") for work in missing)
        gone = {work for work in alike if work in IRREPLACEABLE}
        if self._on_starter:
            gone_workers = {_starter_worker(work) for work in gone}
            clash = gone_workers & {_starter_worker(work) for work in works}
        else:
            clash = gone & set(works)
        if not gone or clash or len(question.asks) > 1:
            return None, frozenset()
        query = write_query(question, self._random)
        return (query, _need_of(question.asks[0].work)), frozenset(gone)

    def _draw_refusal(self) -> tuple[str, str]:
        """A query that no ordinary pool can answer, and what it needs."""
        for _ in range(MAX_DRAWS):
            bank = self._random.choice(load_refusals().refusals)
            text = self._random.choice(expand_choices(self._random.choice(choose_texts(bank.texts, self._split))))
            gaps = {
                "city": self._random.choice(list_cities_by_name()),
                "country": self._random.choice(list_countries("area")),
            }
            question = EverydayQuestion(text, gaps, (), True)
            if self._belongs_here(question):
                return write_query(question, self._random), bank.need
        raise AssertionError(f"{MAX_DRAWS} draws without a question to refuse")

    def _make_task(self, place: int, question: EverydayQuestion, pool: EverydayPool) -> Task:
        calls = expand(question.asks, pool.uses.keys())
        assert calls is not None, "the pool was made for the question"
        value = try_solve(question.asks)
        return Task(
            TaskRef(self._family, min(len(calls), LEVELS[-1]), self._split, self._first + place, VERSION),
            write_query(question, self._random),
            make_verifier(value),
            make_turn(calls, pool.uses),
            pool.pool,
        )

    def _make_refusal(self, place: int, query: str, need: str, pool: EverydayPool) -> Task:
        ref = TaskRef(self._family, 1, self._split, self._first + place, VERSION)
        return Task(ref, query, RefusalVerifier(), Turn(answer=refuse(need)), pool.pool)


_ALIKE = {"distance": "distance_miles", "distance_miles": "distance", "select": "revenue", "revenue": "select"}


def _starter_worker(work: str) -> str:
    starter = load_tools()[work].starter
    return starter.worker if starter is not None else ""


def _need_of(work: str) -> str:
    return load_tools()[work].need
