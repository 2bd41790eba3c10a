"""No acknowledged edit is lost: what savers were told is saved stands in the pool, whoever else saves or is killed."""

from __future__ import annotations

import itertools
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from pool_registry.errors import DatabaseBusy, InvalidPool, PoolNotFound
from pool_registry.pool import Limits, Pool
from pool_registry.pools.pool_merge import EditConflict
from pool_registry.starter import seed_starter
from pool_registry.storage.data_folder import find_home
from pool_registry.storage.pool_store import PoolStore
from pool_registry.storage.upgrade import open_engine
from pool_registry.worker import WorkerSpec
from tests.machine import needs
from tests.pool_registry.support.saver import POOL, read_number, save_edits
from tests.postgres import postgres, programs
from tests.trust.trials import choose_trials, count_trials

ROOT = Path(__file__).parents[3]
SAVERS = 20
LIMIT_S = 1800


def numbered(count: int) -> Pool:
    """A pool of workers whose descriptions count the edits of a saver each."""
    workers = [WorkerSpec(name=f"w{number}", kind="calculator", description="0") for number in range(count)]
    return Pool(name=POOL, workers=tuple(workers))


@pytest.fixture
def pools(tmp_path) -> PoolStore:
    return PoolStore(open_engine(find_home(tmp_path)))


