"""Upgrades of the database: killed anywhere, it opens again at the old or the new schema; racers wait.

A kill leaves on disk what a copy of the database file and its write-ahead log holds at that moment. So one upgrade,
copied after each of its statements, shows every place at which it could have been killed.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from sqlalchemy import Engine, event
from typer.testing import CliRunner

from pool_registry.errors import StorageError
from pool_registry.storage.backups import list_backups, restore_backup
from pool_registry.storage.data_folder import Home, find_home
from pool_registry.storage.upgrade import list_revisions, open_engine, upgrade_to
from studio.__main__ import app
from studio.prepare import prepare_store
from tests.postgres import postgres
from tests.postgres import programs as postgres_programs
from tests.trainer.support.waiting import until
from tests.trust.trials import choose_trials, count_trials

REVISIONS = list_revisions()
STARTS = (None, *REVISIONS[:-1])
STATE = ("podium.db", "podium.db-wal")


def make_database(folder: Path, revision: str | None) -> None:
    """A database as the Podium of that revision left it, with a pool in it; none for None."""
    folder.mkdir(exist_ok=True)
    if revision is None:
        return
    upgrade_to(find_home(folder), revision)
    with closing(sqlite3.connect(folder / "podium.db")) as connection:
        connection.execute("INSERT INTO pool_head (name, version) VALUES ('mine', 7)")
        connection.commit()


@contextmanager
def after_statements(call: Callable[[int], None]) -> Iterator[list[int]]:
    """Call `call` with the number of each statement that SQLAlchemy has executed. Yields those numbers."""
    numbers: list[int] = []

    def count(*_: object) -> None:
        numbers.append(len(numbers) + 1)
        call(len(numbers))

    event.listen(Engine, "after_cursor_execute", count)
    try:
        yield numbers
    finally:
        event.remove(Engine, "after_cursor_execute", count)


def read_schema(folder: Path) -> tuple[str | None, list[str]]:
    """The revision, and what the database holds, without opening it through Podium."""
    with closing(sqlite3.connect(folder / "podium.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        objects = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()
        if not objects:
            return None, []
        (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return revision, sorted(text for (text,) in objects)


def check_usable(folder: Path, revision: str | None, whole: dict[str | None, list[str]]) -> None:
    """The database is whole at the old or the new schema, opens, and has kept its pool."""
    found, schema = read_schema(folder)
    assert found in (revision, REVISIONS[-1]) and schema == whole[found]
    open_engine(find_home(folder)).dispose()
    found, schema = read_schema(folder)
    assert found == REVISIONS[-1] and schema == whole[found]
    if revision is not None:
        with closing(sqlite3.connect(folder / "podium.db")) as connection:
            assert connection.execute("SELECT version FROM pool_head WHERE name = 'mine'").fetchone() == (7,)


@pytest.fixture(scope="module")
def whole_schemas(tmp_path_factory: pytest.TempPathFactory) -> dict[str | None, list[str]]:
    """What a database holds at each revision."""
    folder = tmp_path_factory.mktemp("schemas")
    schemas: dict[str | None, list[str]] = {None: []}
    for revision in REVISIONS:
        make_database(folder / revision, revision)
        schemas[revision] = read_schema(folder / revision)[1]
    return schemas


@pytest.mark.medium
@pytest.mark.parametrize("revision", STARTS)
def test_an_upgrade_killed_after_any_statement_leaves_a_usable_database(tmp_path, revision, whole_schemas):
    make_database(tmp_path / "start", revision)
    states: dict[tuple[bytes, ...], int] = {}

    def keep_state(number: int) -> None:
        files = [tmp_path / "start" / name for name in STATE]
        states.setdefault(tuple(file.read_bytes() if file.exists() else b"" for file in files), number)

    with after_statements(keep_state) as numbers:
        open_engine(find_home(tmp_path / "start")).dispose()
    assert len(numbers) > 5
    for state, number in states.items():
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, content in zip(STATE, state, strict=True):
            if content:
                (folder / name).write_bytes(content)
        count_trials()
        check_usable(folder, revision, whole_schemas)


@pytest.mark.slow
@pytest.mark.parametrize("revision", STARTS)
def test_an_upgrade_killed_by_the_kernel_leaves_a_usable_database(tmp_path, revision, whole_schemas):
    """SIGKILL after each statement, and once more in the commit."""
    make_database(tmp_path / "start", revision)
    number, ended = 0, False
    while not ended:
        number += 1
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "start", folder)
        ended = not upgrade_until_killed(folder, number)
        count_trials()
        check_usable(folder, revision, whole_schemas)
    assert number > 5


def upgrade_until_killed(folder: Path, number: int) -> bool:
    """Upgrade in a child that kills itself after statement `number`. False when it had fewer."""
    child = os.fork()
    if child == 0:
        with after_statements(lambda count: os.kill(os.getpid(), signal.SIGKILL) if count == number else None):
            open_engine(find_home(folder))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def start_at_once(folder: Path, processes: int) -> list[int]:
    """Start Podium's store in as many processes at the same moment. Returns their exit codes."""
    context = multiprocessing.get_context("fork")  # so that all are past their imports
    barrier = context.Barrier(processes)
    running = [context.Process(target=start_behind, args=(barrier, folder)) for _ in range(processes)]
    for process in running:
        process.start()
    for process in running:
        process.join(60)
    return [process.exitcode for process in running]


