"""Kind `sql`: reads a database; nothing can be written.

SQLite files are opened read-only with an authorizer that knows nothing but reading; PostgreSQL runs in a
read-only transaction. With a fixed `query` in its configuration the worker is a typed look-up with named
parameters, without one the caller writes the SELECT.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pool_registry.actions import JsonValue
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.worker import Call, Reply, Worker, one_string

T = TypeVar("T")
Rows = tuple[list[str], list[tuple[Any, ...]]]  # column names, rows

_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    33,  # SQLITE_RECURSIVE, which Python's sqlite3 does not name
}
_DENIED_FUNCTIONS = {"load_extension", "readfile", "writefile", "fts3_tokenizer", "edit"}
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)", re.IGNORECASE)
_PROGRESS_STEPS = 10_000  # virtual machine steps between two looks at the stop flag


class SqlConfig(BaseModel):
    model_config = ConfigDict(extra="forbid")

    database: str = Field(
        min_length=1, description="A SQLite file, a postgresql:// URL, or starter:ledger (the shipped one)."
    )
    query: str | None = Field(
        default=None, description="A fixed SELECT with :named parameters; empty: the caller writes it."
    )
    parameters: dict[str, str] = Field(
        default_factory=dict, description="What each :named parameter of the query means."
    )
    max_rows: int = Field(default=200, ge=1, le=10_000)

    @field_validator("database")
    @classmethod
    def _known_database(cls, value: str) -> str:
        if "://" in value and not value.startswith(("sqlite:///", "postgresql://", "postgresql+psycopg://")):
            raise ValueError("only SQLite and PostgreSQL can be opened read-only")
        return value

    @model_validator(mode="after")
    def _parameters_match(self) -> SqlConfig:
        used = set(_PARAMETER.findall(self.query or ""))
        if used != set(self.parameters):
            raise ValueError(f"the query uses {sorted(used)} but parameters describes {sorted(self.parameters)}")
        return self


class Sql(Worker[SqlConfig]):
    Config = SqlConfig
    sample = {"query": "select region, round(sum(revenue), 2) as revenue from sales where company_id = 7 group by 1"}

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        if self.config.query is None:
            return one_string("query", "One SELECT statement.")
        return {
            "type": "object",
            "properties": {
                name: {"type": "string", "description": text} for name, text in self.config.parameters.items()
            },
            "required": list(self.config.parameters),
            "additionalProperties": False,
        }

    async def call(self, call: Call) -> Reply:
        fixed = self.config.query
        statement = call.text("query") if fixed is None else fixed
        values = {} if fixed is None else dict(call.arguments)
        return Reply(shaped(*await self._run(statement, values)))

    async def check(self) -> str:
        tables = await self._in_thread(lambda stop: _tables(self.config.database, stop))
        return f"{len(tables)} tables: {', '.join(tables[:8])}"

    async def _run(self, statement: str, values: Mapping[str, JsonValue]) -> Rows:
        config = self.config
        return await self._in_thread(lambda stop: _select(config, statement, values, stop))

    @staticmethod
    async def _in_thread(work: Callable[[Event], T]) -> T:
        """Run blocking work; a cancelled call raises the stop flag, which ends the query within moments."""
        stop = Event()
        try:
            return await asyncio.to_thread(work, stop)
        except asyncio.CancelledError:
            stop.set()
            raise


def shaped(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> JsonValue:
    """One cell as a scalar, one column as a list, anything else as a list of objects."""
    if not rows:
        raise WorkerFault("no_rows", "the query found no rows")
    if len(columns) == 1:
        values = [_plain(row[0]) for row in rows]
        if values == [None]:
            raise WorkerFault("no_rows", "the query found nothing to aggregate: its value is NULL")
        return values[0] if len(values) == 1 else values
    return [dict(zip(columns, map(_plain, row), strict=True)) for row in rows]


def _plain(value: object) -> JsonValue:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return f"<{len(value)} bytes>" if isinstance(value, bytes) else str(value)


def _select(config: SqlConfig, statement: str, values: Mapping[str, JsonValue], stop: Event) -> Rows:
    try:
        with _reading(config.database, stop) as connection:
            cursor = connection.execute(*_bound(config.database, statement, values))
            if cursor.description is None:
                raise BadCall("write one SELECT statement")
            rows = cursor.fetchmany(config.max_rows + 1)
            columns = [column[0] for column in cursor.description]
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise _told(error, config.database, stop) from error
    if len(rows) > config.max_rows:
        raise WorkerFault("too_many_rows", f"more than {config.max_rows} rows; aggregate or add a LIMIT")
    return columns, rows


def _bound(database: str, statement: str, values: Mapping[str, JsonValue]) -> tuple[str, dict[str, JsonValue]]:
    if _is_postgres(database):  # psycopg writes :name as %(name)s
        return _PARAMETER.sub(r"%(\1)s", statement), dict(values)
    return statement, dict(values)


def _told(error: Exception, database: str, stop: Event) -> Exception:
    """A database's error as one of ours; a wrong name is answered with the right ones."""
    text = str(error)
    if "unable to open" in text or "not a database" in text:
        return WorkerFault("database_unreadable", f"{database}: {text}")
    if "not authorized" in text or "prohibited" in text or "readonly" in text:
        return BadCall(f"only SELECT is allowed here ({text})")
    if stop.is_set() or "interrupted" in text:
        return WorkerFault("interrupted", "the query was stopped")
    known = f"; tables are: {', '.join(_tables(database, stop))}" if "no such" in text else ""
    return BadCall(f"{text}{known}", code="sql_error")


def _tables(database: str, stop: Event) -> list[str]:
    with _reading(database, stop, authorize=False) as connection:
        if _is_postgres(database):
            listing = "select table_name from information_schema.tables where table_schema = 'public'"
        else:
            listing = "select name from sqlite_master where type in ('table', 'view') order by name"
        return [str(row[0]) for row in connection.execute(listing).fetchall()]


@contextmanager
def _reading(database: str, stop: Event, authorize: bool = True) -> Iterator[Any]:
    """A connection that can only read. Raises WorkerFault when the database is not there."""
    if _is_postgres(database):
        with _postgres(database) as connection:
            yield connection
        return
    path = _sqlite_path(database)
    with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=5)) as connection:
        connection.set_progress_handler(lambda: int(stop.is_set()), _PROGRESS_STEPS)
        if authorize:
            connection.set_authorizer(_authorize)
        yield connection


def _authorize(action: int, _first: str | None, second: str | None, *_rest: object) -> int:
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _DENIED_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


def _sqlite_path(database: str) -> Path:
    if database == "starter:ledger":
        from pool_registry.starter.ledger import ledger_database

        return ledger_database()
    path = Path(database.removeprefix("sqlite:///")).expanduser()
    if not path.is_file():
        raise WorkerFault("database_missing", f"there is no database file {path}")
    return path.absolute()


def _is_postgres(database: str) -> bool:
    return database.startswith("postgresql")


@contextmanager
def _postgres(url: str) -> Iterator[Any]:
    try:
        import psycopg
    except ImportError as error:
        message = "PostgreSQL needs a driver: pip install -e '.[postgres]'"
        raise WorkerFault("driver_missing", message) from error
    try:
        with psycopg.connect(url.replace("+psycopg", ""), connect_timeout=5) as connection:
            connection.read_only = True
            yield connection
    except psycopg.OperationalError as error:
        raise WorkerFault("connection", str(error).splitlines()[0], retryable=True) from error
    except psycopg.Error as error:
        raise BadCall(str(error).splitlines()[0], code="sql_error") from error
