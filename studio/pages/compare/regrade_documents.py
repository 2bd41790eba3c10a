"""What the Compare page shows of grading an evaluation again: its tasks as they are now, and what changed sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from pydantic import Field

from orchestrator.policies.labels import label_orchestrator
from pool_registry.actions import JsonValue
from pool_registry.text import one_line, shorten
from studio.frame.document import PageDocument
from studio.pages.compare.schema import Interval
from studio.pages.train.tasks.task_documents import ANSWER_CHARS, TaskRow, write_answer
from trainer.evaluation.regrading import RankChange, Regrading
from trainer.results.rows import ResultRow
from trainer.tasks.task import Task, normalize_query

TASKS_SHOWN = 8
CHANGES_SHOWN = 200
QUERY_CHARS = 400
RULE_FIELDS = ("tolerance", "code", "worker")  # of a verifier in a task file, besides its kind
WRITTEN_KINDS = ("number", "exact", "one_of", "set", "states_all", "regex", "judge", "python")  # in a task file


class RegradeTask(TaskRow):
    """A query of the evaluation with its task as it is now; how many of its answers count as right so far."""

    right: int
    episodes: int


class RegradeTasks(PageDocument):
    """The queries of an evaluation, some of the `total` that fit what a person looks for. `problem` says why the
    source gives no task: what is written on the page then grades alone."""

    job: str
    pool: str
    source: str
    sources: list[str]
    problem: str
    rows: list[RegradeTask]
    total: int


class RankRow(PageDocument):
    """The share of tasks that an orchestrator solved before and solves now, and the paired difference."""

    orchestrator: str
    label: str
    condition: str
    before: float
    after: float
    difference: Interval


class ChangedSide(PageDocument):
    """An answer that changed sides; `episode` is its trace."""

    orchestrator: str
    label: str
    condition: str
    query: str
    answer: str
    expected: str
    correct: bool
    episode: str


class LeftRows(PageDocument):
    """How many answers stay as they were, and why."""

    reason: str
    count: int


class RegradingDocument(PageDocument):
    """An evaluation before and after it was graded again: some of the `total` answers that changed sides, of which
    `became_right` are right now. `digest` names this outcome when it is to be kept."""

    job: str
    episodes: int
    left: list[LeftRows]
    ranking: list[RankRow]
    changed: list[ChangedSide]
    total: int
    became_right: int
    digest: str = Field(description="Of all that changed sides.")


def build_tasks(rows: Sequence[ResultRow], tasks: Mapping[str, Task], search: str) -> tuple[list[RegradeTask], int]:
    """The queries of an evaluation that hold a text, as many as are shown, and how many there are."""
    by_query: dict[str, list[ResultRow]] = {}
    for row in rows:
        if search.casefold() in row.query.casefold():
            by_query.setdefault(normalize_query(row.query), []).append(row)
    shown = list(by_query.items())[:TASKS_SHOWN]
    return [_build_task(group, tasks.get(key)) for key, group in shown], len(by_query)


def _build_task(rows: Sequence[ResultRow], task: Task | None) -> RegradeTask:
    return RegradeTask(
        query=rows[0].query,
        answer="" if task is None else shorten(one_line(write_answer(task)), ANSWER_CHARS),
        split=rows[0].split,
        verifier="" if task is None else task.verifier.kind,
        workers=[],
        origin=rows[0].origin,
        fields={"query": rows[0].query} if task is None else write_fields(task),
        right=sum(row.correct for row in rows),
        episodes=len(rows),
    )


def write_fields(task: Task) -> dict[str, JsonValue]:
    """A task as the fields of a line in a task file; without a verifier where none of a file grades as its does."""
    verifier, expected = task.verifier, task.expected
    answer: JsonValue = list(expected) if isinstance(expected, tuple) else expected
    fields: dict[str, JsonValue] = {"query": task.query, "answer": answer}
    if verifier.kind in WRITTEN_KINDS:
        settings = {name: getattr(verifier, name) for name in RULE_FIELDS if hasattr(verifier, name)}
        fields["verifier"] = {"kind": verifier.kind, **settings}
    return fields


def build_regrading_document(job: str, regrading: Regrading, answers: Mapping[str, str | None]) -> RegradingDocument:
    """The ranking, and what changed sides; `answers` by episode."""
    changed = regrading.changed_rows
    return RegradingDocument(
        job=job,
        episodes=len(regrading.after),
        left=[LeftRows(reason=reason, count=count) for reason, count in regrading.left.items()],
        ranking=[_build_rank(change) for change in regrading.rank()],
        changed=[_build_change(row, regrading, answers) for row in changed[:CHANGES_SHOWN]],
        total=len(changed),
        became_right=sum(row.correct for row in changed),
        digest=compute_digest(regrading),
    )


def compute_digest(regrading: Regrading) -> str:
    """A short name for what changed sides."""
    sides = "\n".join(f"{row.episode} {row.correct}" for row in regrading.changed_rows)
    return sha256(sides.encode()).hexdigest()[:16]


def _build_rank(change: RankChange) -> RankRow:
    estimate = change.difference.difference
    return RankRow(
        orchestrator=change.orchestrator,
        label=label_orchestrator(change.orchestrator),
        condition=change.condition,
        before=change.before,
        after=change.after,
        difference=(estimate.mean, estimate.low, estimate.high),
    )


def _build_change(row: ResultRow, regrading: Regrading, answers: Mapping[str, str | None]) -> ChangedSide:
    answer = answers.get(row.episode)
    return ChangedSide(
        orchestrator=row.orchestrator,
        label=label_orchestrator(row.orchestrator),
        condition=row.condition,
        query=row.query[:QUERY_CHARS],
        answer="" if answer is None else shorten(one_line(answer), ANSWER_CHARS),
        expected=shorten(one_line(regrading.expected.get(row.episode, "")), ANSWER_CHARS),
        correct=row.correct,
        episode=row.episode,
    )
