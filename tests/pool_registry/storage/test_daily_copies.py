"""A copy of the database a day, checked; and damage that is found before somebody reads it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from orchestrator.traces.store import Store
from pool_registry.errors import StorageError
from pool_registry.storage import backups
from pool_registry.storage.backups import keep_daily_copy, list_backups, restore_backup
from pool_registry.storage.data_folder import find_home
from pool_registry.storage.database import make_engine
from pool_registry.storage.integrity import find_damage, find_damage_at_start
from pool_registry.storage.upgrade import list_revisions
from studio.__main__ import app
from studio.housekeeping.daily import copy_if_due
from studio.housekeeping.retention import change_retention
from studio.prepare import open_whole_store, prepare_store

DAY_S = 86_400


@pytest.fixture
def store(tmp_path):
    store = prepare_store(str(tmp_path / "home"))
    yield store
    store.close()


def leave(store: Store) -> None:
    """Hold the file no longer, as a program that has ended."""
    store.close()
    store.engine.dispose()


def grow_old(store: Store, days: float) -> None:
    for copy in store.home.backups.glob("daily-*.db"):
        at = copy.stat().st_mtime - days * DAY_S
        os.utime(copy, (at, at))


def list_daily(store: Store) -> list[str]:
    return [backup.name for backup in list_backups(store.home) if backup.name.startswith("daily-")]


def damage(database: Path) -> None:
    """Overwrite the middle of the file, as a bad disk does, and leave its first pages."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    with database.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xa5" * (database.stat().st_size - 8192))


def test_a_copy_is_made_once_a_day_and_can_be_put_back(store):
    copy_if_due(store)
    copy_if_due(store)
    (first,) = list_daily(store)
    grow_old(store, 1.01)
    copy_if_due(store)
    assert len(list_daily(store)) == 2
    leave(store)
    restore_backup(store.home, first, list_revisions())
    again = prepare_store(str(store.home.root))
    assert "starter" in again.pools.names()
    leave(again)


@given(days=st.lists(st.floats(0, 60), min_size=1, max_size=12), most=st.integers(1, 9), kept_days=st.floats(0.5, 40))
@settings(max_examples=60, deadline=None)
def test_copies_go_by_number_and_age_and_the_newest_stays(tmp_path_factory, days, most, kept_days):
    folder = tmp_path_factory.mktemp("copies")
    ages = {}
    for number, day in enumerate(days):
        path = folder / f"daily-{number}.db"
        path.touch()
        ages[path] = backups.DAY * day
    backups._delete_old(ages, most, kept_days)
    left = {path for path in ages if path.exists()}
    assert min(ages, key=lambda path: ages[path]) in left and len(left) <= most
    assert sum(ages[path] > backups.DAY * kept_days for path in left) <= 1
    assert len(left) == most or all(ages[path] > backups.DAY * kept_days for path in set(ages) - left)


def test_the_setting_says_how_many_stay_and_0_makes_none(store):
    change_retention(store.home, {"copies": 0})
    copy_if_due(store)
    assert not list_daily(store)
    command = CliRunner()
    done = command.invoke(app, ["tidy", "--copies", "2", "--copies-days", "9", "--home", str(store.home.root)])
    assert done.exit_code == 0 and "copies 2, copies_days 9" in done.output
    for _ in range(4):
        copy_if_due(store)
        grow_old(store, 1.5)
    assert len(list_daily(store)) == 2


def test_two_studios_on_one_folder_make_one_copy(store):
    other = prepare_store(str(store.home.root))
    threads = [threading.Thread(target=copy_if_due, args=(one,)) for one in (store, other) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    leave(other)
    assert len(list_daily(store)) == 1


def test_without_room_no_copy_is_made_and_the_sentence_says_how_much_it_takes(store, monkeypatch):
    monkeypatch.setattr(backups.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with pytest.raises(StorageError, match=r"it takes \d+ MB, and 0 MB are free .*podium tidy --copies N"):
        copy_if_due(store)
    assert not list_daily(store)


def test_a_damaged_database_gives_no_copy_and_the_older_ones_stay(store):
    keep_daily_copy(store.engine, store.home, 1, 30)
    (whole,) = list_daily(store)
    leave(store)
    damage(store.home.root / "podium.db")
    grow_old(store, 2)
    engine = make_engine(store.home.database_url)
    with pytest.raises(StorageError, match=r"was not made: .*podium doctor"):
        keep_daily_copy(engine, store.home, 1, 30)
    engine.dispose()
    assert list_daily(store) == [whole]


def test_a_damaged_page_is_found_at_the_start_and_by_the_doctor_with_the_copy_that_opens(store, tmp_path):
    keep_daily_copy(store.engine, store.home, 7, 30)
    (whole,) = list_daily(store)
    assert find_damage(store.home) == find_damage_at_start(store.home) == ""
    leave(store)
    damage(store.home.root / "podium.db")
    newer = store.home.backups / "daily-99999999-000000-000000.db"
    newer.write_bytes((store.home.root / "podium.db").read_bytes())
    with pytest.raises(StorageError, match=f"is damaged .*podium restore {whole}"):
        open_whole_store(str(store.home.root))
    environment = {**os.environ, "PODIUM_HOME": str(store.home.root)}
    done = subprocess.run(
        [sys.executable, "-m", "studio", "doctor", "--quick"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode != 0 and f"podium restore {whole}" in done.stdout
    assert "Traceback" not in done.stderr
    restore_backup(store.home, whole, list_revisions())
    assert find_damage(store.home) == ""


def test_nothing_is_wrong_with_a_folder_that_holds_no_database(tmp_path):
    assert find_damage(find_home(tmp_path / "new")) == ""


def test_a_copy_that_a_killed_process_began_is_gone_after_the_next(store):
    store.home.backups.mkdir(exist_ok=True)
    begun = store.home.backups / ".daily-20260101-000000-000000.db.1-1.draft"
    begun.write_bytes(b"half")
    os.utime(begun, (time.time() - 9, time.time() - 9))
    copy_if_due(store)
    assert not begun.exists() and len(list_daily(store)) == 1


def test_a_second_store_of_one_process_leaves_the_locks_of_the_first(store):
    """A file that a process closes loses all its locks there: another program would then take the log away."""
    with store.engine.connect() as connection:
        connection.exec_driver_sql("SELECT 1 FROM pool_head").all()
        again = prepare_store(str(store.home.root))
        leave(again)
        look = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('PRAGMA journal_mode=DELETE')"
        command = [sys.executable, "-c", look, str(store.home.root / "podium.db")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "database is locked" in done.stderr


def test_a_damaged_database_without_a_copy_is_opened_with_a_warning(store, caplog):
    """What can still be read of it is all that there is."""
    leave(store)
    database = store.home.root / "podium.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("CREATE TABLE filler (text TEXT)")
        connection.executemany("INSERT INTO filler VALUES (?)", [("x" * 3000,)] * 50)
        connection.commit()
    with database.open("r+b") as file:  # the last pages: those of the filler
        file.seek(database.stat().st_size - 60_000)
        file.write(b"\xa5" * 60_000)
    assert find_damage(store.home)
    opened = open_whole_store(str(store.home.root))
    assert "There is no copy of it" in caplog.text and "starter" in opened.pools.names()
    leave(opened)
