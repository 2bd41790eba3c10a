"""Grades the stored episodes of an evaluation again, by the tasks as they are now. No worker is called but judges,
and those only where they may be asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.engine.events import Graded
from orchestrator.traces.store import Store
from pool_registry.actions import JsonValue, as_text
from pool_registry.atomic_write import write_atomically
from pool_registry.calls.live_pool import LivePool
from trainer.errors import JobRefused, NotGraded, UnusableTasks
from trainer.evaluation.grading import grade_answer
from trainer.evaluation.judging import make_judge_key
from trainer.jobs.job_folder import JobFolder
from trainer.recipe import Recipe
from trainer.results.by_task import group_by_task
from trainer.results.paired import PairedDifference, compute_difference
from trainer.results.rows import ResultRow, read_results
from trainer.results.summary import summarize
from trainer.tasks.registry import open_source
from trainer.tasks.task import Task, normalize_query
from trainer.tasks.verifier import PythonCheck

MANY = 1_000_000
NO_TASK = "no task has this query"
NO_EPISODE = "the episode was deleted"
NO_JUDGE = "a judge would have to be asked"
REFUSED = "a cap refused the judge"


@dataclass(frozen=True, slots=True)
class Regrading:
    """The rows of an evaluation before and after, in one order. `left` counts, by reason, those that stay as they were;
    `expected` is what the tasks of the changed ones expect, by episode."""

    before: Sequence[ResultRow]
    after: Sequence[ResultRow]
    left: Mapping[str, int] = field(default_factory=dict)
    expected: Mapping[str, str] = field(default_factory=dict)

    @property
    def changed_rows(self) -> list[ResultRow]:
        """The rows that changed sides, as they are now."""
        return [new for old, new in zip(self.before, self.after, strict=True) if old.correct != new.correct]

    def rank(self) -> list[RankChange]:
        """The orchestrators, the best now first, with what they had before."""
        changes = [self._compare(name, condition) for name, condition in _list_cells(self.after)]
        return sorted(changes, key=lambda change: (change.condition, -change.after))

    def _compare(self, name: str, condition: str) -> RankChange:
        old, new = (group_by_task(_select_cell(rows, name, condition)) for rows in (self.before, self.after))
        before, after = (sum(group.score for group in groups.values()) / len(groups) for groups in (old, new))
        return RankChange(name, condition, before, after, compute_difference(new, old))


@dataclass(frozen=True, slots=True)
class RankChange:
    """The share of tasks that an orchestrator solved before and solves now, in [0, 1], and the paired difference."""

    orchestrator: str
    condition: str
    before: float
    after: float
    difference: PairedDifference


def find_task_source(recipe: Recipe) -> str:
    """The source of the tasks that a job evaluates."""
    return (recipe.evaluate.source if recipe.evaluate is not None else "") or recipe.tasks.source


def read_current_tasks(source: str, rows: Sequence[ResultRow]) -> dict[str, Task]:
    """The tasks of a source as they are now, by query. Raises UnusableTasks where it cannot be read, or generates its
    tasks: those are the same as ever."""
    if ":" not in source:
        raise UnusableTasks(
            f"the tasks of {source} are generated, and would grade as before: only edited ones, and those of "
            "another source (--tasks), are graded otherwise"
        )
    opened = open_source(source)
    splits = dict.fromkeys(row.split for row in rows)
    return {normalize_query(task.query): task for split in splits for task in opened.tasks(split, MANY)}


async def regrade(
    rows: Sequence[ResultRow], tasks: Mapping[str, Task], store: Store, pool: LivePool, *, asks_judges: bool = False
) -> Regrading:
    """Grade every row again whose query has a task. `pool` holds the judges, which are asked only with
    `asks_judges`."""
    answers = store.traces.read_answers([row.episode for row in rows])
    left: Counter[str] = Counter()
    expected: dict[str, str] = {}
    after: list[ResultRow] = []
    for row in rows:
        task = tasks.get(normalize_query(row.query))
        reason = _find_obstacle(row, task, answers, asks_judges)
        graded = row
        if task is not None and not reason:
            try:
                graded = await _grade_row(row, task, answers[row.episode], store, pool)
                expected[row.episode] = as_text(task.expected)
            except NotGraded as failure:
                reason = REFUSED if failure.place == "judge" else f"its verifier failed: {failure}"
        left[reason] += bool(reason)
        after.append(graded)
    return Regrading(rows, after, dict(+left), expected)


def _find_obstacle(row: ResultRow, task: Task | None, answers: Mapping[str, str | None], asks_judges: bool) -> str:
    """Why a row cannot be graded again; empty where it can."""
    if task is None:
        return NO_TASK
    if row.episode not in answers:
        return NO_EPISODE
    return NO_JUDGE if task.judge and not asks_judges else ""


async def _grade_row(row: ResultRow, task: Task, answer: str | None, store: Store, pool: LivePool) -> ResultRow:
    value: JsonValue = answer
    if isinstance(task.verifier, PythonCheck) and answer is not None:
        value = store.traces.episode(row.episode).final_answer  # a snippet tells 42 from "42"
    grade = await grade_answer(task, value, pool)
    judge = pool.find_judge(task.judge) if task.judge else None
    key = None if judge is None else make_judge_key(judge.spec)
    return row.model_copy(update={"correct": grade.correct, "judge": key})


def read_finished_results(folder: JobFolder, job: str, is_running: bool) -> list[ResultRow]:
    """The rows of a job. Raises JobRefused where it still writes them, or has none."""
    if is_running:
        raise JobRefused(f"job {job} still runs: stop it, or wait for its end")
    rows = read_results(folder.results)
    if not rows:
        raise JobRefused(f"job {job} has evaluated nothing yet: choose another, or wait until it has")
    return rows


def keep_regrading(regrading: Regrading, folder: JobFolder, store: Store, edits: str = "") -> None:
    """Put the new verdicts in place of the old ones: in the traces first, then in the job's files.

    The files as they were stay beside them as `before-N.jsonl`, and the lines of tasks that were written for this as
    `edits-N.jsonl`, a task file. A kill in between loses nothing: the same command
    finds the same changes again.
    """
    for row in regrading.changed_rows:
        ended = store.traces.episode(row.episode).ended
        if ended is not None:
            store.traces.append(row.episode, Graded(row.correct, regrading.expected[row.episode], ended.at))
    store.traces.flush()
    number = len(list(folder.path.glob("before-*.jsonl"))) + 1
    write_atomically(folder.path / f"before-{number}.jsonl", folder.results.read_bytes())
    if edits:
        write_atomically(folder.path / f"edits-{number}.jsonl", edits)
    write_atomically(folder.results, "".join(f"{row.model_dump_json()}\n" for row in regrading.after))
    summaries = [
        summarize(name, _select_cell(regrading.after, name, condition), condition)
        for name, condition in _list_cells(regrading.after)
    ]
    write_atomically(folder.evaluations, "".join(f"{summary.model_dump_json()}\n" for summary in summaries))


def _list_cells(rows: Sequence[ResultRow]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((row.orchestrator, row.condition) for row in rows))


def _select_cell(rows: Sequence[ResultRow], name: str, condition: str) -> list[ResultRow]:
    return [row for row in rows if row.orchestrator == name and row.condition == condition]
