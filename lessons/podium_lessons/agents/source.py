"""The task source `agents`: questions to simulated agents, four tasks to a pool. Its agents are labelled simulated.

A reader learns here what a need for an agent is (the question itself), what to write to it (what the query says of the
question, with its number), whose findings it must see, and that an agent without a field may be asked anything.
"""

from __future__ import annotations

from itertools import count as count_up

from orchestrator.engine.events import TaskRef
from orchestrator.plan import Step, Turn
from orchestrator.reader.needs import quote_question
from orchestrator.reader.refusal import refuse
from podium_lessons.agents.cases import Case
from podium_lessons.agents.lesson import LEVELS, TASKS, VERSION, Lesson, LessonTask, draw_lesson
from podium_lessons.everyday.everyday_data import load_tools
from podium_lessons.everyday.pools import make_other_pool
from pool_registry.actions import JsonValue
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.errors import UnknownTask
from trainer.tasks.sources.source import check_levels, check_split
from trainer.tasks.suite import make_random
from trainer.tasks.task import Task
from trainer.tasks.verifier import RefusalVerifier

FAMILY = "agents"
TOOLS_SHARE = 0.4  # of the pools have tools beside the agents
CENT = 0.01  # US dollars
EXAMPLES = ("", "Say hello in one word.", "Write a haiku on snow.")  # instructions on cards


class AgentsSource:
    """Questions to pools of simulated agents."""

    name = FAMILY
    levels = tuple(LEVELS)

    def tasks(self, split: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
        """`count` tasks, four in a row on one pool. Raises UnknownTask."""
        chosen = check_levels(levels, self.levels)
        check_split(split)
        tasks: list[Task] = []
        for place in count_up():
            if len(tasks) >= count:
                return tasks[:count]
            tasks += make_tasks(split, (seed * 1_000_003 + place) % 2**38, chosen)
        raise AssertionError("count_up never ends")


def open_agents(argument: str = "") -> AgentsSource:
    """The source that a recipe names. Raises UnknownTask."""
    if argument:
        raise UnknownTask(f"there is no {FAMILY}:{argument}; use {FAMILY}")
    return AgentsSource()


def make_tasks(split: str, number: int, levels: tuple[int, ...]) -> list[Task]:
    """The tasks of a lesson, with their pool."""
    lesson = draw_lesson(split, number, levels)
    pool = _make_pool(lesson, split, number, levels)
    return [
        Task(
            TaskRef(FAMILY, _find_level(task), split, number * TASKS + place, VERSION),
            task.text,
            RefusalVerifier() if task.unknown else lesson.book.make_verifier(task.cases[-1]),
            Turn(answer=refuse(quote_question(task.text))) if task.unknown else _write_plan(lesson, task),
            pool,
        )
        for place, task in enumerate(lesson.tasks)
    ]


def _find_level(task: LessonTask) -> int:
    return {1: 1, 2: 2}.get(len(task.cases), 3)


def _write_plan(lesson: Lesson, task: LessonTask) -> Turn:
    """A step for each case, for an agent that knows it, which sees the steps whose findings it hangs on."""
    places = {case.number: place for place, case in enumerate(task.cases, start=1)}

    def write_step(case: Case) -> Step:
        access = tuple(places[number] for number in case.given)
        worker = lesson.find_knowing(case).name
        return Step(places[case.number], worker, {"instruction": case.text}, access, need=quote_question(case.question))

    return Turn(tuple(map(write_step, task.cases)), f"${len(task.cases)}")


def _make_pool(lesson: Lesson, split: str, number: int, levels: tuple[int, ...]) -> Pool:
    random = make_random(f"{FAMILY}/pool/{split}/{number}/{levels}")
    example = random.choice(EXAMPLES)
    shared: dict[str, JsonValue] = {"split": split, "number": number, "levels": list(levels), "example": example}
    agents = [
        WorkerSpec(
            name=expert.name,
            kind="lesson_agent",
            description=card,
            config={**shared, "place": place},
            price_call=round(expert.price * CENT, 6),
        )
        for place, (expert, card) in enumerate(zip(lesson.experts, lesson.cards, strict=True))
    ]
    tools: list[WorkerSpec] = []
    if random.random() < TOOLS_SHARE:
        others = make_other_pool([], sorted(load_tools()), (), split, random, FAMILY)
        tools = [spec for spec in others.pool.workers if spec.name not in {agent.name for agent in agents}]
    workers = [*agents, *tools]
    random.shuffle(workers)
    return Pool(name=f"{FAMILY}-{number}", workers=tuple(workers))
