"""What the pages show of tasks: those of a pool's own book, which can be changed, and samples of every other source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.live_worker import LiveWorker
from pool_registry.kinds import open_worker
from pool_registry.pool import Pool
from pool_registry.text import one_line, shorten
from studio.frame.document import PageDocument
from studio.pages.train.tasks.making_documents import MakingDocument, build_making_document
from trainer.tasks.practice.calls import explain_exclusion
from trainer.tasks.practice.stored import SOURCE, find_practice_file, open_task_book
from trainer.tasks.practice.task_book import count_splits
from trainer.tasks.registry import open_source
from trainer.tasks.sources.files.reader import ReadTasks, read_task_file
from trainer.tasks.sources.jsonl import FileLine
from trainer.tasks.task import Task
from trainer.tasks.tool_use.places import refuse_tool_data
from trainer.tasks.verifier_examples import KINDS, list_example_answers

ANSWER_CHARS = 80
SHOWN = 50
SAMPLED = 4  # tasks of each split of a source that makes them as they are needed
PROBLEMS = 100
PREVIEW = 20


class TaskRow(PageDocument):
    """One task; `origin` is "made", "own" or "" where it has none, `fields` are those of its line in a task file."""

    query: str
    answer: str
    split: str
    verifier: str
    workers: list[str] = Field(description="Those that its plan calls, in order.")
    origin: str
    fields: dict[str, JsonValue]
    checked: str = Field(default="", description="What says that its answer is right, where nothing computed it.")
    based_on: str = Field(default="", description="The digest of its line: an edit names with it what the person saw.")


class LineProblem(PageDocument):
    """Why a line, a row or an item is no task; `place` names it, as in "Line 3"."""

    line: int
    place: str
    sentence: str


class WorkerExclusion(PageDocument):
    """A worker that made tasks leave out. One that a person may allow only might have effects."""

    name: str
    reason: str
    may_be_allowed: bool


class TasksDocument(PageDocument):
    """Tasks as a page lists them: `rows` are some of the `total` that fit what a person looks for.

    `counts` by split, empty where a source makes as many as one wants. `pool` is the pool whose own tasks these are,
    "" for another source. `verifiers` says how each kind that occurs grades. `agents_only`: no other worker can be
    called, so that one of the agents has to write the tasks.
    """

    source: str
    pool: str
    file: str
    counts: dict[str, int]
    made: int
    own: int
    with_plan: int
    rows: list[TaskRow]
    first: int
    total: int
    problems: list[LineProblem]
    struck: list[str]
    excluded: list[WorkerExclusion]
    agents: list[str]
    agents_only: bool
    judges: list[str] = Field(description="Who can judge: workers that do nothing else first, then agents.")
    verifiers: dict[str, str]
    making: MakingDocument | None = Field(default=None, description="How making them goes, or went the last time.")


class VerifierDocument(PageDocument):
    """How a written task is graded: answers by example, and the grade of the one that a person gave, if any."""

    kind: str
    about: str
    answers: list[tuple[str, bool]]
    correct: bool | None
    reason: str


class VerifierExample(PageDocument):
    """How tasks of one kind are graded: answers by example, for the first of them."""

    verifier: str
    about: str
    query: str
    answers: list[tuple[str, bool]]


class TasksPreview(PageDocument):
    """What was pasted or uploaded: `rows` are some of the `total`, `lacking` workers that the pool has not.

    `form` says how it was read, `unit` what is counted as `left_out`; `columns` are those of a table or of
    objects, of which two hold queries and answers."""

    form: str
    unit: str
    left_out: int
    columns: list[str]
    query_column: str
    answer_column: str
    counts: dict[str, int]
    total: int
    rows: list[TaskRow]
    problems: list[LineProblem]
    examples: list[VerifierExample]
    lacking: list[str]
    new_pool: str = Field(default="", description='A name for the pool that a data set of tool use becomes; else "".')
    notes: list[str] = Field(default_factory=list, description="Sentences about such a data set as a whole.")


class PlanOutcome(PageDocument):
    """What a written plan answers, what failed in it, and whether the answer is right."""

    answer: str
    failure: str
    correct: bool


def build_book_document(pool: Pool, split: str = "", words: str = "", first: int = 0) -> TasksDocument:
    """A pool's own tasks. Raises UnusableTasks where what is remembered about them is damaged."""
    book = open_task_book(pool.name)
    lines = book.read()
    tasks = [row for row in lines if row.task is not None]
    made = sum(row.is_made for row in tasks)
    fitting = [row for row in reversed(tasks) if not row.is_made] + [row for row in tasks if row.is_made]
    fitting = [row for row in fitting if fits_filter(row, split, words)]
    agents, excluded = [spec.name for spec in pool.agents()], list_exclusions(pool)
    return TasksDocument(
        source=f"{SOURCE}{pool.name}",
        pool=pool.name,
        file=str(find_practice_file(pool.name)),
        counts=count_splits(tasks),
        made=made,
        own=len(tasks) - made,
        with_plan=sum(row.task is not None and row.task.oracle_turn is not None for row in tasks),
        rows=[build_row(row) for row in fitting[first : first + SHOWN]],
        first=first,
        total=len(fitting),
        problems=list_problems(lines),
        struck=[row.key for row in book.list_struck()[:SHOWN]],
        excluded=excluded,
        agents=agents,
        agents_only=bool(agents) and len(excluded) == len(pool.enabled),
        judges=[*(spec.name for spec in pool.switched_on if spec.judge_only), *agents],
        verifiers=_describe_verifiers([row.task for row in tasks if row.task]),
        making=build_making_document(pool.name),
    )


