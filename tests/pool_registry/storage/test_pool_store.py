"""Storage of pools: versions never change, nothing is lost, broken databases are told plainly."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from pool_registry.errors import PoolNotFound, StorageError
from pool_registry.pool import Limits, Pool
from pool_registry.storage.data_folder import choose_home, find_home
from pool_registry.storage.pool_store import PoolStore
from pool_registry.storage.upgrade import open_engine
from pool_registry.worker import WorkerSpec

CALCULATOR = WorkerSpec(name="calc", kind="calculator", description="adds")


def store(folder: Path) -> PoolStore:
    return PoolStore(open_engine(find_home(folder)))


def test_an_edit_makes_a_new_version_and_keeps_the_old_one(tmp_path):
    pools = store(tmp_path)
    first = pools.save(Pool(name="p"))
    second = pools.save(Pool(name="p", workers=(CALCULATOR,)))
    assert (first.version, second.version) == (1, 2)
    assert pools.get("p", 1).pool == Pool(name="p")
    assert pools.latest("p").pool.workers == (CALCULATOR,)
    assert [stored.version for stored in pools.versions("p")] == [2, 1]


def test_saving_the_same_content_again_makes_no_version(tmp_path):
    pools = store(tmp_path)
    pools.save(Pool(name="p"))
    pools.save(Pool(name="p", workers=(CALCULATOR,)))
    assert pools.save(Pool(name="p")).version == 1
    assert pools.latest("p").version == 1 and len(pools.versions("p")) == 2


def test_pools_are_there_after_a_restart(tmp_path):
    saved = store(tmp_path).save(Pool(name="p", workers=(CALCULATOR,)))
    assert store(tmp_path).latest("p").pool == saved.pool
    assert store(tmp_path).by_hash("p", saved.pool.hash) is not None


def test_a_missing_pool_names_those_there_are(tmp_path):
    pools = store(tmp_path)
    pools.save(Pool(name="mine"))
    with pytest.raises(PoolNotFound, match="mine"):
        pools.latest("yours")


@pytest.mark.medium
def test_processes_that_save_at_once_lose_nothing(tmp_path):
    store(tmp_path)
    code = (
        "import sys; from pool_registry.storage.data_folder import find_home; from pool_registry.pool import *;"
        "from pool_registry.storage.pool_store import PoolStore;"
        "from pool_registry.storage.upgrade import open_engine;"
        "pools = PoolStore(open_engine(find_home(sys.argv[1])))\n"
        "for i in range(15):\n"
        "    pools.save(Pool(name='p', limits=Limits(max_rounds=1 + i, max_steps=int(sys.argv[2]))))"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(k)]) for k in (1, 2, 3)]
    assert [process.wait(300) for process in running] == [0, 0, 0]
    versions = [stored.version for stored in store(tmp_path).versions("p")]
    assert versions == list(range(45, 0, -1))


def test_a_database_of_a_newer_podium_is_refused_and_left_as_it_was(tmp_path):
    engine = open_engine(find_home(tmp_path))
    PoolStore(engine).save(Pool(name="p"))
    engine.dispose()  # or its last connection writes the WAL into the file whenever it is collected
    path = tmp_path / "podium.db"
    connection = sqlite3.connect(path)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(StorageError, match="newer Podium"):
        store(tmp_path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_a_file_that_is_no_database_is_told_plainly(tmp_path):
    (tmp_path / "podium.db").write_bytes(b"this is not a database" * 100)
    with pytest.raises(StorageError, match="cannot be used"):
        store(tmp_path)


def test_a_data_folder_that_cannot_be_made_is_told_plainly(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="--home"):
        find_home(tmp_path / "file" / "inside")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_data_folder_is_told_plainly(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="cannot be written"):
        find_home(tmp_path)


def test_limits_are_part_of_the_content(tmp_path):
    pools = store(tmp_path)
    pools.save(Pool(name="p"))
    assert pools.save(Pool(name="p", limits=Limits(max_rounds=2))).version == 2


def test_the_data_folder_and_its_database_are_this_accounts_alone(tmp_path):
    folder = tmp_path / "home"
    PoolStore(open_engine(find_home(folder))).save(Pool(name="p"))
    modes = {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.glob("podium.db*"))}
    assert modes.pop("home") == 0o700 and modes and set(modes.values()) == {0o600}


def test_a_data_folder_that_was_open_to_others_is_closed_and_a_project_is_left_alone(tmp_path):
    old, project = tmp_path / "old", tmp_path / "project"
    for folder, name in ((old, "podium.db"), (project, "README.md")):
        folder.mkdir()
        folder.chmod(0o755)  # whatever umask an earlier test has left
        (folder / name).touch(mode=0o644)
    open_engine(find_home(old)).dispose()
    find_home(project)
    assert old.stat().st_mode & 0o777 == 0o700 and (old / "podium.db").stat().st_mode & 0o777 == 0o600
    assert project.stat().st_mode & 0o777 == 0o755


def test_what_a_command_writes_is_private(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", "")  # put back at the end
    before = os.umask(0o022)
    try:
        home = choose_home(tmp_path / "home")
        (home.root / "anything").write_text("")
        assert (home.root / "anything").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)