def start_behind(barrier: Barrier, folder: Path) -> None:
    barrier.wait()
    store = prepare_store(str(folder))
    assert store.pools.names() == ["starter"]
    store.close()


@pytest.mark.medium
@pytest.mark.parametrize("revision", [None, "0002"])
def test_eight_processes_that_start_at_once_all_start(tmp_path, revision):
    for number in range(choose_trials(1)):
        home = tmp_path / str(number)
        home.mkdir()
        if revision is not None:
            upgrade_to(find_home(home), revision)
        codes = start_at_once(home, 8)
        count_trials(8, sum(code != 0 for code in codes))
        assert codes == [0] * 8
        assert len(list((home / "backups").glob("*.db"))) == (0 if revision is None else 1)


@pytest.mark.skipif(postgres_programs() is None, reason="PostgreSQL is not installed")
@pytest.mark.medium
def test_processes_that_start_at_once_all_start_on_postgresql(tmp_path, monkeypatch):
    with postgres() as url:
        monkeypatch.setenv("PODIUM_DATABASE_URL", url.replace("postgresql:", "postgresql+psycopg:"))
        assert start_at_once(tmp_path, 8) == [0] * 8
        count_trials(8)


@pytest.mark.skipif(postgres_programs() is None, reason="PostgreSQL is not installed")
@pytest.mark.medium
@pytest.mark.parametrize("role", ["podium", "guest"])
def test_a_text_is_searched_for_by_an_index_where_postgresql_can_have_one(tmp_path, monkeypatch, caplog, role):
    import psycopg

    from orchestrator.engine.events import EpisodeStarted
    from orchestrator.traces.store import TraceFilter, open_store

    with postgres() as url, psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE ROLE guest LOGIN")  # it may make tables, and no extension
        admin.execute("GRANT ALL ON SCHEMA public TO guest")
        for way in ("seqscan", "indexscan"):  # so few rows are read whole otherwise
            admin.execute(f"ALTER ROLE {role} SET enable_{way} = off")
        monkeypatch.setenv("PODIUM_DATABASE_URL", url.replace("postgresql://podium", f"postgresql+psycopg://{role}"))
        store = open_store(find_home(tmp_path))
        for number in range(40):
            query = f"Is 100% of plan_{number} done?"
            store.traces.append(f"e{number}", EpisodeStarted(query, "p", "h", "o", {}, "2026-01-01"))
        store.traces.flush()
        assert [row.id for row in store.traces.search(TraceFilter(text="PLAN_7 "))] == ["e7"]
        assert len(store.traces.search(TraceFilter(text="100%", limit=100))) == 40
        store.close()
        count = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'ix_episode_text'"
        if role == "podium":
            until(lambda: admin.execute(count).fetchone()[0] >= 2, seconds=20)  # they come when the session has ended
        else:
            assert admin.execute(count).fetchone() is None
    assert ("CREATE EXTENSION pg_trgm" in caplog.text) == (role == "guest")


# What is said when it cannot be opened


def refusal(folder: Path) -> str:
    with pytest.raises(StorageError) as refused:
        open_engine(find_home(folder))
    return str(refused.value)


