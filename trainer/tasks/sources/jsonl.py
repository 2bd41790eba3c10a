"""A person's own tasks: a JSONL file with one object per line, such as {"query": "What is 6 * 7?", "answer": 42}.

Nothing is lost: lines that are tasks load, and every other line is told with its number and what to change.
The format is the models of this file.
"""

from __future__ import annotations

import ast
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from orchestrator.dialects.plan_json import PlanDialect
from orchestrator.engine.events import TaskRef
from orchestrator.plan import Turn
from orchestrator.quotes import references
from orchestrator.reader.refusal import is_refusal
from pool_registry.actions import JsonValue, as_text, clean_text
from pool_registry.kinds import field_problems
from pool_registry.python_source import parse_module
from pool_registry.schemas.regex import pattern_problem
from pool_registry.worker import NAME_PATTERN
from trainer.errors import UnusableTasks
from trainer.tasks.sources.source import TaskList
from trainer.tasks.suite import assign_split
from trainer.tasks.task import Task, normalize_query
from trainer.tasks.verifier import (
    AnyVerifier,
    ExactText,
    JudgeCheck,
    MatchesPattern,
    NumberWithin,
    OneOf,
    PythonCheck,
    RefusalVerifier,
    SameSet,
    StatesAll,
    parse_whole_number,
)

log = logging.getLogger(__name__)
MAX_FILE_BYTES = 200_000_000
MAX_LINE_BYTES = 200_000
MAX_ROWS = 1_000_000  # of an iterable of another package
MAX_QUERY_CHARS = 50_000
TOLERANCE = 1e-6
DIGEST = 12  # letters of a digest


class _LineModel(BaseModel):
    """Unknown keys are errors: a misspelt one would change how answers are graded."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TextRule(_LineModel):
    """exact: the text. one_of: any text of a list. set: all of a list, in any order. states_all: a sentence with all of
    a list, in order. regex: `answer` is a pattern."""

    kind: Literal["exact", "one_of", "set", "states_all", "regex"]


class NumberRule(_LineModel):
    """The last number of the answer."""

    kind: Literal["number"]
    tolerance: float = Field(default=TOLERANCE, ge=0, allow_inf_nan=False)


class PythonRule(_LineModel):
    """A snippet that defines `check(answer, query)`."""

    kind: Literal["python"]
    code: str = Field(min_length=1, max_length=50_000)


class JudgeRule(_LineModel):
    """An agent of the pool compares with `answer`."""

    kind: Literal["judge"]
    worker: str = Field(pattern=NAME_PATTERN)


class RefusalRule(_LineModel):
    """Any answer that says that no worker can do this; it needs no `answer`."""

    kind: Literal["refusal"]


def _expand_rule(rule: object) -> object:
    return {"kind": rule} if isinstance(rule, str) else rule


VerifierRule = Annotated[TextRule | NumberRule | PythonRule | JudgeRule | RefusalRule, Field(discriminator="kind")]


class SourceRun(_LineModel):
    """The run that a task was made of: its id, who sent it, for what and when (UTC); `vouched` says what was said of
    its answer."""

    id: str = Field(max_length=100)
    user: str = Field(default="", max_length=200)
    source: str = Field(default="", max_length=40)
    started_at: str = Field(default="", max_length=40)
    vouched: str = Field(default="", max_length=200)


class WrittenTask(_LineModel):
    """One task. Without `verifier`, a number is compared as one and anything else as text."""

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARS)
    answer: JsonValue = None
    verifier: Annotated[VerifierRule | None, BeforeValidator(_expand_rule)] = None
    split: Literal["train", "validation", "test"] | None = None
    plan: dict[str, JsonValue] | None = None


class TaskLine(WrittenTask):
    """A task with where it comes from."""

    family: str | None = Field(default=None, min_length=1, max_length=100)
    workers: tuple[str, ...] | None = Field(
        default=None, description="Those of its pool that the task is run with, without the others."
    )
    made: str | None = Field(
        default=None, max_length=60, description="The mark of `tasks make`, of what it wrote here."
    )
    checked: str | None = Field(default=None, max_length=100, description="What says that a made answer is right.")
    since: AwareDatetime | None = Field(default=None, description="When a person made it a task of the pool's own.")
    run: SourceRun | None = Field(default=None, description="The run that it was made of.")


@dataclass(frozen=True, slots=True)
class FileLine:
    """One line of a file: its task, or the problems that keep it from being one."""

    number: int
    raw: str
    line: TaskLine | None
    task: Task | None
    problems: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What makes two lines the same task."""
        return normalize_query(self.task.query) if self.task else ""

    @property
    def digest(self) -> str:
        """The digest of the whole line: an edit names with it what the person saw."""
        return compute_digest(self.raw)

    @property
    def is_made(self) -> bool:
        """Whether `tasks make` wrote the line and nobody has changed it since."""
        return self.line is not None and is_made(self.line)


@dataclass(frozen=True, slots=True)
class TaskFile:
    """`problems` are (line number, plain sentence); the lines they are at gave no task."""

    tasks: tuple[Task, ...]
    problems: tuple[tuple[int, str], ...]


