"""The commands of the Tasks panel: a pool's own tasks are pasted, uploaded, written, edited, struck and tried."""

from __future__ import annotations

import json

from pydantic import ValidationError

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.baselines.oracle import OraclePolicy
from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import InvalidPool
from pool_registry.kinds import field_problems
from pool_registry.pool import Pool
from studio.access.recipe_rights import check_task_source
from studio.frame.commands import Fields, PageCommands, PageReply, command, table, text, words
from studio.pages.train.tasks.posted_tasks import name_posted, read_posted
from studio.pages.train.tasks.recorded_commands import preview_recorded_pool, read_posted_conversations
from studio.pages.train.tasks.task_documents import (
    PlanOutcome,
    VerifierDocument,
    build_book_document,
    build_preview,
    build_source_document,
)
from studio.runtime import Runtime
from trainer.errors import UnusableTasks
from trainer.evaluation.grading import grade_answer
from trainer.tasks.practice.stored import SOURCE, change_tasks
from trainer.tasks.practice.task_book import ChangedTask
from trainer.tasks.sources.files.cells import read_answer
from trainer.tasks.sources.files.columns import UnclearColumns
from trainer.tasks.sources.files.reader import require_tasks
from trainer.tasks.sources.jsonl import TaskLine, make_task
from trainer.tasks.task import Task
from trainer.tasks.verifier_examples import KINDS, list_example_answers

UNANSWERED = ("refusal",)  # verifiers that need no answer
LISTS = ("set", "one_of", "states_all")  # verifiers whose answer is a list


