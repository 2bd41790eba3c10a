"""Opening the database at this code's schema. An upgrade is one transaction: it happens whole or not at all.

The lock is taken before the revision is read, so of several processes that start at once the first upgrades and the
others find nothing left to do.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from pool_registry.errors import StorageError
from pool_registry.storage.backups import back_up
from pool_registry.storage.data_folder import Home
from pool_registry.storage.database import changing_schema, make_engine, make_private
from pool_registry.storage.database_errors import explain_database_error, spell_url

MIGRATIONS = Path(__file__).parents[1] / "migrations"


def open_engine(home: Home) -> Engine:
    """Open the database, upgraded. Raises StorageError with what is wrong and what to do about it."""
    engine = make_engine(home.database_url)
    try:
        make_private(engine)
        upgrade(engine, home)
    except (SQLAlchemyError, OSError) as error:
        raise explain_database_error(engine, home, error) from error
    return engine


def list_revisions() -> list[str]:
    """Every schema that this code knows, the oldest first."""
    return [script.revision for script in _read_scripts().walk_revisions()][::-1]


def upgrade(engine: Engine, home: Home) -> None:
    """Bring the schema to this code's version, after a backup when there is something to lose.

    Raises StorageError when the database was written by a newer Podium; it is left untouched then.
    """
    newest = list_revisions()[-1]
    with engine.connect() as connection:
        if read_revision(connection) == newest:  # nothing is newer than the newest, so this needs no lock
            return
    with changing_schema(engine) as connection:
        current = read_revision(connection)
        if current == newest:
            return
        if current is not None:
            _refuse_newer(engine, current)
            back_up(engine, home, current)
        _run_scripts(connection, "head")


def upgrade_to(home: Home, revision: str) -> None:
    """Bring the database to an earlier schema: tests make databases of earlier versions so."""
    engine = make_engine(home.database_url)
    with changing_schema(engine) as connection:
        _run_scripts(connection, revision)
    engine.dispose()


def read_revision(connection: Connection) -> str | None:
    """The schema's revision; None for an empty database."""
    return MigrationContext.configure(connection).get_current_revision()


def _refuse_newer(engine: Engine, current: str) -> None:
    if current not in list_revisions():
        raise StorageError(
            f"the database {spell_url(engine)} was written by a newer Podium (schema {current}); "
            "update Podium, or choose another data folder with --home. Nothing was changed"
        )


def _run_scripts(connection: Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def _read_scripts() -> ScriptDirectory:
    return ScriptDirectory(str(MIGRATIONS))