def load_tasks(path: Path) -> TaskFile:
    """The tasks of a file. Raises UnusableTasks when it cannot be read at all."""
    return collect_tasks(_parse_lines(_read_lines(path), path.stem))


def collect_tasks(lines: Iterable[FileLine]) -> TaskFile:
    """The tasks and the problems of lines."""
    tasks: list[Task] = []
    problems: list[tuple[int, str]] = []
    for line in lines:
        tasks += [line.task] if line.task else []
        problems += [(line.number, problem) for problem in line.problems]
    return TaskFile(tuple(tasks), tuple(problems))


def read_lines(text: str, family: str) -> list[FileLine]:
    """The lines of a task file's text."""
    lines = enumerate(text.removeprefix("\ufeff").split("\n"), start=1)
    return list(_parse_lines(((number, raw.removesuffix("\r")) for number, raw in lines), family))


def _parse_lines(lines: Iterable[tuple[int, str]], family: str) -> Iterator[FileLine]:
    """Numbered lines as tasks, without the blank ones."""
    return refuse_repeated(parse_line(raw, family, number) for number, raw in lines if raw.strip())


def refuse_repeated(lines: Iterable[FileLine], unit: str = "line") -> Iterator[FileLine]:
    """The same lines, but of equal queries only the first is a task. `unit` is what their numbers count."""
    seen: dict[str, int] = {}
    for line in lines:
        first = seen.setdefault(line.key, line.number) if line.task else line.number
        if first != line.number:
            problem = f"the query is the same as on {unit} {first}; remove one of them"
            line = FileLine(line.number, line.raw, line.line, None, (problem,))
        yield line


def parse_line(raw: str, family: str, number: int) -> FileLine:
    """One line as a task, or with its problems."""
    line, task, problems = _read_task_line(raw.encode("utf-8", "surrogatepass"), family, number - 1)
    return FileLine(number, raw, line, task, tuple(problems))


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines, from 1 on. A line that is too long is cut just behind what is allowed."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise UnusableTasks(f"{path} has more than {MAX_FILE_BYTES:,} bytes; split it into several files")
        with path.open("rb") as file:
            number = 0
            while raw := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                rest = raw
                while len(rest) > MAX_LINE_BYTES and not rest.endswith(b"\n"):
                    rest = file.readline(MAX_LINE_BYTES + 1)
                text = raw.decode("utf-8", "surrogateescape").rstrip("\r\n")
                yield number, text.removeprefix("\ufeff") if number == 1 else text
    except OSError as error:
        raise UnusableTasks(f"{path} cannot be read: {error.strerror}; give the path of a JSONL file") from error


def _read_task_line(raw: bytes, family: str, index: int) -> tuple[TaskLine | None, Task | None, list[str]]:
    """A line and its task, or None and what keeps it from being one. A line whose fields are right but whose task is
    not (a number that is none) is given without a task."""
    line = None
    try:
        line = _parse_line(raw)
        return line, replace(make_task(line, family, index), origin="made" if is_made(line) else "own"), []
    except ValidationError as error:
        return None, None, [f"{key}: {what}" if key else what for key, what in field_problems(error)]
    except ValueError as error:
        return line, None, [str(error)]


def is_made(line: TaskLine) -> bool:
    """Whether `tasks make` wrote a line and nobody has changed it since."""
    return line.made is not None and line.made == compute_mark(line)


def compute_mark(line: TaskLine) -> str:
    """The mark of a made line: digests of its query and of its whole content."""
    content = line.model_dump(mode="json", exclude={"made"}, exclude_none=True)
    return f"{compute_digest(normalize_query(line.query))}-{compute_digest(json.dumps(content, sort_keys=True))}"


def compute_digest(text: str) -> str:
    """A short name for a text."""
    return sha256(text.encode()).hexdigest()[:DIGEST]


def _parse_line(raw: bytes) -> TaskLine:
    if len(raw) > MAX_LINE_BYTES:
        raise ValueError(f"the line has more than {MAX_LINE_BYTES:,} bytes; shorten it")
    return TaskLine.model_validate_json(raw)


def make_task(line: TaskLine, family: str, index: int) -> Task:
    """The task of a line. Raises ValueError with what is wrong with it."""
    query = clean_text(line.query)
    if not normalize_query(query):
        raise ValueError("query: this must not be empty")
    turn = None if line.plan is None else _parse_plan(line.plan)
    split = line.split or assign_split(normalize_query(query))
    return Task(
        TaskRef(line.family or family, 0, split, index),
        query,
        _make_verifier(line),
        turn,
        checked=line.checked or "",
        since=line.since,
        offered=line.workers or (),
    )


def make_tasks(rows: Iterable[object], family: str) -> list[Task]:
    """The tasks of (query, answer) pairs, of mappings like the lines of a file, or of tasks as they are; a query that
    comes again is left out. Raises UnusableTasks with the number of the first row that is none of these."""
    tasks: dict[str, Task] = {}
    for index, row in enumerate(islice(rows, MAX_ROWS)):
        try:
            task = row if isinstance(row, Task) else make_task(_read_row(row), family, index)
        except ValidationError as error:
            key, what = field_problems(error)[0]
            raise UnusableTasks(f"{family}, row {index + 1}: {key}: {what}") from error
        except (ValueError, TypeError) as error:
            raise UnusableTasks(f"{family}, row {index + 1}: {error}") from error
        tasks.setdefault(normalize_query(task.query), task)
    return list(tasks.values())