class TaskCommands(PageCommands):
    """Commands by name. Those that change tasks reply with the tasks as they are then."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @command("viewer", "tasks")
    def _show(self, fields: Fields) -> PageReply:
        source = text(fields, "source")
        check_task_source(source)
        if source.startswith(SOURCE):
            return self._reply({**fields, "pool": source.removeprefix(SOURCE)})
        levels = fields.get("levels")
        chosen = tuple(level for level in levels if isinstance(level, int)) if isinstance(levels, list) else (1,)
        return PageReply(fields={"tasks": build_source_document(source, chosen).to_json()})

    @command("editor", "read_tasks")
    def _read(self, fields: Fields) -> PageReply:
        """What was pasted or uploaded; nothing is kept. Where columns must be chosen, the reply lists them. A data set
        of tool use becomes a pool of its own."""
        data = read_posted_conversations(fields)
        if data is not None:
            preview = preview_recorded_pool(data, fields, self._runtime.store.pools.names())
            return PageReply(fields={"preview": preview.to_json()})
        if not words(fields, "pool"):
            raise InvalidPool([("text", "these tasks go to a pool: choose the own tasks of one above")])
        pool = self._pool(fields)
        try:
            read = read_posted(fields)
        except UnclearColumns as error:
            return PageReply(problems=(("text", str(error)),), fields={"columns": list(error.columns)})
        return PageReply(fields={"preview": build_preview(read, pool).to_json()})

    @command("editor", "add_tasks")
    def _add(self, fields: Fields) -> PageReply:
        """Keep all that are tasks of what was pasted or uploaded."""
        pool = self._pool(fields)
        if read_posted_conversations(fields) is not None:
            raise UnusableTasks(f"{name_posted(fields)} holds calls of tools: make a new pool of it")
        lines = require_tasks(read_posted(fields), name_posted(fields))
        with change_tasks(self._runtime.store.pools, pool.name) as book:
            book.add(lines)
        return self._reply(fields, f"Added {len(lines):,} {'task' if len(lines) == 1 else 'tasks'}")

    @command("editor", "save_task")
    def _save(self, fields: Fields) -> PageReply:
        """Put an edited task in the place of `query`, or add a new one."""
        pool = self._pool(fields)
        line, task = parse_written(table(fields, "task"))
        if lacking := task.list_missing_workers(pool):
            raise InvalidPool([("plan", f"the pool has no {', '.join(lacking)}")])
        query = words(fields, "query")
        try:
            with change_tasks(self._runtime.store.pools, pool.name) as book:
                if query:
                    book.replace(query, line, words(fields, "based_on"))
                else:
                    book.add([line])
        except ChangedTask as conflict:
            return PageReply(problems=(("", str(conflict)),), fields={"based_on": conflict.based_on})
        return self._reply(fields, "Saved" if query else "Added")

    @command("editor", "strike_task")
    def _strike(self, fields: Fields) -> PageReply:
        with change_tasks(self._runtime.store.pools, text(fields, "pool")) as book:
            book.strike(text(fields, "query"), words(fields, "based_on"))
        return self._reply(fields)

    @command("editor", "restore_task")
    def _restore(self, fields: Fields) -> PageReply:
        with change_tasks(self._runtime.store.pools, text(fields, "pool")) as book:
            book.restore(text(fields, "query"))
        return self._reply(fields, "Put back")

    @command("editor", "try_task")
    def _try(self, fields: Fields) -> PageReply:
        """How a written task is graded: answers by example, and one that a person gives."""
        pool, (_, task) = self._pool(fields), parse_written(table(fields, "task"))
        kind = task.verifier.kind
        answer = words(fields, "answer")
        correct, reason = self._runtime.run(_grade(task, answer, pool)) if answer else (None, "")
        document = VerifierDocument(
            kind=kind,
            about=KINDS.get(kind, ""),
            answers=list_example_answers(task.verifier),
            correct=correct,
            reason=reason,
        )
        return PageReply(fields={"verifier": document.to_json()})

    @command("editor")
    def _run_plan(self, fields: Fields) -> PageReply:
        """Call the workers of a written plan, and say whether its answer is the right one."""
        pool, (_, task) = self._pool(fields), parse_written(table(fields, "task"))
        if task.oracle_turn is None:
            raise InvalidPool([("plan", "write a plan first")])
        if lacking := task.list_missing_workers(pool):
            raise InvalidPool([("plan", f"the pool has no {', '.join(lacking)}")])
        answer, failure, correct = self._runtime.run(_run_reference(task, pool))
        document = PlanOutcome(answer=answer, failure=failure, correct=correct)
        return PageReply(fields={"plan": document.to_json()})

    def _pool(self, fields: Fields) -> Pool:
        return self._runtime.store.pools.latest(text(fields, "pool")).pool

    def _reply(self, fields: Fields, message: str = "") -> PageReply:
        first = fields.get("first")
        document = build_book_document(
            self._pool(fields), words(fields, "split"), words(fields, "words"), first if isinstance(first, int) else 0
        )
        return PageReply(message, {"tasks": document.to_json()})


def parse_written(written: Fields) -> tuple[TaskLine, Task]:
    """The task that the form holds: texts as they were typed. Raises InvalidPool with the problems at their fields."""
    kind = words(written, "verifier")
    given = str(written.get("answer") or "")
    answer: JsonValue = given.strip() if kind in ("exact", "regex", "judge", "python") else read_answer(given)
    if kind in UNANSWERED:
        answer = None
    elif kind in LISTS:
        answer = [read_answer(item) for item in given.split("\n") if item.strip()]
    rule: dict[str, JsonValue] = {"kind": kind}
    if kind == "number" and words(written, "tolerance"):
        rule["tolerance"] = read_answer(words(written, "tolerance"))
    if kind == "python":
        rule["code"] = str(written.get("code") or "")
    if kind == "judge":
        rule["worker"] = words(written, "judge")
    document = {
        "query": words(written, "query"),
        "answer": None if answer == "" else answer,
        "verifier": rule if kind else None,
        "split": words(written, "split") or None,
        "plan": _parse_plan(str(written.get("plan") or "")),
    }
    try:
        line = TaskLine.model_validate(document)
        return line, make_task(line, "own", 0)
    except ValidationError as error:
        raise InvalidPool(field_problems(error)) from error
    except ValueError as error:
        field, colon, sentence = str(error).partition(": ")
        raise InvalidPool([(field.partition(".")[0], sentence) if colon else ("", str(error))]) from error


def _parse_plan(written: str) -> JsonValue:
    if not written.strip():
        return None
    try:
        plan: JsonValue = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise InvalidPool([("plan", f"this is no JSON: {error}")]) from error
    return plan


async def _grade(task: Task, answer: str, pool: Pool) -> tuple[bool, str]:
    async with live_pool(pool) as live:
        grade = await grade_answer(task, answer, live)
    return grade.correct, grade.reason or ""


async def _run_reference(task: Task, pool: Pool) -> tuple[str, str, bool]:
    """The answer of a task's plan, what failed in it, and whether it is right."""
    assert task.oracle_turn is not None, "the caller looked"
    async with live_pool(pool) as live:
        episode = await run_episode(EpisodeSpec(task.query), OraclePolicy(task.oracle_turn), live)
        grade = await grade_answer(task, episode.answer, live)
    failed = [
        f"step {run.step.id} ({run.step.worker}): {run.observation.error.message}"
        for run in episode.steps.values()
        if run.observation is not None and run.observation.error is not None
    ]
    return ("" if episode.answer is None else as_text(episode.answer)), "; ".join(failed), grade.correct
