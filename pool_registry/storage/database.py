"""The engine, and the two transactions that write: an ordinary one, and the one that changes the schema.

SQLite is set up so that nothing acknowledged is lost and writers queue instead of failing: WAL, synchronous FULL, busy
time-out, foreign keys, and every writing session begins IMMEDIATE.
"""

from __future__ import annotations

import logging
import os
import random
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlmodel import Session

from pool_registry.errors import DatabaseBusy, StorageError

log = logging.getLogger(__name__)
Result = TypeVar("Result")
BUSY_S = 10.0  # SQLite itself waits this long for another writer
WRITE_DEADLINE_S = 60.0  # and we go on asking until then
UPGRADE_DEADLINE_S = 600.0  # another process may be copying a large database before it upgrades it
PAUSE_S = 0.02  # between two tries, on average
TURN_S = 0.02  # SQLite asks for so long at a try, after 1, 2, 5 and 10 ms
# Any number that no other program takes: PostgreSQL's advisory locks share one space.
UPGRADE_LOCK = 0x70_6F_64_69_75_6D


def make_engine(url: str) -> Engine:
    """Make an engine; SQLite gets our settings. Raises StorageError for a URL that no driver takes."""
    try:
        parsed = make_url(url)
        engine = create_engine(parsed, connect_args={"timeout": BUSY_S} if url.startswith("sqlite") else {})
    except (SQLAlchemyError, ImportError) as error:
        raise StorageError(f"PODIUM_DATABASE_URL cannot be used: {error}") from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _set_pragmas)
    return engine


def make_private(engine: Engine) -> None:
    """Let this account alone read an SQLite file, which is created where it is missing; its log follows its mode."""
    if engine.dialect.name != "sqlite" or not engine.url.database or engine.url.database == ":memory:":
        return
    # A file that is there is not opened: closing it would drop the locks that other connections of this process hold,
    # and another process could then take the write-ahead log away from under them.
    file = Path(engine.url.database)
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        state = file.stat()
        if state.st_uid == os.geteuid() and state.st_mode & 0o077:
            file.chmod(0o600)


def _set_pragmas(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves
    # Changing to WAL needs the file alone, and SQLite answers at once when it is not: 8 processes start at once.
    retry_while_locked(lambda: connection.execute("PRAGMA journal_mode=WAL").close(), BUSY_S)
    for pragma in ("synchronous=FULL", f"busy_timeout={BUSY_S * 1000:.0f}", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


@contextmanager
def writing(engine: Engine, *tables: str) -> Iterator[Session]:
    """Open a session that commits at its end. What it reads of `tables` nobody else changes before that: on SQLite it
    takes the write lock first and waits `WRITE_DEADLINE_S` for other writers, on PostgreSQL it locks the tables. Raises
    DatabaseBusy where another program holds it for longer."""
    with _take_turn(engine), Session(engine, expire_on_commit=False) as session:
        if engine.dialect.name == "sqlite":
            _begin_immediate(session.connection())
        elif tables and engine.dialect.name == "postgresql":
            session.connection().exec_driver_sql(f"LOCK TABLE {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE")
        yield session
        session.commit()


@contextmanager
def _take_turn(engine: Engine) -> Iterator[None]:
    """Let the threads of this process write to SQLite in the order in which they came. Each would otherwise hold one of
    the engine's few connections while it asks for the lock, and some would wait for a minute while others go in again
    and again. Who has waited for too long goes on and asks the database itself."""
    if engine.dialect.name != "sqlite":
        yield
        return
    turns = _turns.setdefault(engine, _Turns())
    ticket = object()
    turns.waiting.append(ticket)
    try:
        with turns.moved:
            turns.moved.wait_for(lambda: turns.waiting[0] is ticket, WRITE_DEADLINE_S)
        yield
    finally:
        with turns.moved:
            turns.waiting.remove(ticket)
            turns.moved.notify_all()


class _Turns:
    """The threads that want to write to one database, in the order in which they came."""

    def __init__(self) -> None:
        self.moved = threading.Condition()
        self.waiting: deque[object] = deque()


_turns: WeakKeyDictionary[Engine, _Turns] = WeakKeyDictionary()


def _begin_immediate(connection: Connection) -> None:
    """Take the write lock. SQLite itself would ask ever more seldom, and who has just written would be in again before
    whoever has waited for a minute: so it gives up soon, and begins anew like everybody else."""
    connection.exec_driver_sql(f"PRAGMA busy_timeout={TURN_S * 1000:.0f}")
    try:
        retry_while_locked(lambda: connection.exec_driver_sql("BEGIN IMMEDIATE"), WRITE_DEADLINE_S)
    except OperationalError as error:
        if not is_locked(error):
            raise
        raise DatabaseBusy(
            f"nothing was saved: another program has held the database for {WRITE_DEADLINE_S:.0f} s. Wait for it, or "
            "stop it, and try again"
        ) from error
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout={BUSY_S * 1000:.0f}")


@contextmanager
def changing_schema(engine: Engine) -> Iterator[Connection]:
    """Yield a connection in a transaction that no other process's upgrade runs beside. It commits at its end; when the
    process dies before, the database is as it was."""
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            retry_while_locked(lambda: connection.exec_driver_sql("BEGIN IMMEDIATE"), UPGRADE_DEADLINE_S)
        elif engine.dialect.name == "postgresql":
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (UPGRADE_LOCK,))
        yield connection


def retry_while_locked(call: Callable[[], Result], deadline_s: float) -> Result:
    """Call until no other process has the database locked, for `deadline_s` seconds at most; then raise the error."""
    end = time.monotonic() + deadline_s
    warned = False
    while True:
        try:
            return call()
        except (OperationalError, sqlite3.OperationalError) as error:
            if not is_locked(error) or time.monotonic() > end:
                raise
        if not warned:
            log.info("another process holds the database; waiting up to %.0f s", deadline_s)
            warned = True
        time.sleep(random.uniform(0, 2 * PAUSE_S))  # noqa: S311  waiters that keep step would collide


def is_locked(error: Exception) -> bool:
    """Whether SQLite refused because another connection holds its lock."""
    return read_sqlite_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def read_sqlite_code(error: BaseException) -> int | None:
    """SQLite's primary result code behind an error, or None."""
    code = getattr(getattr(error, "orig", None) or error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