def fits_filter(row: FileLine, split: str, words: str) -> bool:
    """Whether a task is in a split ("" for any) and holds the words."""
    if row.task is None or split not in ("", row.task.ref.split):
        return False
    return words.casefold() in f"{row.task.query} {' '.join(row.task.workers)}".casefold()


def build_source_document(source: str, levels: tuple[int, ...]) -> TasksDocument:
    """A look into any other source: all of a file with its problems, some of what makes tasks as they are needed.

    Raises UnknownTask or UnusableTasks.
    """
    lines: list[FileLine] = []
    unit = "line"
    if source.startswith("file:"):
        file = source.removeprefix("file:")
        refuse_tool_data(file)
        read = read_task_file(Path(file).expanduser())
        lines, unit = read.lines, read.unit
        tasks = [row.task for row in lines if row.task is not None]
        counts = count_splits(lines)
    else:
        opened = open_source(source)
        tasks = [task for split in ("train", "test") for task in opened.tasks(split, SAMPLED, levels=levels)]
        counts = {}
    return TasksDocument(
        source=source,
        pool="",
        file="",
        counts=counts,
        made=0,
        own=0,
        with_plan=sum(task.oracle_turn is not None for task in tasks),
        rows=[_describe_task(task, "", {}) for task in tasks[:SHOWN]],
        first=0,
        total=len(tasks),
        problems=list_problems(lines, unit),
        struck=[],
        excluded=[],
        agents=[],
        agents_only=False,
        judges=[],
        verifiers=_describe_verifiers(tasks),
    )


def build_preview(read: ReadTasks, pool: Pool) -> TasksPreview:
    """What was read, with an example of each way in which its tasks are graded."""
    lines = [(line, line.task) for line in read.lines if line.task is not None]
    first_of_each_kind = {task.verifier.kind: task for _, task in reversed(lines)}
    return TasksPreview(
        form=read.form,
        unit=read.unit,
        left_out=len(read.lines) - len(lines),
        columns=list(read.columns),
        query_column=read.chosen.query if read.chosen else "",
        answer_column=read.chosen.answer if read.chosen else "",
        counts=count_splits(read.lines),
        total=len(lines),
        rows=[build_row(line) for line, _ in lines[:PREVIEW]],
        problems=list_problems(read.lines, read.unit),
        examples=[
            VerifierExample(
                verifier=kind,
                about=KINDS.get(kind, ""),
                query=task.query,
                answers=list_example_answers(task.verifier),
            )
            for kind, task in first_of_each_kind.items()
        ],
        lacking=read.list_lacking_workers(pool),
    )


def build_row(row: FileLine) -> TaskRow:
    """A line that is a task."""
    assert row.task is not None and row.line is not None, "the caller leaves out lines that are no tasks"
    fields = row.line.model_dump(mode="json", exclude_none=True, exclude={"made"})
    task = _describe_task(row.task, "made" if row.is_made else "own", fields)
    return task.model_copy(update={"based_on": row.digest})


def _describe_task(task: Task, origin: str, fields: dict[str, JsonValue]) -> TaskRow:
    steps = task.oracle_turn.steps if task.oracle_turn else ()
    return TaskRow(
        query=task.query,
        answer=shorten(one_line(write_answer(task)), ANSWER_CHARS),
        split=task.ref.split,
        verifier=task.verifier.kind,
        workers=[step.worker for step in steps],
        origin=origin,
        checked=task.checked,
        fields=fields,
    )


def write_answer(task: Task) -> str:
    """The expected answer as text; the items of a list with commas between them."""
    expected = task.expected
    return ", ".join(map(as_text, expected)) if isinstance(expected, list | tuple) else as_text(expected)


def list_problems(lines: Sequence[FileLine], unit: str = "line") -> list[LineProblem]:
    """The problems of lines that are no tasks; `unit` is what their numbers count."""
    problems = [(row.number, text) for row in lines for text in row.problems][:PROBLEMS]
    return [LineProblem(line=line, place=f"{unit.capitalize()} {line}", sentence=text) for line, text in problems]


def _describe_verifiers(tasks: Sequence[Task]) -> dict[str, str]:
    kinds = Counter(task.verifier.kind for task in tasks)
    return {kind: KINDS.get(kind, "its own way") for kind, _ in kinds.most_common()}


def list_exclusions(pool: Pool) -> list[WorkerExclusion]:
    """The enabled workers that are not called to make tasks unless a person allows it."""
    everyone = frozenset(spec.name for spec in pool.enabled)
    exclusions = []
    for spec in pool.enabled:
        worker = LiveWorker(spec, open_worker(spec))
        if reason := explain_exclusion(worker, frozenset()):
            may_be_allowed = not explain_exclusion(worker, everyone)
            exclusions.append(WorkerExclusion(name=spec.name, reason=reason, may_be_allowed=may_be_allowed))
    return exclusions
