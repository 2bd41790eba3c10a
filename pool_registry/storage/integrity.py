"""Whether the database's file is whole: a damaged page is otherwise noticed only by whoever reads it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from pool_registry.errors import StorageError
from pool_registry.storage.backups import find_newest_whole, list_backups
from pool_registry.storage.data_folder import Home

MOST_FAULTS = 3  # named in the sentence; one is enough to act on
AT_START_BYTES = 500e6  # read in about a second; a larger file is checked when its daily copy is made


def find_damage(home: Home, thorough: bool = True) -> str:
    """What is damaged in the SQLite file and which copy opens, as a sentence; "" where all is whole.

    `thorough` also compares every index with its table and reads every row. A server's database has its own tools.
    Raises StorageError where the file cannot be looked at.
    """
    database = home.database_file
    if database is None or not database.exists():
        return ""
    try:
        faults = _list_faults(database, thorough)
    except sqlite3.DatabaseError as error:
        raise StorageError(f"the database {database} cannot be checked: {error}") from error
    return f"the database {database} is damaged ({'; '.join(faults)}). {advise_copy(home)}" if faults else ""


def find_damage_at_start(home: Home) -> str:
    """`find_damage` in the time that a start may take: pages alone, and not of a very large file."""
    database = home.database_file
    if database is None or not database.exists() or database.stat().st_size > AT_START_BYTES:
        return ""
    try:
        return find_damage(home, thorough=False)
    except StorageError:
        return ""  # whoever opens it next says what is wrong: it is locked, or may not be read


def advise_copy(home: Home) -> str:
    """Which copy of the database to put back, and how."""
    copy = find_newest_whole(home)
    if copy is not None:
        return (
            f"Stop what uses it: then `podium restore {copy.name}` puts the newest whole copy back and keeps the "
            "present file beside it"
        )
    damaged = "No copy of it can be read" if list_backups(home) else "There is no copy of it"
    return f"{damaged} in {home.backups}: put one of your own there and use `podium restore`"


def _list_faults(database: Path, thorough: bool) -> list[str]:
    check = "integrity_check" if thorough else "quick_check"
    try:
        # Only to read: the last connection that may write would put the log into the file as it closes.
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True, timeout=30)) as connection:
            rows = connection.execute(f"PRAGMA {check}({MOST_FAULTS})").fetchall()
            faults = [line for (text,) in rows for line in str(text).splitlines() if line != "ok"]
            if thorough and not faults:
                _read_tables(connection)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
        return [str(error)]
    return [fault for fault in faults if not fault.startswith("***")][:MOST_FAULTS] or faults[:1]


def _read_tables(connection: sqlite3.Connection) -> None:
    """Read every row once. Raises sqlite3.DatabaseError where a table cannot be read."""
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in names:
        quoted = str(name).replace('"', '""')
        for _ in connection.execute(f'SELECT * FROM "{quoted}"'):  # noqa: S608  the file's own table, quoted
            pass
