"""The practice tasks of each pool in the data folder, which recipes name as the source `practice:POOL`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from statistics import median

from orchestrator.traces.store import Store, TraceStore, open_store
from pool_registry.atomic_write import lock_file
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import writing_to
from pool_registry.storage.data_folder import find_home
from pool_registry.storage.pool_store import PoolStore
from pool_registry.text import count_of
from trainer.errors import UnusableTasks
from trainer.tasks.practice.agents.estimate import Estimate
from trainer.tasks.practice.agents.make_agent_tasks import estimate_agent_tasks
from trainer.tasks.practice.calls import explain_exclusion
from trainer.tasks.practice.make_tasks import (
    PracticeOptions,
    PracticeTasks,
    make_practice_tasks,
    needs_questions,
    save_practice_tasks,
)
from trainer.tasks.practice.making import Making, read_making, record_making
from trainer.tasks.practice.progress import Watch
from trainer.tasks.practice.recorded import list_recorded_arguments
from trainer.tasks.practice.task_book import Merge, TaskBook
from trainer.tasks.sources.jsonl import load_tasks, make_source
from trainer.tasks.sources.source import TaskList
from trainer.tasks.task import Task, normalize_query, offer_workers

SOURCE = "practice:"
log = logging.getLogger(__name__)


def find_practice_file(pool: str) -> Path:
    """Return the file of a pool's practice tasks, which may not exist yet."""
    return find_home().root / "tasks" / f"{pool}.jsonl"


def open_practice(pool: str) -> TaskList:
    """A pool's practice tasks as a source. Raises UnusableTasks when none have been made."""
    file = find_practice_file(pool)
    if not file.is_file():
        raise UnusableTasks(
            f"the pool {pool} has no practice tasks yet; make them with: podium tasks make --pool {pool}"
        )
    read = load_tasks(file)
    if any(task.offered for task in read.tasks):
        read = replace(read, tasks=_offer_workers(read.tasks, pool))
    return make_source(read, file, f"{SOURCE}{pool}")


def _offer_workers(tasks: Iterable[Task], pool: str) -> tuple[Task, ...]:
    """The tasks, each with those workers of the stored pool that it is run with. Raises PoolNotFound."""
    store = open_store(find_home())
    try:
        stored = store.pools.latest(pool).pool
    finally:
        store.close()
    return tuple(offer_workers(task, stored) for task in tasks)


def list_own_tasks(pool: str) -> tuple[Task, ...]:
    """A pool's own tasks, in the order of their file; none where there is no file that can be read."""
    file = find_practice_file(pool)
    try:
        changed = file.stat()
    except OSError:
        return ()
    return tuple(_read_tasks(file, changed.st_mtime_ns, changed.st_size).values())


def find_own_task(pool: str, query: str) -> Task | None:
    """The task of a pool's own that asks this, or None."""
    key = normalize_query(query)
    return next((task for task in list_own_tasks(pool) if normalize_query(task.query) == key), None)


@lru_cache(maxsize=8)
def _read_tasks(file: Path, _changed: int, _size: int) -> dict[str, Task]:
    try:
        return {normalize_query(task.query): task for task in load_tasks(file).tasks}
    except UnusableTasks as error:
        log.warning("%s", error)
        return {}


async def make_and_save(
    store: Store, pool: str, options: PracticeOptions, file: Path | None = None, watch: Watch | None = None
) -> tuple[PracticeTasks, Merge]:
    """Make practice tasks and put them in place of the pool's made ones, or into `file`; what a person added, edited
    or struck stays so. `watch` hears how far it is, and may stop it; `find_making` finds it from elsewhere.

    Raises UnusableTasks, also while another call makes them, PoolNotFound, or UnwritablePath.
    """
    place, watch = file or find_practice_file(pool), watch or Watch()
    with writing_to(place), lock_file(place.with_suffix(".lock")):
        pass  # making tasks takes minutes: find out first
    book = TaskBook(place)
    with record_making(book.making_file, options, watch) as outcome:
        recorded = list_recorded_arguments(store.traces, pool)
        async with live_pool(store.pools.latest(pool).pool) as live:
            tasks = await make_practice_tasks(live, replace(options, recorded=recorded), book.journal_file, watch)
        with writing_to(place):
            merge = save_practice_tasks(tasks, place)
        outcome.append(describe_outcome(tasks, merge, options.allowed))
    return tasks, merge


