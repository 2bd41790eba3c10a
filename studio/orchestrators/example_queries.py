"""Queries that a pool can answer: its own tasks, the suites whose workers it has, and without any suite the examples of
the starter pool. Never those of another pool."""

from __future__ import annotations

import random
from collections.abc import Iterable

from orchestrator.errors import UnknownOrchestrator
from orchestrator.policies.registry import is_reader
from pool_registry.pool import Pool
from studio.orchestrators.choices import FIRST_QUERY, FIRST_QUESTION
from trainer.tasks import SUITES, find_task, recognize_task
from trainer.tasks.practice.stored import SOURCE, find_own_task, list_own_tasks
from trainer.tasks.starter_examples import NAME as EXAMPLES
from trainer.tasks.starter_examples import list_examples
from trainer.tasks.task import Task

DRAWN_FROM = 10_000  # tasks of a suite's test split


def list_example_choices(pool: Pool) -> list[tuple[str, str]]:
    """(label, value) of what queries can be drawn from."""
    own = [(f"Tasks of {pool.name}", f"{SOURCE}{pool.name}")] if list_runnable_tasks(pool) else []
    there = {spec.name for spec in pool.enabled}
    suites = [(name, suite) for name, suite in SUITES.items() if there.issuperset(suite.workers)]
    levels = [(f"{name} · level {level}", f"{name} {level}") for name, suite in suites for level in suite.levels]
    return own + (levels or ([("Examples", EXAMPLES)] if _list_runnable_examples(pool) else []))


def list_runnable_tasks(pool: Pool) -> list[Task]:
    """The pool's own tasks to be measured on, else all: those whose plans call workers that it has."""
    tasks = [task for task in list_own_tasks(pool.name) if not task.list_missing_workers(pool)]
    return [task for task in tasks if task.ref.split == "test"] or tasks


def draw_example(choice: str, pool: Pool) -> str:
    """A query of a choice, at random; "" where there is none (any more)."""
    if choice.startswith(SOURCE):
        tasks = list_runnable_tasks(pool)
        return random.choice(tasks).query if tasks else ""  # noqa: S311
    if choice == EXAMPLES:
        examples = _list_runnable_examples(pool)
        return random.choice(examples).query if examples else ""  # noqa: S311
    family, _, level = choice.rpartition(" ")
    return find_task(family, int(level), "test", random.randrange(DRAWN_FROM)).query if family else ""  # noqa: S311


def choose_first_query(pool: Pool, orchestrator: str) -> tuple[str, str]:
    """The query that a pool begins with, and the choice that it is from; ("", "") where nothing is known of it."""
    choices = list_example_choices(pool)
    tasks = list_runnable_tasks(pool)
    if tasks:
        return tasks[0].query, choices[0][1]
    family, level, index = FIRST_QUERY
    if value := _choose_first_value(choices):
        query = FIRST_QUESTION if _reads_any_pool(orchestrator) else find_task(family, level, "test", index).query
        return query, value
    return "", choices[0][1] if choices else ""


def _reads_any_pool(orchestrator: str) -> bool:
    try:
        return bool(orchestrator) and is_reader(orchestrator)
    except UnknownOrchestrator:  # it is gone, or an agent is still to be chosen
        return False


def fits_pool(query: str, pool: Pool, pools: Iterable[str]) -> bool:
    """Whether a query may stay when this pool is chosen: a person's own words, or an example of this pool."""
    if find_own_task(pool.name, query) is not None:
        return True
    choices = list_example_choices(pool)
    if query == FIRST_QUESTION:
        return bool(_choose_first_value(choices))
    task = recognize_task(query)
    if task is not None:
        return any(value == EXAMPLES or value.startswith(f"{task.ref.family} ") for _, value in choices)
    return bool(query) and all(find_own_task(name, query) is None for name in pools)


def _choose_first_value(choices: Iterable[tuple[str, str]]) -> str:
    """The choice that the first query of a fresh studio is from; "" where a pool does not offer it."""
    first = f"{FIRST_QUERY[0]} {FIRST_QUERY[1]}"
    return next((value for _, value in choices if value in (first, EXAMPLES)), "")


def _list_runnable_examples(pool: Pool) -> list[Task]:
    return [task for task in list_examples() if not task.list_missing_workers(pool)]
