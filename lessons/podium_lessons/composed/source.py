"""The task source `composed`: questions composed of look-ups, hops, calculations and sums, four tasks to a pool.

Functions take one thing or several arguments and give values, objects or lists of objects. Everything follows from the
split, the seed and the group's number. The test split has domains and texts of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count as count_up
from random import Random

from orchestrator.engine.events import TaskRef
from orchestrator.plan import Turn
from orchestrator.reader.refusal import refuse
from podium_lessons.composed.domain import is_held_out, list_domains, load_domain
from podium_lessons.composed.drawer import Draft, NoQuestion, QuestionDrawer
from podium_lessons.composed.functions import FunctionCutter
from podium_lessons.composed.questions import KINDS
from podium_lessons.composed.texts import choose, load_works
from podium_lessons.everyday.pools import draw_work
from podium_lessons.everyday.questions.question import EverydayQuestion
from podium_lessons.everyday.solve_asks import make_verifier
from podium_lessons.everyday.step_writer import Function
from podium_lessons.everyday.style import write_query
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.errors import UnknownTask
from trainer.tasks.sources.source import check_levels, check_split
from trainer.tasks.suite import assign_split, make_random
from trainer.tasks.task import Task
from trainer.tasks.verifier import AnyVerifier, RefusalVerifier, StatesAll

FAMILY = "composed"
VERSION = 1
GROUP = 4  # tasks that share a pool
LEVELS = (1, 2, 3)  # one step, two, more
SEEDS = 2**26  # of the values of a domain
MAX_STEPS = 6
MAX_DRAWS = 600
REFUSED_SHARE = 0.1
BEYOND_SHARE = 0.6  # of refusals: what no function of the domain does; the others lack a function
FOREIGN_SHARE = 0.4  # of the pools have functions of another domain
SUM_STYLES = (("evaluate",), ("add", "subtract", "multiply", "divide"), ("arithmetic",))
SUM_WEIGHTS = (50, 35, 15)
MEAN_SHARE = 0.5  # of the pools can average a list
WORKS = ("larger", "smaller", "days_between", "add_days", "convert", "count", "sum", "largest", "smallest",
         "name_of_largest", "name_of_smallest")  # fmt: skip
# By level: (kind of question, how often).
WEIGHTS: Mapping[int, Mapping[str, int]] = {
    1: {"value": 5, "calculation": 4, "fields": 2, "group": 2},
    2: {"chain": 4, "number": 4, "two": 3, "group": 5, "fields": 1, "later": 1, "days": 1, "convert": 1,
        "calculation_chain": 2},
    3: {"pair": 6, "larger": 3, "chain": 3, "number": 2, "two": 2, "three": 2, "days": 2, "group": 2,
        "calculation_chain": 1},
}  # fmt: skip


class ComposedSource:
    """Composed questions."""

    name = FAMILY
    levels = LEVELS

    def tasks(self, split: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
        """`count` tasks, four in a row on one pool. Raises UnknownTask."""
        check_split(split)
        chosen = check_levels(levels, LEVELS)
        tasks: list[Task] = []
        for group in count_up():
            if len(tasks) >= count:
                return tasks[:count]
            tasks += _Group(split, (seed * 1_000_003 + group) % 2**38, chosen).write_tasks()
        raise AssertionError("count_up never ends")


def open_composed(argument: str = "") -> ComposedSource:
    """The source that a recipe names. Raises UnknownTask."""
    if argument:
        raise UnknownTask(f"there is no {FAMILY}:{argument}; use {FAMILY}")
    return ComposedSource()


@cache
def list_split(split: str) -> tuple[str, ...]:
    """The domains that a split draws from. Training and validation share theirs."""
    return tuple(name for name in list_domains() if is_held_out(name) == (split == "test"))


@dataclass(frozen=True, slots=True)
class _Question:
    """A question with its query. Of one to refuse: the function that its pool is to lack, and what it needs."""

    query: str
    draft: Draft | None
    level: int = 1
    lacks: str = ""
    need: str = ""

    @property
    def workers(self) -> set[str]:
        return {step.worker for step in self.draft.plan.steps} if self.draft and not self.need else set()


class _Group:
    """Tasks that share a domain and a pool."""

    def __init__(self, split: str, number: int, levels: tuple[int, ...]) -> None:
        self._split, self._number, self._levels = split, number, levels
        self._random = random = make_random(f"{FAMILY}/{VERSION}/{split}/{number}/{levels}")
        self._domain = load_domain(random.choice(list_split(split)))
        self._cut = FunctionCutter(self._domain, random.randrange(SEEDS), split, random).cut()
        names = [function.spec.name for function in self._cut]
        self._works, self._work_specs = draw_works(names, split, random)
        self._drawer = QuestionDrawer(self._domain, self._cut, self._works, split, random)

    def write_tasks(self) -> list[Task]:
        """The tasks, with their pool."""
        refused = [1 in self._levels and self._random.random() < REFUSED_SHARE for _ in range(GROUP)]
        answered = [None if no else self._draw_question(self._random.choice(self._levels)) for no in refused]
        needed = {name for question in answered if question for name in question.workers}
        questions = [question or self._draw_refusal(needed) for question in answered]
        pool = self._make_pool(needed, {question.lacks for question in questions})
        return [self._write_task(place, question, pool) for place, question in enumerate(questions)]

    def _draw_question(self, level: int) -> _Question:
        weights = WEIGHTS[level]
        for _ in range(MAX_DRAWS):
            try:
                kind = self._random.choices(list(weights), list(weights.values()))[0]
                draft = self._drawer.draw(KINDS[kind])
            except (NoQuestion, BadCall, WorkerFault):
                continue
            steps = len(draft.plan.steps)
            query = self._write(draft)
            if min(steps, LEVELS[-1]) == level and steps <= MAX_STEPS and self._belongs_here(query):
                return _Question(query, draft, level)
        raise UnknownTask(f"{self._domain.name} has no questions of level {level}")

    def _write(self, draft: Draft) -> str:
        text = draft.text[:1].upper() + draft.text[1:] if self._random.random() < 0.6 else draft.text
        return write_query(EverydayQuestion(text, draft.gaps, (), True), self._random)

    def _belongs_here(self, query: str) -> bool:
        """Whether a query is of this split, so that none is of two."""
        return self._split == "test" or (assign_split(query.casefold()) == "validation") == (
            self._split == "validation"
        )

    def _draw_refusal(self, needed: Collection[str]) -> _Question:
        """A question that the pool cannot answer."""
        for _ in range(MAX_DRAWS):
            if self._random.random() < BEYOND_SHARE:
                beyond = self._random.choice(self._domain.beyond)
                text = choose(beyond.texts, self._split, self._random)
                gaps = {
                    kind: self._random.choice(thing.names)
                    for kind, thing in self._domain.things.items()
                    if f"{{{kind}}}" in text
                }
                query = write_query(EverydayQuestion(text, gaps, (), True), self._random)
                if self._belongs_here(query):
                    return _Question(query, None, need=beyond.need)
                continue
            question = self._draw_question(1)
            assert question.draft is not None, "it has an answer"
            step = question.draft.plan.steps[0]
            if step.worker not in needed:
                return _Question(question.query, question.draft, lacks=step.worker, need=step.need)
        raise AssertionError(f"{MAX_DRAWS} draws without a query to refuse")

    def _make_pool(self, needed: Collection[str], lacking: Collection[str]) -> Pool:
        """A pool of what the questions need and any number of other functions."""
        random = self._random
        own = [function.spec for function in self._cut]
        specs = [spec for spec in (*own, *self._work_specs) if spec.name in needed]
        others = [spec for spec in own if spec.name not in needed and spec.name not in lacking]
        specs += random.sample(others, random.randint(0, len(others)))
        works = [spec for spec in self._work_specs if spec.name not in needed]
        specs += random.sample(works, random.randint(0, min(4, len(works))))
        specs += self._draw_foreign({spec.name for spec in specs} | set(lacking))
        random.shuffle(specs)
        return Pool(name=f"{FAMILY}-{self._number}", workers=tuple(specs))

    def _draw_foreign(self, taken: Collection[str]) -> Sequence[WorkerSpec]:
        """Now and then some functions of another domain."""
        others = [name for name in list_split(self._split) if name != self._domain.name]
        if not others or self._random.random() > FOREIGN_SHARE:
            return ()
        other = load_domain(self._random.choice(others))
        functions = FunctionCutter(other, self._random.randrange(SEEDS), self._split, self._random).cut()
        specs = [function.spec for function in functions if function.spec.name not in taken]
        return self._random.sample(specs, min(len(specs), self._random.randint(1, 4)))

    def _write_task(self, place: int, question: _Question, pool: Pool) -> Task:
        ref = TaskRef(FAMILY, question.level, self._split, self._number * GROUP + place, VERSION)
        if question.need:
            return Task(ref, question.query, RefusalVerifier(), Turn(answer=refuse(question.need)), pool)
        assert question.draft is not None, "it has an answer"
        plan, answer = question.draft.plan, question.draft.answer
        return Task(ref, question.query, _grade(question.draft), Turn(tuple(plan.steps), answer), pool)


def _grade(draft: Draft) -> AnyVerifier:
    """What grades the answer: several values, or the items of a list, are all to be named."""
    values = [draft.plan.read(quote) for quote in draft.answer.split(" and ")]
    if len(values) == 1 and not isinstance(values[0], list):
        return make_verifier(values[0])
    parts = [value if isinstance(value, list) else [value] for value in values]
    return StatesAll(tuple(item for part in parts for item in part))


def draw_works(taken: Collection[str], split: str, random: Random) -> tuple[dict[str, Function], list[WorkerSpec]]:
    """The functions that put values together, by work, with their workers."""
    sums = random.choices(SUM_STYLES, SUM_WEIGHTS)[0]
    works = [*sums, *WORKS, *(["mean"] if random.random() < MEAN_SHARE else [])]
    functions: dict[str, Function] = {}
    specs: list[WorkerSpec] = []
    for work in works:
        spec, functions[work] = draw_work(load_works()[work], [*taken, *(spec.name for spec in specs)], split, random)
        specs.append(spec)
    return functions, specs
