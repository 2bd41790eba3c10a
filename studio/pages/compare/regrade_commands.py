"""The Compare page's commands that grade an evaluation again: by its tasks as they are now, by those of another
source, and by what a person writes on the page. Nothing is stored before it is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import InvalidPool
from pool_registry.text import count_of
from studio.access.recipe_rights import check_task_source
from studio.access.roles import UserRole, current_rights
from studio.frame.commands import Fields, PageCommands, PageReply, command, text, words
from studio.pages.compare.regrade_documents import (
    RegradeTasks,
    build_regrading_document,
    build_tasks,
    compute_digest,
)
from studio.pages.train.tasks.task_commands import parse_written
from studio.runtime import Runtime
from trainer.errors import UnknownTask, UnusableTasks
from trainer.evaluation.regrading import (
    Regrading,
    find_task_source,
    keep_regrading,
    read_current_tasks,
    read_finished_results,
    regrade,
)
from trainer.jobs.job_folder import JobFolder
from trainer.results.rows import ResultRow
from trainer.run_recipe import load_pool
from trainer.tasks.practice.stored import SOURCE
from trainer.tasks.sources.jsonl import TaskLine
from trainer.tasks.task import Task, normalize_query

MOST_EDITS = 500


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A job that has evaluated: its rows, the pool that holds its judges, and the source of its tasks, its own one or
    another that was chosen."""

    job: str
    folder: JobFolder
    pool: str
    own_source: str
    source: str
    rows: Sequence[ResultRow]


class RegradeCommands(PageCommands):
    """Commands by name. `edits` are tasks as the task form holds them; they stand before those of the source."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @command("viewer", "regrade_tasks")
    def _show(self, fields: Fields) -> PageReply:
        """The evaluation's queries, with their tasks as the source has them now."""
        evaluation = self._open(fields)
        problem, tasks = "", {}
        try:
            tasks = _read_source(evaluation)
        except (UnusableTasks, UnknownTask) as error:
            problem = str(error)
        rows, total = build_tasks(evaluation.rows, tasks, words(fields, "search"))
        document = RegradeTasks(
            job=evaluation.job,
            pool=evaluation.pool,
            source=evaluation.source,
            sources=list(dict.fromkeys((evaluation.own_source, f"{SOURCE}{evaluation.pool}"))),
            problem=problem,
            rows=rows,
            total=total,
        )
        return PageReply(fields={"tasks": document.to_json()})

    @command("viewer", "regrade")
    def _look(self, fields: Fields) -> PageReply:
        """Grade again and store nothing. Whoever edits tasks, or has judges asked, must be an editor."""
        evaluation = self._open(fields)
        regrading, _ = self._grade(evaluation, fields)
        changed = [row.episode for row in regrading.changed_rows]
        answers = self._runtime.store.traces.read_answers(changed)
        document = build_regrading_document(evaluation.job, regrading, answers)
        return PageReply(fields={"regrading": document.to_json()})

    @command("editor", "keep_regrading")
    def _keep(self, fields: Fields) -> PageReply:
        """Store the verdicts that were shown. Where they would be others by now, nothing is stored."""
        evaluation = self._open(fields)
        regrading, lines = self._grade(evaluation, fields)
        if compute_digest(regrading) != text(fields, "digest"):
            raise InvalidPool([("", "the tasks or answers have changed since this was shown: press Grade again")])
        if not regrading.changed_rows:
            raise InvalidPool([("", "no answer changes sides, so there is nothing to keep")])
        notes = "".join(f"{line.model_dump_json(exclude_none=True)}\n" for line in lines)
        keep_regrading(regrading, evaluation.folder, self._runtime.store, notes)
        return PageReply(f"Kept: {count_of(len(regrading.changed_rows), 'answer')} changed sides.")

    def _open(self, fields: Fields) -> Evaluation:
        """The evaluation that the fields name. Raises JobNotFound, JobRefused, and RoleRefused for files."""
        job = text(fields, "job")
        jobs = self._runtime.jobs
        row, folder, recipe = jobs.get(job), jobs.folder(job), jobs.recipe(job)
        own = find_task_source(recipe)
        source = words(fields, "source") or own
        if source != own:
            check_task_source(source)
        rows = read_finished_results(folder, job, row.active)
        return Evaluation(job, folder, recipe.pool, own, source, rows)

    def _grade(self, evaluation: Evaluation, fields: Fields) -> tuple[Regrading, list[TaskLine]]:
        """Grade the evaluation again; with the lines of the tasks that were written on the page."""
        asks_judges = fields.get("ask_judges") is True
        lines, edits = _read_edits(fields)
        if edits or asks_judges:
            current_rights.get().require(UserRole.EDITOR, "edit tasks or have judges asked")
        try:
            tasks = _read_source(evaluation)
        except (UnusableTasks, UnknownTask):
            if not edits:
                raise
            tasks = {}
        return self._runtime.run(self._regrade(evaluation, {**tasks, **edits}, asks_judges)), lines

    async def _regrade(self, evaluation: Evaluation, tasks: Mapping[str, Task], asks_judges: bool) -> Regrading:
        store = self._runtime.store
        async with live_pool(load_pool(store, evaluation.pool)) as live:
            return await regrade(evaluation.rows, tasks, store, live, asks_judges=asks_judges)


def _read_source(evaluation: Evaluation) -> dict[str, Task]:
    return read_current_tasks(evaluation.source, evaluation.rows)


def _read_edits(fields: Fields) -> tuple[list[TaskLine], dict[str, Task]]:
    """The tasks that were written on the page: their lines, and the tasks by query. Raises InvalidPool with the query
    of the first that is none."""
    edits = fields.get("edits") or []
    if not isinstance(edits, list) or len(edits) > MOST_EDITS or not all(isinstance(row, Mapping) for row in edits):
        raise InvalidPool([("edits", f"send at most {MOST_EDITS} tasks; put more of them into a file and name that")])
    lines: list[TaskLine] = []
    tasks: dict[str, Task] = {}
    for row in edits:
        try:
            line, task = parse_written(row)
        except InvalidPool as error:
            problems = "; ".join(f"{key}: {what}" if key else what for key, what in error.problems)
            raise InvalidPool([("edits", f"{json.dumps(str(row.get('query'))[:80])}: {problems}")]) from error
        lines.append(line)
        tasks[normalize_query(task.query)] = task
    return lines, tasks
