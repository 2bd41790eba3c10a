"""What somebody saves while a thing is deleted or renamed goes with it, or is refused; it is never gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.traces.store import Store
from pool_registry.errors import PoolNotFound
from pool_registry.pool import Pool
from pool_registry.storage.pool_store import PoolStore
from pool_registry.worker import WorkerSpec
from studio.access.pool_rights import ReadOnlyPools
from studio.housekeeping.retention import Retention, change_retention, read_retention
from studio.housekeeping.things import Things
from studio.pages.train.tasks.task_commands import TaskCommands
from studio.prepare import prepare_store
from studio.runtime import Runtime
from tests.trust.trials import count_trials
from trainer.tasks.practice.stored import open_task_book

TRIES = 2


@pytest.fixture
def store(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    opened = prepare_store(str(tmp_path))
    yield opened
    opened.close()


def edit_until_gone(pools: PoolStore, name: str, act: Callable[[], object]) -> int:
    """Edit a pool again and again, beside `act`, until it is not there any more. Returns the last number that was
    acknowledged."""
    acknowledged = 0
    begun = threading.Event()

    def write() -> None:
        nonlocal acknowledged
        while True:
            try:
                pools.edit(name, count_up)
            except PoolNotFound:
                return
            acknowledged += 1
            begun.set()
            time.sleep(0.005)  # or SQLite lets this thread in again and again

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait(30)
    act()
    writer.join(60)
    return acknowledged


def count_up(pool: Pool) -> Pool:
    return pool.model_copy(update={"description": str(int(pool.description) + 1)})


def make_pool(store: Store, name: str) -> None:
    worker = WorkerSpec(name="calc", kind="calculator", description="Arithmetic.")
    store.pools.save(Pool(name=name, description="0", workers=(worker,)))


@pytest.mark.parametrize("number", range(TRIES))
def test_an_edit_during_a_rename_is_in_the_renamed_pool(store, number):
    make_pool(store, "old")
    last = edit_until_gone(store.pools, "old", lambda: Things(store).rename("pool", "old", "new"))
    kept = int(store.pools.latest("new").pool.description)
    count_trials(1, kept < last)
    assert kept == last, f"try {number}"


@pytest.mark.parametrize("number", range(TRIES))
def test_an_edit_during_a_deletion_is_in_the_trash(store, number):
    make_pool(store, "old")
    things = Things(store)
    last = edit_until_gone(store.pools, "old", lambda: things.delete("pool", "old"))
    things.trash.restore(things.trash.list()[0].key)
    kept = int(store.pools.latest("old").pool.description)
    count_trials(1, kept < last)
    assert kept == last, f"try {number}"


def test_a_pool_that_is_renamed_is_not_protected_under_its_old_name(store):
    make_pool(store, "old")
    read_only = ReadOnlyPools(store.engine)
    read_only.set("old", True)
    Things(store).rename("pool", "old", "new")
    assert read_only.holds("new")
    with pytest.raises(PoolNotFound, match="old"):
        read_only.set("old", True)


def test_of_two_who_change_the_retention_at_once_each_keeps_theirs(store):
    changes = [{"traces_days": 1.0}, {"jobs_days": 2.0}, {"jobs_gb": 3.0}, {"traces_mb": 4.0}, {"drawn_days": 5.0}]
    threads = [threading.Thread(target=change_retention, args=(store.home, change)) for change in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = read_retention(store.home)
    assert kept == Retention.model_validate({name: value for change in changes for name, value in change.items()})


def add_tasks_until_gone(store: Store, name: str, act: Callable[[], object]) -> set[str]:
    """Add tasks of a pool's own again and again, beside `act`, until the pool is not there any more. Returns the
    queries that were acknowledged."""
    runtime = Runtime(store)
    commands = TaskCommands(runtime)
    acknowledged: set[str] = set()
    begun = threading.Event()

    def write() -> None:
        while True:
            query = f"Question {len(acknowledged)}?"
            task = {"query": query, "answer": "1", "split": "train"}
            if not commands.run("save_task", {"pool": name, "task": task})["ok"]:
                return
            acknowledged.add(query)
            begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait(30)
    act()
    writer.join(60)
    runtime.close()
    return acknowledged


def list_queries(name: str) -> set[str]:
    return {row.task.query for row in open_task_book(name).read() if row.task is not None}


@pytest.mark.parametrize("number", range(TRIES))
def test_a_task_that_is_added_during_a_rename_goes_with_the_pool(store, number):
    make_pool(store, "old")
    acknowledged = add_tasks_until_gone(store, "old", lambda: Things(store).rename("pool", "old", "new"))
    lost = acknowledged - list_queries("new")
    count_trials(1, bool(lost))
    assert not lost, f"try {number}"


@pytest.mark.parametrize("number", range(TRIES))
def test_a_task_that_is_added_during_a_deletion_is_in_the_trash(store, number):
    make_pool(store, "old")
    things = Things(store)
    acknowledged = add_tasks_until_gone(store, "old", lambda: things.delete("pool", "old"))
    things.trash.restore(things.trash.list()[0].key)
    lost = acknowledged - list_queries("old")
    count_trials(1, bool(lost))
    assert not lost, f"try {number}"
