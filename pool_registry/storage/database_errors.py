"""What to do about a database that cannot be opened. A healthy one is never to be moved away."""

from __future__ import annotations

import sqlite3

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, OperationalError

from pool_registry.errors import StorageError
from pool_registry.storage.data_folder import Home
from pool_registry.storage.database import read_sqlite_code
from pool_registry.storage.disk_space import describe_full, is_disk_full
from pool_registry.storage.integrity import advise_copy

DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
ADVICE = {
    sqlite3.SQLITE_BUSY: "Another program holds it. Wait for that, or stop it, and start again; nothing was changed",
    sqlite3.SQLITE_READONLY: "It may not be written to. Give this account write access to the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "Give this account access to the file and its folder",
    sqlite3.SQLITE_PERM: "Give this account access to the file and its folder",
    sqlite3.SQLITE_IOERR: "The disk reports an error. Check the disk; a network folder cannot hold this database",
}


def explain_database_error(engine: Engine, home: Home, error: Exception) -> StorageError:
    """The error for a person: what is wrong with which database, and what helps."""
    reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
    return StorageError(f"the database {spell_url(engine)} cannot be used: {reason}. {_advise(engine, home, error)}")


def spell_url(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=True)


def _advise(engine: Engine, home: Home, error: Exception) -> str:
    if engine.dialect.name == "sqlite" and is_disk_full(error, home.root):
        full = describe_full(home.root)
        return f"{full[0].upper()}{full[1:]}, and start again; nothing was lost"
    if isinstance(error, OSError):
        return ADVICE[sqlite3.SQLITE_CANTOPEN]
    if engine.dialect.name != "sqlite":
        return _advise_server(error)
    code = read_sqlite_code(error)
    if code in DAMAGE:
        return f"The file is damaged. {advise_copy(home)}"
    if code in ADVICE:
        return ADVICE[code]
    return (
        "Its tables are not those of its schema's number: an upgrade by Podium 0.1 may have been cut off. "
        + advise_copy(home)
    )


def _advise_server(error: Exception) -> str:
    if isinstance(error, OperationalError) or (isinstance(error, DBAPIError) and error.connection_invalidated):
        return "Check that the server runs, and PODIUM_DATABASE_URL; nothing was changed"
    return "Nothing was changed: an upgrade that fails is undone"