def describe_outcome(tasks: PracticeTasks, merge: Merge, allowed: Iterable[str] = ()) -> str:
    """What was made, in one paragraph; of the workers that a person allowed, why one is in no task."""
    notes = [f"{worker}: {tasks.reasons[worker]}" for worker in sorted(allowed) if worker in tasks.reasons]
    notes += filter(None, (tasks.checked, tasks.agents))
    notes += [f"{merge.own:,} of your own stay"] if merge.own else []
    notes += [f"{merge.struck:,} that you struck or edited stay out"] if merge.struck else []
    return "; ".join([f"Made {count_of(merge.made, 'task')}", *notes])


def find_making(pool: str) -> Making | None:
    """How the making of a pool's tasks goes, or went the last time; None where there was none."""
    return read_making(open_task_book(pool).making_file)


async def estimate_questions(
    store: Store, pool: str, options: PracticeOptions, file: Path | None = None
) -> Estimate | None:
    """What the questions for agents will take; None where none are made. Raises UnusableTasks, or PoolNotFound."""
    journal = TaskBook(file or find_practice_file(pool)).journal_file
    async with live_pool(store.pools.latest(pool).pool) as live:
        if not needs_questions(live, options):
            return None
        has_tools = any(not explain_exclusion(worker, options.allowed) for worker in live.workers.values())
        count = options.count - options.count // 2 if has_tools else options.count
        latencies = measure_latencies(store.traces, pool, [spec.name for spec in live.pool.agents()])
        return estimate_agent_tasks(live, options.panel, count, latencies, journal, options.seed)


def measure_latencies(traces: TraceStore, pool: str, workers: Iterable[str]) -> dict[str, float]:
    """The median seconds of the recorded calls of each worker that has some."""
    calls = {name: [call.latency_s for call in traces.recent_calls(name, pool) if call.latency_s] for name in workers}
    return {name: median(seconds) for name, seconds in calls.items() if seconds}


def open_task_book(pool: str) -> TaskBook:
    """The book of a pool's own tasks, to read."""
    return TaskBook(find_practice_file(pool))


@contextmanager
def change_tasks(pools: PoolStore, pool: str) -> Iterator[TaskBook]:
    """The book of a pool's own tasks, to change: they would be lost beside a pool that is renamed or deleted meanwhile.
    Raises PoolNotFound."""
    with pools.hold(pool):
        yield open_task_book(pool)


def count_planned(pool: str) -> int:
    """How many of a pool's own tasks to learn from have a reference plan."""
    return sum(task.ref.split == "train" and task.oracle_turn is not None for task in list_own_tasks(pool))


def count_learnt(pool: str) -> int:
    """How many of a pool's own tasks are to learn from, with a plan or without."""
    return sum(task.ref.split == "train" for task in list_own_tasks(pool))


def make_missing_tasks(sources: Iterable[str], store: Store) -> None:
    """Make the practice tasks that a recipe's sources name and that are not there. Raises UnusableTasks."""
    for source in dict.fromkeys(sources):
        pool = source.removeprefix(SOURCE)
        if source.startswith(SOURCE) and not find_practice_file(pool).is_file():
            tasks, _ = asyncio.run(make_and_save(store, pool, PracticeOptions()))
            log.info("made %d practice tasks for the pool %s", len(tasks.lines), pool)
            for name, reason in tasks.reasons.items():
                log.info("%s is in none of them: %s", name, reason)