def test_a_database_in_use_is_waited_for_and_then_left_alone(tmp_path, monkeypatch):
    make_database(tmp_path / "home", "0004")
    monkeypatch.setattr("pool_registry.storage.database.UPGRADE_DEADLINE_S", 0.1)
    monkeypatch.setattr("pool_registry.storage.database.BUSY_S", 0.1)
    with closing(sqlite3.connect(tmp_path / "home" / "podium.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        text = refusal(tmp_path / "home")
    assert "locked" in text and "Wait for that" in text and "away" not in text
    open_engine(find_home(tmp_path / "home")).dispose()


def test_a_full_disk_leaves_the_old_schema_and_says_so(tmp_path, monkeypatch, whole_schemas):
    make_database(tmp_path / "home", "0004")

    def fill(connection: sqlite3.Connection, _record: object) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages}")

    event.listen(Engine, "connect", fill)
    try:
        text = refusal(tmp_path / "home")
    finally:
        event.remove(Engine, "connect", fill)
    assert "full" in text and "free 68 MB on the disk of" in text and "away" not in text
    check_usable(tmp_path / "home", "0004", whole_schemas)


def test_an_unreachable_server_is_no_damaged_database(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_DATABASE_URL", "postgresql+psycopg://podium@127.0.0.1:9/podium")
    text = refusal(tmp_path)
    assert "Check that the server runs" in text and "restore" not in text and "away" not in text


def test_a_damaged_database_names_the_copy_to_restore(tmp_path):
    make_database(tmp_path / "home", "0004")
    open_engine(find_home(tmp_path / "home")).dispose()
    (tmp_path / "home" / "podium.db").write_bytes(b"no database" * 999)
    (backup,) = list_backups(find_home(tmp_path / "home"))
    assert f"podium restore {backup.name}" in refusal(tmp_path / "home")


def test_a_database_that_an_earlier_version_left_half_upgraded_names_the_copy_to_restore(tmp_path):
    make_database(tmp_path / "home", "0004")
    open_engine(find_home(tmp_path / "home")).dispose()
    with closing(sqlite3.connect(tmp_path / "home" / "podium.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0006'")
        connection.commit()
    text = refusal(tmp_path / "home")
    assert "already exists" in text and "podium restore" in text


# Putting a copy back


@pytest.mark.parametrize("present", ["healthy", "damaged", "gone"])
def test_a_copy_is_put_back_and_the_present_database_is_kept(tmp_path, present):
    home = find_home(tmp_path / "home")
    make_database_with_backup(home)
    if present == "damaged":
        home.root.joinpath("podium.db").write_bytes(b"no database" * 999)
    elif present == "gone":
        for name in STATE:
            home.root.joinpath(name).unlink(missing_ok=True)
    (backup,) = list_backups(home)
    assert (backup.schema, backup.pools) == ("0004", 1)
    kept = restore_backup(home, backup.name, REVISIONS)
    assert (kept is None) == (present == "gone")
    open_engine(home).dispose()
    with closing(sqlite3.connect(home.root / "podium.db")) as connection:
        assert connection.execute("SELECT name, version FROM pool_head").fetchall() == [("mine", 7)]
    if present == "healthy":
        assert kept is not None
        with closing(sqlite3.connect(kept)) as connection:
            assert connection.execute("SELECT name FROM pool_head ORDER BY name").fetchall() == [("mine",), ("new",)]


def make_database_with_backup(home: Home) -> None:
    """An upgraded database, with a pool that the copy from before does not have."""
    make_database(home.root, "0004")
    open_engine(home).dispose()
    with closing(sqlite3.connect(home.root / "podium.db")) as connection:
        connection.execute("INSERT INTO pool_head (name, version) VALUES ('new', 1)")
        connection.commit()


def test_nothing_is_put_back_under_a_running_studio(tmp_path):
    home = find_home(tmp_path / "home")
    make_database_with_backup(home)
    engine = open_engine(home)
    with engine.connect() as connection:
        connection.exec_driver_sql("SELECT 1")
        with pytest.raises(StorageError, match="in use; stop the studio"):
            restore_backup(home, list_backups(home)[0].name, REVISIONS)
    engine.dispose()


@pytest.mark.parametrize(("content", "reason"), [(b"no database" * 99, "damaged"), (b"", "damaged")])
def test_a_copy_that_is_damaged_is_refused(tmp_path, content, reason):
    home = find_home(tmp_path / "home")
    make_database_with_backup(home)
    (home.backups / "bad.db").write_bytes(content)
    before = (home.root / "podium.db").read_bytes()
    with pytest.raises(StorageError, match=reason):
        restore_backup(home, "bad.db", REVISIONS)
    with pytest.raises(StorageError, match=r"no copy 'nope'.*bad\.db"):
        restore_backup(home, "nope", REVISIONS)
    assert (home.root / "podium.db").read_bytes() == before


def test_the_command_lists_copies_and_puts_one_back(tmp_path):
    home = find_home(tmp_path / "home")
    make_database_with_backup(home)
    command = CliRunner()
    listing = command.invoke(app, ["restore", "--home", str(home.root)])
    (backup,) = list_backups(home)
    assert listing.output.strip() == f"{backup.name}  schema 0004  1 pools, 0 traces"
    done = command.invoke(app, ["restore", backup.name, "--home", str(home.root)])
    assert done.exit_code == 0 and f"Restored {backup.name}." in done.output