def start(home: Path, first: int, edits: int) -> subprocess.Popen[bytes]:
    """A process with half of the savers."""
    numbers = [str(number) for number in (first, SAVERS // 2, edits)]
    command = [
        sys.executable,
        "-m",
        "tests.pool_registry.support.saver",
        str(home),
        *numbers,
        str(home / "acknowledged"),
    ]
    return subprocess.Popen(command, cwd=ROOT)


def wait_for_edits(file: Path, count: int) -> None:
    """Wait until so many edits have been acknowledged."""
    end = time.monotonic() + LIMIT_S
    while not file.exists() or file.read_bytes().count(b"\n") < count:
        assert time.monotonic() < end, "the savers stand still"
        time.sleep(0.005)


def find_lost(pools: PoolStore, file: Path, savers: int) -> list[str]:
    """The acknowledged edits that some later version does not hold."""
    numbers = [
        [read_number(stored.pool, saver) for saver in range(savers)] for stored in reversed(pools.versions(POOL))
    ]
    lost = [
        f"saver {saver}: {after[saver]} after {before[saver]}"
        for before, after in itertools.pairwise(numbers)
        for saver in range(savers)
        if after[saver] < before[saver]
    ]
    acknowledged = [tuple(map(int, line.split())) for line in file.read_text().splitlines()]
    kept = {(saver, row[saver]) for row in numbers for saver in range(savers)}
    final = pools.latest(POOL).pool
    lost += [
        f"saver {saver}: {number} is in no version" for saver, number in acknowledged if (saver, number) not in kept
    ]
    return lost + [f"saver {s}: {n} is not in the pool" for s, n in acknowledged if read_number(final, s) < n]


@pytest.mark.medium
def test_no_acknowledged_edit_is_lost_when_one_of_two_processes_is_killed(tmp_path, pools):
    edits = choose_trials(2)
    pools.save(numbered(SAVERS))
    running = [start(tmp_path, first, edits) for first in (0, SAVERS // 2)]
    wait_for_edits(tmp_path / "acknowledged", random.randint(1, SAVERS * edits // 2))
    killed = random.choice((0, 1))
    running[killed].send_signal(signal.SIGKILL)
    running[killed].wait(60)
    running[killed] = start(tmp_path, killed * SAVERS // 2, edits)
    assert [process.wait(LIMIT_S) for process in running] == [0, 0]
    lost = find_lost(pools, tmp_path / "acknowledged", SAVERS)
    count_trials((tmp_path / "acknowledged").read_bytes().count(b"\n"), len(lost))
    assert not lost
    final = pools.latest(POOL).pool
    assert [read_number(final, saver) for saver in range(SAVERS)] == [edits] * SAVERS


@pytest.mark.slow
@needs(programs() is not None, "PostgreSQL")
def test_no_acknowledged_edit_is_lost_in_postgresql(tmp_path, monkeypatch):
    with postgres() as url:
        monkeypatch.setenv("PODIUM_DATABASE_URL", url)
        engines = [open_engine(find_home(tmp_path)) for _ in range(2)]
        try:
            edit_in_threads([PoolStore(engine) for engine in engines], tmp_path / "acknowledged")
        finally:
            for engine in engines:
                engine.dispose()


def test_no_acknowledged_edit_is_lost_between_two_stores(tmp_path):
    edit_in_threads([PoolStore(open_engine(find_home(tmp_path))) for _ in range(2)], tmp_path / "acknowledged")


def test_more_people_than_the_database_has_connections_edit_at_once(pools, tmp_path):
    edit_in_threads([pools], tmp_path / "acknowledged", savers=18, edits=2)


def edit_in_threads(stores: list[PoolStore], file: Path, savers: int = 6, edits: int = 3) -> None:
    """Let savers edit at once through several stores, and look what the pool holds then."""
    stores[0].save(numbered(savers))
    with file.open("ab", buffering=0) as notes:
        threads = [
            threading.Thread(target=save_edits, args=(stores[saver % len(stores)], saver, edits, notes.fileno()))
            for saver in range(savers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    lost = find_lost(stores[0], file, savers)
    count_trials(savers * edits, len(lost))
    assert not lost
    assert Counter(file.read_text().split()[::2]) == {str(saver): edits for saver in range(savers)}


def test_an_edit_of_what_another_has_changed_since_is_refused_and_nothing_is_saved(pools):
    seen = pools.save(numbered(2)).pool
    pools.edit(POOL, lambda pool: describe(pool, "theirs"))
    with pytest.raises(EditConflict, match=r"theirs.*yours"):
        pools.edit(POOL, lambda pool: describe(pool, "yours"), seen.hash)
    assert pools.latest(POOL).version == 2 and pools.latest(POOL).pool.worker("w0").description == "theirs"
    conflict_head = pools.latest(POOL).pool.hash
    assert pools.edit(POOL, lambda pool: describe(pool, "yours"), conflict_head).stored.version == 3


def describe(pool: Pool, words: str) -> Pool:
    return pool.with_worker(pool.worker("w0").model_copy(update={"description": words}), "w0")


def test_an_edit_of_a_stale_version_keeps_what_others_have_saved(pools):
    seen = pools.save(numbered(2)).pool
    pools.edit(POOL, lambda pool: describe(pool, "theirs"))
    saved = pools.edit(POOL, lambda pool: pool.model_copy(update={"limits": Limits(max_steps=7)}), seen.hash)
    assert saved.is_merged and saved.stored.pool.worker("w0").description == "theirs"
    assert saved.stored.pool.limits.max_steps == 7


def test_an_edit_without_a_version_is_made_to_the_current_one(pools):
    pools.save(numbered(2))
    pools.edit(POOL, lambda pool: describe(pool, "theirs"))
    saved = pools.edit(POOL, lambda pool: pool.without_worker("w1"))
    assert not saved.is_merged and saved.stored.pool.worker("w0").description == "theirs"


def test_an_edit_of_a_version_that_is_not_here_is_refused(pools):
    pools.save(numbered(1))
    with pytest.raises(InvalidPool, match="open the pool again"):
        pools.edit(POOL, lambda pool: pool, "0" * 64)
    with pytest.raises(PoolNotFound, match=POOL):
        pools.edit("other", lambda pool: pool)


def test_of_two_who_make_a_pool_of_one_name_the_second_is_told(pools):
    pools.create(numbered(1))
    with pytest.raises(InvalidPool, match="already"):
        pools.create(Pool(name=POOL))
    assert pools.latest(POOL).version == 1


def test_a_second_start_that_saw_no_starter_yet_puts_no_edit_of_it_back(pools, monkeypatch):
    seed_starter(pools)
    edited = pools.edit("starter", lambda pool: pool.model_copy(update={"description": "mine"})).stored
    monkeypatch.setattr(pools, "names", list)
    seed_starter(pools)
    assert pools.latest("starter").version == edited.version


def test_a_database_that_stays_locked_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("pool_registry.storage.database.WRITE_DEADLINE_S", 0.1)
    engine = open_engine(find_home(tmp_path))
    pools = PoolStore(engine)
    with sqlite3.connect(engine.url.database, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseBusy, match="nothing was saved: another program has held the database"):
            pools.create(numbered(1))
        other.execute("ROLLBACK")
    pools.create(numbered(1))
