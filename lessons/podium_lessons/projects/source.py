"""The task source `projects`: what people ask of a handful of functions of their own, four tasks to a pool.

Each group of tasks has a project with figures of its own, and a pool of the functions that its questions need among
others. Everything follows from the split, the seed and the group's number. Training and validation share wordings, but
no query.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from itertools import count as count_up

from orchestrator.engine.events import TaskRef
from orchestrator.plan import Turn
from orchestrator.quotes import renumber_quotes
from orchestrator.reader.refusal import refuse
from podium_lessons.everyday.everyday_data import ToolBank, ToolData, choose_texts, load_tools
from podium_lessons.everyday.pools import draw_work
from podium_lessons.everyday.questions.question import EverydayQuestion
from podium_lessons.everyday.solve_asks import make_verifier
from podium_lessons.everyday.step_writer import Function
from podium_lessons.everyday.style import write_query
from podium_lessons.lesson_data import load_lesson_data
from podium_lessons.projects.calls import LookUp
from podium_lessons.projects.project_data import (
    FunctionData,
    ProjectData,
    QuestionData,
    kind_of_gap,
    list_projects,
    load_project,
)
from podium_lessons.projects.write_plan import PlanWriter, list_works
from podium_lessons.wordings import expand_choices
from pool_registry.actions import JsonValue, as_text
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.errors import UnknownTask
from trainer.tasks.sources.source import check_levels, check_split
from trainer.tasks.suite import assign_split, make_random
from trainer.tasks.task import Task
from trainer.tasks.verifier import AnyVerifier, RefusalVerifier, StatesAll

FAMILY = "projects"
HELD_OUT = "held_out"
VERSION = 1
GROUP = 4  # tasks that share a pool
LEVELS = (1, 2, 3)  # one step, two steps, more
SEEDS = 2**26  # of projects
REFUSED_SHARE = 0.08
BEYOND_SHARE = 0.6  # of refusals: what no function of the project does; the others lack a function
MAX_DRAWS = 400
SUM_STYLES = (("evaluate",), ("add", "subtract", "multiply", "divide"), ("arithmetic",))
SUM_WEIGHTS = (35, 45, 20)
OTHER_WORKS = ("days_between", "add_days", "larger", "convert", "percent_of", "mean")
HINTS = ("", "", "", "name of the {kind}", "the {kind}", "{kind}, for example {thing}")
_GAP = re.compile(r"\{(\w+)\}")
_QUOTE = re.compile(r"\$(\d+)")


class ProjectSource:
    """Tasks on projects."""

    name = FAMILY
    levels = LEVELS

    def __init__(self, projects: Sequence[str], name: str = FAMILY) -> None:
        self.name = name
        self.projects = tuple(projects)

    def tasks(self, split: str, count: int, seed: int = 0, levels: tuple[int, ...] | None = None) -> list[Task]:
        """`count` tasks, four in a row on one pool. Raises UnknownTask."""
        check_split(split)
        chosen = check_levels(levels, LEVELS)
        tasks: list[Task] = []
        for group in count_up():
            if len(tasks) >= count:
                return tasks[:count]
            tasks += _Group(self.name, self.projects, split, seed, group, chosen).tasks()
        raise AssertionError("count_up never ends")


def open_projects(argument: str = "") -> ProjectSource:
    """The source that a recipe names: all projects to learn from, those named, or `held_out`. Raises UnknownTask."""
    there = list_projects()
    learnt = [name for name in there if not load_project(name).held_out]
    if argument == HELD_OUT:
        return ProjectSource([name for name in there if name not in learnt], f"{FAMILY}:{HELD_OUT}")
    chosen = [part.strip() for part in argument.split(",") if part.strip()] or learnt
    unknown = next((name for name in chosen if name not in learnt), None)
    if unknown is not None:
        raise UnknownTask(
            f"there is no project {unknown!r} to learn from; use {HELD_OUT} or some of: {', '.join(learnt)}"
        )
    return ProjectSource(chosen, f"{FAMILY}:{argument}" if argument else FAMILY)


@dataclass(frozen=True, slots=True)
class _Question:
    """A question with its gaps filled."""

    data: QuestionData
    text: EverydayQuestion

    @property
    def functions(self) -> list[str]:
        return [call.tool for call in self.data.calls if isinstance(call, LookUp)]


class _Group:
    """Tasks that share a project and a pool."""

    def __init__(
        self, family: str, projects: Sequence[str], split: str, seed: int, number: int, levels: tuple[int, ...]
    ) -> None:
        self._family = family
        self._split = split
        self._levels = levels
        self._first = (seed * 1_000_003 + number) * GROUP % 2**40
        self._random = make_random(f"{VERSION}/{family}/{split}/{seed}/{levels}/{number}")
        self._project = load_project(self._random.choice(tuple(projects)))
        self._names = frozenset(tool.name for tool in self._project.tools)
        self._others = [name for name in projects if name != self._project.name]
        self._seed = self._random.randrange(SEEDS)
        self._sums = self._random.choices(SUM_STYLES, SUM_WEIGHTS)[0]

    def tasks(self) -> list[Task]:
        """The tasks of the group; the pool is made for the questions that it is to answer."""
        random = self._random
        refused = [random.random() < REFUSED_SHARE and 1 in self._levels for _ in range(GROUP)]
        questions = [None if no else self._draw_question() for no in refused]
        answered = [question for question in questions if question is not None]
        refusals = [self._draw_refusal(answered) for no in refused if no]
        pool, functions = self._make_pool(answered, {name for _, name, _ in refusals if name})
        tasks = []
        for place, question in enumerate(questions):
            if question is not None:
                tasks.append(self._make_task(place, question, pool, functions))
            else:
                text, _, need = refusals.pop()
                ref = TaskRef(self._family, 1, self._split, self._first + place, VERSION)
                query = write_query(text, random)
                tasks.append(Task(ref, query, RefusalVerifier(), Turn(answer=refuse(need)), pool))
        return tasks

    def _draw_question(self) -> _Question:
        """A question of one of the levels that has an answer. Raises UnknownTask."""
        works = {work: Function(work, _Same(), "") for work in (*self._sums, *OTHER_WORKS)}
        functions = works | {tool.name: Function(tool.name, _Same(), "") for tool in self._project.tools}
        for _ in range(MAX_DRAWS):
            data = self._random.choice(self._project.questions)
            text = self._random.choice(choose_texts(data.texts, self._split))
            question = _Question(data, self._fill(text, data))
            solved = self._solve(question, functions)
            if solved is None or min(len(solved[0].steps), LEVELS[-1]) not in self._levels:
                continue
            if self._belongs_here(question.text):
                return question
        raise UnknownTask(f"{self._family} has no questions of level {', '.join(map(str, self._levels))}")

    def _fill(self, text: str, data: QuestionData | None = None) -> EverydayQuestion:
        """The text with something for each of its gaps; two gaps of a kind get two things."""
        random = self._random
        gaps: dict[str, str] = {}
        for gap in dict.fromkeys(_GAP.findall(text)):
            if data is not None and gap in data.numbers:
                low, high, *decimals = data.numbers[gap]
                number = round(random.uniform(low, high), int(decimals[0]) if decimals else 0)
                gaps[gap] = str(int(number) if number.is_integer() else number)
            elif data is not None and gap in data.dates:
                first, last = (date(year, 1, 1) for year in (data.dates[gap][0], data.dates[gap][1] + 1))
                gaps[gap] = (first + timedelta(days=random.randrange((last - first).days))).isoformat()
            else:
                things = self._project.things[kind_of_gap(gap)]
                gaps[gap] = random.choice([thing for thing in things if thing not in gaps.values()])
        wording = random.choice(expand_choices(text))
        return EverydayQuestion(wording[:1].upper() + wording[1:] if random.random() < 0.5 else wording, gaps, (), True)

    def _solve(self, question: _Question, functions: Mapping[str, Function]) -> tuple[Turn, AnyVerifier] | None:
        """The plan and what grades its answer; None where a figure is negative, a comparison is a tie, or there is no
        result."""
        writer = PlanWriter(functions, project=self._project.name, seed=self._seed, gaps=question.text.gaps)
        try:
            places = writer.write(question.data.calls)
        except (BadCall, WorkerFault):
            return None
        values = writer.values
        looked_up = {function.worker for name, function in functions.items() if name in self._names}
        computed = [values[step.id] for step in writer.steps if step.worker not in looked_up]
        if any(isinstance(value, int | float) and value < 0 for value in computed) or _is_tie(writer):
            return None
        template = question.data.answer or f"${len(question.data.calls)}"
        answer = renumber_quotes(template, places)
        quoted = [values[int(number)] for number in _QUOTE.findall(as_text(answer))]
        verifier: AnyVerifier = StatesAll(tuple(quoted)) if question.data.answer else make_verifier(quoted[0])
        return Turn(tuple(writer.steps), answer), verifier

    def _belongs_here(self, text: EverydayQuestion) -> bool:
        """Whether a query is of this split, so that none is of two."""
        if self._split == "test":
            return True
        place = assign_split(text.text.format(**text.gaps).casefold())
        return (place == "validation") == (self._split == "validation")

    def _draw_refusal(self, answered: Sequence[_Question]) -> tuple[EverydayQuestion, str, str]:
        """A query that the pool cannot answer, the function that it is not to have, and what the query needs."""
        needed = {name for question in answered for name in question.functions}
        for _ in range(MAX_DRAWS):
            if self._random.random() < BEYOND_SHARE:
                beyond = self._random.choice(self._project.beyond)
                text, missing, need = self._fill(self._random.choice(beyond.texts)), "", beyond.need
            else:
                question = self._draw_question()
                missing = question.functions[0] if question.functions else ""
                if not missing or missing in needed:
                    continue
                text, need = question.text, self._random.choice(self._project.tool(missing).needs)
            if self._belongs_here(text):
                return text, missing, need
        raise AssertionError(f"{MAX_DRAWS} draws without a query to refuse")

    def _make_pool(self, answered: Sequence[_Question], missing: Collection[str]) -> tuple[Pool, dict[str, Function]]:
        """A pool for the questions, with others of the project's functions, and the functions by what they do."""
        random = self._random
        needed = list(dict.fromkeys(name for question in answered for name in question.functions))
        there = [tool.name for tool in self._project.tools if tool.name not in {*needed, *missing}]
        works = list(
            dict.fromkeys(work for question in answered for work in list_works(question.data.calls, self._sums))
        )
        works += random.sample(
            [work for work in (*self._sums, *OTHER_WORKS) if work not in works], random.randint(0, 3)
        )
        functions: dict[str, Function] = {}
        specs: list[WorkerSpec] = []
        for name in [*needed, *random.sample(there, random.randint(0, len(there)))]:
            spec, functions[name] = self._draw_function(self._project, self._project.tool(name))
            specs.append(spec)
        for work in works:
            spec, functions[work] = draw_work(_load_works()[work], [spec.name for spec in specs], self._split, random)
            specs.append(spec)
        specs += self._draw_foreign([spec.name for spec in specs])
        random.shuffle(specs)
        return Pool(name=f"{FAMILY}-{self._first}", workers=tuple(specs)), functions

    def _draw_foreign(self, taken: Collection[str]) -> list[WorkerSpec]:
        """Now and then some functions of another project."""
        if not self._others or self._random.random() < 0.6:
            return []
        other = load_project(self._random.choice(self._others))
        tools = self._random.sample(other.tools, self._random.randint(1, 3))
        return [self._draw_function(other, tool)[0] for tool in tools if tool.name not in taken]

    def _draw_function(self, project: ProjectData, tool: FunctionData) -> tuple[WorkerSpec, Function]:
        random = self._random
        parameter = random.choice(tool.parameters)
        thing, other = random.sample(project.things[tool.takes], 2)
        hint = random.choice(HINTS).format(kind=tool.takes.replace("_", " "), thing=thing)
        config: dict[str, JsonValue] = {
            "project": project.name, "seed": self._seed, "function": tool.name, "parameter": parameter, "hint": hint,
            "example": other if random.random() < 0.4 else "",
        }  # fmt: skip
        description = random.choice(choose_texts(tool.descriptions, self._split))
        spec = WorkerSpec(name=tool.name, kind="project", description=description, config=config)
        return spec, Function(tool.name, {"thing": parameter}, random.choice(tool.needs))

    def _make_task(self, place: int, question: _Question, pool: Pool, functions: Mapping[str, Function]) -> Task:
        solved = self._solve(question, functions)
        assert solved is not None, "the question was drawn because it has an answer"
        turn, verifier = solved
        level = min(len(turn.steps), LEVELS[-1])
        ref = TaskRef(self._family, level, self._split, self._first + place, VERSION)
        return Task(ref, write_query(question.text, self._random), verifier, turn, pool)


class _Same(dict[str, str]):
    """Parameters that are called as the parts of a request are."""

    def __missing__(self, part: str) -> str:
        return part


def _is_tie(writer: PlanWriter) -> bool:
    """Whether a plan asks which of two equal numbers is the larger."""
    sides = [
        [
            writer.values.get(int(as_text(step.arguments[part]).lstrip("$")), step.arguments[part])
            for part in ("first", "second")
        ]
        for step in writer.steps
        if step.worker == "larger" and {"first", "second"} <= step.arguments.keys()
    ]
    return any(first == second for first, second in sides)


@cache
def _load_works() -> dict[str, ToolBank]:
    """The tools for everything but look-ups."""
    own = {tool.work: tool for tool in load_lesson_data("project_tools", ToolData).tools}
    return {work: own.get(work) or load_tools()[work] for work in ("evaluate", "arithmetic", *own, *OTHER_WORKS)}
