"""Copies of the database: one is made before each upgrade and one a day, and `podium restore` puts one back."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from pool_registry.atomic_write import draft_file, lock_file
from pool_registry.errors import StorageError
from pool_registry.storage.data_folder import Home

SIDE_FILES = ("-wal", "-shm")  # SQLite's, beside the database
DAILY = "daily"  # what the names of daily copies begin with
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy of the database. `schema` is empty for a copy that cannot be read."""

    path: Path
    schema: str
    pools: int
    episodes: int

    @property
    def name(self) -> str:
        return self.path.name


def back_up(engine: Engine, home: Home, schema: str) -> Path | None:
    """Copy the SQLite file consistently to `backups/`; None for other databases (use their own tools).

    The copy is there as a whole or not at all.
    """
    if engine.dialect.name != "sqlite":
        return None
    _make_folder(home)
    target = home.backups / f"{_stamp('podium')}-schema-{schema}.db"
    with draft_file(target) as draft:
        _copy_into(engine, draft)
    return target


def keep_daily_copy(engine: Engine, home: Home, most: int, days: float) -> Path | None:
    """Copy the SQLite file to `backups/` where the newest daily copy is a day old, and check that the copy opens.

    `most` copies of at most `days` days stay; the newest always does. Returns the new copy, None where none is due
    (`most` 0, or not SQLite). Raises StorageError where there is no room, or the copy is damaged; older ones stay then.
    """
    if engine.dialect.name != "sqlite" or most < 1:
        return None
    home.backups.mkdir(exist_ok=True)
    with lock_file(home.backups / ".daily.lock"):  # of two studios on one folder one copies
        for draft in home.backups.glob(f".{DAILY}-*.draft"):  # of a process that was killed
            draft.unlink(missing_ok=True)
        ages = _list_daily(home)
        target = None
        if not ages or min(ages.values()) >= DAY:
            target = _copy_today(engine, home)
            ages[target] = timedelta()
        _delete_old(ages, most, days)
    return target


def find_newest_whole(home: Home) -> Backup | None:
    """The newest copy that can be read."""
    return next((backup for backup in list_backups(home) if backup.schema), None)


def list_backups(home: Home) -> list[Backup]:
    """Every copy in `backups/`, the newest first."""
    paths = sorted(home.backups.glob("*.db"), key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)
    return [_read_backup(path) for path in paths]


def restore_backup(home: Home, name: str, known_schemas: Sequence[str]) -> Path | None:
    """Make a copy the database. Returns where the present one was moved to, None when there was none.

    Raises StorageError when there is no such copy, it is damaged or of a newer Podium, or the database is in use.
    """
    database = _find_database(home)
    backup = _choose(home, name)
    if backup.schema not in known_schemas:
        raise StorageError(_why_unfit(backup))
    kept = _set_aside(home, database) if database.exists() else None
    with draft_file(database) as draft:
        shutil.copyfile(backup.path, draft)
        # The old log belongs to the old file; it has been kept with it.
        for suffix in SIDE_FILES:
            database.with_name(database.name + suffix).unlink(missing_ok=True)
    return kept


def _copy_into(engine: Engine, file: Path) -> None:
    # A connection of its own: VACUUM runs in no transaction, and the caller may be in one.
    with engine.connect() as connection:
        connection.exec_driver_sql("VACUUM INTO ?", (str(file),))


def _copy_today(engine: Engine, home: Home) -> Path:
    """Make a copy and check it. Raises StorageError; no copy is left then."""
    size = _find_database(home).stat().st_size
    free = shutil.disk_usage(home.backups).free
    if free < 2 * size:  # the copy, and as much again for what the studio writes meanwhile
        raise StorageError(
            f"today's copy of the database was not made: it takes {size / 1e6:.0f} MB, and {free / 1e6:.0f} MB are "
            f"free in {home.backups}. Free some, or make fewer copies: `podium tidy --copies N`"
        )
    target = home.backups / f"{_stamp(DAILY)}.db"
    try:
        with draft_file(target) as draft:
            _copy_into(engine, draft)
            if not _read_backup(draft).schema:
                raise StorageError("its copy cannot be read")
    except (DBAPIError, OSError, StorageError) as error:
        reason = str(getattr(error, "orig", None) or error)
        raise StorageError(
            f"today's copy of the database was not made: {reason}. `podium doctor` says whether the database is damaged"
        ) from error
    return target


def _list_daily(home: Home) -> dict[Path, timedelta]:
    """The daily copies and their ages; one from the future (a clock that was set back) counts as new."""
    now = datetime.now(UTC).timestamp()
    paths = home.backups.glob(f"{DAILY}-*.db")
    return {path: timedelta(seconds=max(0.0, now - path.stat().st_mtime)) for path in paths}


def _delete_old(ages: dict[Path, timedelta], most: int, days: float) -> None:
    newest_first = sorted(ages, key=lambda path: ages[path])
    for number, path in enumerate(newest_first):
        if number and (number >= most or ages[path] > timedelta(days=days)):
            path.unlink(missing_ok=True)


def _find_database(home: Home) -> Path:
    if home.database_file is None:
        raise StorageError("this database is kept by a server: restore it with the server's own tools (pg_restore)")
    return home.database_file


def _choose(home: Home, name: str) -> Backup:
    path = Path(name).expanduser()
    for candidate in (home.backups / name, path):
        if candidate.is_file():
            return _read_backup(candidate)
    names = ", ".join(backup.name for backup in list_backups(home)) or "none"
    raise StorageError(f"there is no copy {name!r} in {home.backups}; there are: {names}")


def _why_unfit(backup: Backup) -> str:
    if backup.schema:
        return (
            f"{backup.path} was written by a newer Podium (schema {backup.schema}); update Podium. Nothing was changed"
        )
    return f"{backup.path} is damaged, or no database of Podium. Nothing was changed"


def _read_backup(path: Path) -> Backup:
    try:
        # `immutable`: a copy is only looked at, and no side files are made beside it.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)) as connection:
            if connection.execute("PRAGMA quick_check").fetchone() != ("ok",):
                return Backup(path, "", 0, 0)
            (schema,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            (pools,) = connection.execute("SELECT count(*) FROM pool_head").fetchone()
            (episodes,) = connection.execute("SELECT count(*) FROM episode").fetchone()
    except (sqlite3.DatabaseError, TypeError):
        return Backup(path, "", 0, 0)
    return Backup(path, str(schema), pools, episodes)


def _set_aside(home: Home, database: Path) -> Path:
    """Keep the present database, with what its log holds. Raises StorageError while another program uses it."""
    _make_folder(home)
    kept = home.backups / f"{_stamp('replaced')}.db"
    try:
        with closing(sqlite3.connect(database, timeout=1)) as connection:
            # Leaving WAL needs the file alone: it fails while a studio, a server or a job has it open.
            connection.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StorageError(
                "the database is in use; stop the studio, its servers and jobs first. Nothing was changed"
            ) from error
        # Damaged: its log is kept beside it as it is.
        for suffix in SIDE_FILES:
            side = database.with_name(database.name + suffix)
            if side.exists():
                shutil.copyfile(side, kept.with_name(kept.name + suffix))
    with draft_file(kept) as draft:
        shutil.copyfile(database, draft)
    return kept


def _make_folder(home: Home) -> None:
    home.backups.mkdir(exist_ok=True)
    for draft in home.backups.glob(".*.draft"):  # of a process that was killed: copies are made one at a time
        draft.unlink(missing_ok=True)


def _stamp(prefix: str) -> str:
    return f"{prefix}-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
