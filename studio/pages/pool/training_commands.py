"""The Pool page's commands that train an orchestrator for the pool: practice tasks, made and struck, then a job."""

from __future__ import annotations

import json

from pydantic import Field

from pool_registry.actions import as_text
from pool_registry.atomic_write import write_atomically
from pool_registry.errors import InvalidPool
from pool_registry.kinds import open_worker
from pool_registry.pool import Pool
from pool_registry.text import one_line, shorten
from studio.frame.commands import Command, Fields, PageReply, text
from studio.frame.document import PageDocument
from studio.pages.train.commands import submit
from studio.runtime import Runtime
from trainer.pool_recipe import build_pool_recipe
from trainer.tasks.practice.calls import explain_exclusion
from trainer.tasks.practice.make_tasks import PracticeOptions
from trainer.tasks.practice.stored import find_practice_file, make_and_save
from trainer.tasks.sources.jsonl import load_tasks
from trainer.tasks.task import Task, normalize_query

MAX_TASKS = 2000
SHOWN = 200
ANSWER_CHARS = 80


class PracticeTaskLine(PageDocument):
    """One practice task, as the page lists it."""

    query: str
    answer: str
    split: str
    workers: list[str] = Field(description="Those that its plan calls, in order.")


class WorkerExclusion(PageDocument):
    """A worker that practice tasks leave out. One that a person may allow only might have effects."""

    name: str
    reason: str
    may_be_allowed: bool


class PracticeDocument(PageDocument):
    """A pool's practice tasks: how many, the first of them, and the workers that they leave out."""

    file: str
    counts: dict[str, int]
    tasks: list[PracticeTaskLine]
    excluded: list[WorkerExclusion]
    agents: list[str]


class TrainingCommands:
    """Commands by name."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.commands: dict[str, Command] = {
            "practice": self._show,
            "make_practice": self._make,
            "strike_practice": self._strike,
            "train_on_pool": self._train,
        }

    def _show(self, fields: Fields) -> PageReply:
        return self._reply(text(fields, "pool"))

    def _make(self, fields: Fields) -> PageReply:
        """Make tasks in place of those there are."""
        name, count = text(fields, "pool"), fields.get("count")
        if not isinstance(count, int) or not 1 <= count <= MAX_TASKS:
            raise InvalidPool([("count", f"give a number from 1 to {MAX_TASKS:,}")])
        allowed = fields.get("allowed")
        names = frozenset(map(str, allowed)) if isinstance(allowed, list) else frozenset()
        options = PracticeOptions(count=count, allowed=names, agent=str(fields.get("agent") or ""))
        made = self._runtime.run(make_and_save(self._runtime.store, name, options))
        unused = [f"{worker}: {reason}" for worker, reason in made.reasons.items() if worker in names]
        return self._reply(name, "; ".join([f"Made {len(made.lines):,} tasks", *unused]))

    def _strike(self, fields: Fields) -> PageReply:
        """Take one task out of the file; every other line stays as it is."""
        name, query = text(fields, "pool"), normalize_query(text(fields, "query"))
        file = find_practice_file(name)
        lines = [line for line in file.read_text(encoding="utf-8").split("\n") if line] if file.is_file() else []
        kept = [line for line in lines if normalize_query(str(json.loads(line).get("query"))) != query]
        if len(kept) == len(lines):
            raise InvalidPool([("query", "there is no such task; the file has changed")])
        write_atomically(file, "".join(f"{line}\n" for line in kept))
        return self._reply(name)

    def _train(self, fields: Fields) -> PageReply:
        """Queue the job that learns these tasks. Raises InvalidRecipe with what prevents its start."""
        name = text(fields, "pool")
        count = sum(task.ref.split == "train" for task in _load(name))
        if not count:
            raise InvalidPool([("", "there are no tasks to learn from; make them first")])
        return submit(build_pool_recipe(name, count), self._runtime)

    def _reply(self, name: str, message: str = "") -> PageReply:
        document = build_practice_document(self._runtime, name)
        return PageReply(message, {"practice": document.to_json()})


def build_practice_document(runtime: Runtime, name: str) -> PracticeDocument:
    """What the page shows of a pool's practice tasks. Raises PoolNotFound."""
    pool = runtime.store.pools.latest(name).pool
    tasks = _load(name)
    counts = {split: sum(task.ref.split == split for task in tasks) for split in ("train", "validation", "test")}
    return PracticeDocument(
        file=str(find_practice_file(name)),
        counts=counts,
        tasks=[_describe_task(task) for task in tasks[:SHOWN]],
        excluded=_list_exclusions(pool),
        agents=[spec.name for spec in pool.agents()],
    )


def _load(pool: str) -> tuple[Task, ...]:
    file = find_practice_file(pool)
    return load_tasks(file).tasks if file.is_file() else ()


def _describe_task(task: Task) -> PracticeTaskLine:
    steps = task.oracle_turn.steps if task.oracle_turn else ()
    return PracticeTaskLine(
        query=task.query,
        answer=shorten(one_line(_write_answer(task)), ANSWER_CHARS),
        split=task.ref.split,
        workers=[step.worker for step in steps],
    )


def _write_answer(task: Task) -> str:
    expected = task.expected
    return ", ".join(map(as_text, expected)) if isinstance(expected, list | tuple) else as_text(expected)


def _list_exclusions(pool: Pool) -> list[WorkerExclusion]:
    """The enabled workers that are not called for practice unless a person allows it."""
    everyone = frozenset(spec.name for spec in pool.enabled)
    exclusions = []
    for spec in pool.enabled:
        worker = open_worker(spec)
        if reason := explain_exclusion(worker, frozenset()):
            may_be_allowed = not explain_exclusion(worker, everyone)
            exclusions.append(WorkerExclusion(name=spec.name, reason=reason, may_be_allowed=may_be_allowed))
    return exclusions