def _read_row(row: object) -> TaskLine:
    if isinstance(row, Mapping):
        return TaskLine.model_validate(dict(row))
    if isinstance(row, tuple | list) and len(row) == 2:
        return TaskLine(query=row[0], answer=row[1])
    raise TypeError(f"give (query, answer), a mapping with these keys or a Task, not a {type(row).__name__}")


def make_source(file: TaskFile, path: Path, name: str, unit: str = "line") -> TaskList:
    """What was read from a file as a source; lines with problems are left out. Raises UnusableTasks when no task is
    left."""
    number, problem = file.problems[0] if file.problems else (1, "the file is empty")
    if not file.tasks:
        raise UnusableTasks(
            f"{path} holds no task ({unit} {number}: {problem}); see python -m trainer tasks check {path}"
        )
    if file.problems:
        log.warning(
            "%s: %d problems (%s %d: %s); what has one is left out, %d tasks remain",
            path, len(file.problems), unit, number, problem, len(file.tasks),
        )  # fmt: skip
    return TaskList(name, file.tasks)


def _make_verifier(line: TaskLine) -> AnyVerifier:
    rule = line.verifier
    answer = line.answer
    if isinstance(rule, PythonRule):
        return PythonCheck(_check_code(rule.code), answer)
    if isinstance(rule, RefusalRule):
        return _make_refusal(answer)
    if answer is None:
        raise ValueError("answer: this is missing")
    if isinstance(rule, JudgeRule):
        return JudgeCheck(rule.worker, answer)
    if isinstance(rule, NumberRule):
        return NumberWithin(_parse_number(answer), rule.tolerance)
    if rule is None:
        is_number = isinstance(answer, int | float) and not isinstance(answer, bool)
        return NumberWithin(_parse_number(answer), TOLERANCE) if is_number else ExactText(_check_text(answer))
    match rule.kind:
        case "exact":
            return ExactText(_check_text(answer))
        case "regex":
            return MatchesPattern(_check_pattern(_check_text(answer)))
        case "one_of":
            return OneOf(tuple(_check_text(item) for item in _check_list(answer)))
        case "states_all":
            return StatesAll(tuple(_check_list(answer)))
        case "set":
            return SameSet(tuple(_check_list(answer)))


def _make_refusal(answer: JsonValue) -> RefusalVerifier:
    if answer is not None and not is_refusal(answer):
        raise ValueError("answer: leave this out; any answer that says that no worker can do it is right")
    return RefusalVerifier()


def _parse_number(answer: JsonValue) -> float:
    number = None if isinstance(answer, bool | list | dict) else parse_whole_number(as_text(answer).strip())
    if number is None:
        raise ValueError(f"answer: {as_text(answer)[:80]!r} is no number; give one, or another verifier")
    return number


def _check_text(answer: JsonValue) -> str:
    if isinstance(answer, list | dict):
        raise ValueError('answer: give text, or for a list the verifier "set" (all of it) or "one_of" (any of it)')
    text = clean_text(as_text(answer)).strip()
    if not text:
        raise ValueError("answer: this must not be empty")
    return text


def _check_list(answer: JsonValue) -> list[JsonValue]:
    """The items of a list of texts and numbers."""
    if not isinstance(answer, list) or not answer or not all(_check_text(item) for item in answer):
        raise ValueError('answer: give a list such as ["a", "b"]')
    return answer


def _check_pattern(pattern: str) -> str:
    problem = pattern_problem(pattern)
    if problem:
        raise ValueError(f"answer: {problem}")
    return pattern


def _check_code(code: str) -> str:
    """The snippet, if it can be one: it is run only to grade, and only in the sandbox."""
    try:
        tree = parse_module(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"verifier.code: this is not Python: {error}") from error
    if not any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body):
        raise ValueError("verifier.code: define check(answer, query) that returns True or False")
    return code


def _parse_plan(plan: dict[str, JsonValue]) -> Turn:
    """The plan as a turn. Whether its workers exist shows only on a pool."""
    turn = PlanDialect().parse(json.dumps(plan), 1, ())
    if turn.error is not None:
        raise ValueError(f"plan: {turn.error}")
    for step in turn.steps:
        late = [k for k in step.access if k >= step.id]
        if step.problem or late:
            raise ValueError(f"plan: step {step.id}: {step.problem or f'access names {late[0]}, no earlier step'}")
        hidden = step.references.difference(step.access)
        if hidden:
            raise ValueError(f"plan: step {step.id} uses ${min(hidden)}; add {min(hidden)} to its access")
    if not turn.has_answer or not references(turn.answer) <= {step.id for step in turn.steps}:
        raise ValueError('plan: it needs an "answer" that quotes its own steps, such as "$2"')
    return replace(turn, text="")
