"""Kind `sql`: reads a database; nothing can be written.

SQLite files are opened read-only with an authorizer that knows nothing but reading; PostgreSQL runs one
prepared statement in a read-only transaction. With a fixed `query` in its configuration the worker is a
typed look-up with named parameters, without one the caller writes the SELECT.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from pydantic import Field, field_validator, model_validator

from pool_registry.actions import JsonValue
from pool_registry.errors import BadCall, SecretNotFound, WorkerFault
from pool_registry.secrets import REFERENCE, resolve
from pool_registry.strict_model import StrictModel
from pool_registry.text import count_of, shorten
from pool_registry.worker import Call, Copier, PackedFiles, Reply, SampleCall, Worker, WorkerSpec, one_string

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
_COMPARED = re.compile(r"(\w+)\s*(?:=|like)\s*:(\w+)", re.IGNORECASE)  # a column that a parameter is compared with
_FROM = re.compile(r"\b(?:from|join)\s+(\w+)", re.IGNORECASE)
_PROGRESS_STEPS = 10_000  # virtual machine steps between two looks at the stop flag
_SHIPPED = "starter:ledger"
_POSTGRES = ("postgresql://", "postgresql+psycopg://")
MAX_CELL_BYTES = 1_000_000  # what one string or blob inside SQLite may take: zeroblob(1e9) is refused
MAX_RESULT_BYTES = 8_000_000
MAX_DESCRIBED_CHARS = 800  # of tables and columns in a description
MAX_KNOWN_CHARS = 600  # of tables and columns in an error


class Stop(Event):
    """Set when the call is cancelled. `interrupt` ends the query itself, which cannot see a flag."""

    interrupt: Callable[[], object] | None = None


class SqlConfig(StrictModel):
    database: str = Field(
        min_length=1,
        description="A SQLite file, starter:ledger (the shipped one), a postgresql:// URL without a password, "
        "or env:NAME or keyring:NAME holding the URL.",
    )
    query: str | None = Field(
        default=None, description="A fixed SELECT with :named parameters; empty: the caller writes it."
    )
    parameters: dict[str, str] = Field(
        default_factory=dict, description="What each :named parameter of the query means."
    )
    sample: dict[str, str] = Field(default_factory=dict, description="Values of the parameters that 'Try it' offers.")
    schema_hint: str = Field(
        default="", max_length=4000, description="Tables and columns, shown to the model that writes the query."
    )
    max_rows: int = Field(default=200, ge=1, le=10_000)

    @field_validator("database")
    @classmethod
    def _check_database(cls, value: str) -> str:
        if "://" in value and not value.startswith(("sqlite:///", *_POSTGRES)):
            raise ValueError("only SQLite and PostgreSQL can be opened read-only")
        if value.startswith(_POSTGRES) and urlsplit(value).password:
            raise ValueError("a password is never stored; put the URL in a variable and write env:NAME")
        return value

    @model_validator(mode="after")
    def _parameters_match(self) -> SqlConfig:
        used = set(_PARAMETER.findall(self.query or ""))
        if used != set(self.parameters):
            raise ValueError(f"the query uses {sorted(used)} but parameters describes {sorted(self.parameters)}")
        return self


class Sql(Worker[SqlConfig]):
    label = "SQL database"
    summary = "Reads a database; nothing can be written."
    icon = "M5 6c0-3.5 14-3.5 14 0v12c0 3.5-14 3.5-14 0z M5 6c0 3.5 14 3.5 14 0 M5 12c0 3.5 14 3.5 14 0"
    cacheable = True
    Config = SqlConfig
    sample = {"query": "select region, round(sum(revenue), 2) as revenue from sales where company_id = 7 group by 1"}

    def __init__(self, spec: WorkerSpec, config: SqlConfig) -> None:
        super().__init__(spec, config)
        if config.query is not None:
            self.sample = dict(config.sample)
            self.described_by = "name"
        elif not _is_shipped(config.database):
            self.sample = {}  # the kind's own is about tables that are not there

    @classmethod
    def stays_because(cls, config: SqlConfig) -> str:
        if _is_shipped(config.database):
            return ""
        return "its database is a file on this machine, or a server that the Space cannot be given"

    @classmethod
    def pack(cls, config: SqlConfig, folder: str) -> PackedFiles | None:
        """The SQLite file. A server has none. Raises WorkerFault while another program is writing the file."""
        if not _is_own_file(config.database):
            return None
        file = _sqlite_path(config.database)
        pending = file.with_name(f"{file.name}-wal")
        if pending.is_file() and pending.stat().st_size:
            raise WorkerFault(
                "database_in_use", f"{pending} holds changes that are not in {file.name} yet; close its writer"
            )
        place = f"{folder}/{file.name}"
        return PackedFiles({place: file}, {"database": place})

    @classmethod
    def move_state(cls, config: SqlConfig, copier: Copier) -> Mapping[str, JsonValue] | None:
        """The copy of a SQLite file. A server has none, and is only read."""
        if not _is_own_file(config.database):
            return None
        return {"database": str(copier.add(_sqlite_path(config.database)))}

    @classmethod
    def reads(cls, config: SqlConfig) -> tuple[str, ...]:
        return () if _is_shipped(config.database) else (f"the database {config.database}",)

    @classmethod
    def sends_to(cls, config: SqlConfig) -> str:  # noqa: ARG003
        return "the database server that it names"

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        if self.config.query is None:
            return one_string("query", f"One SELECT statement. {self.config.schema_hint}".strip())
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
        config = self.config
        return Reply(shape_result(*await self._in_thread(lambda stop: _select(config, statement, values, stop))))

    async def list_sample_calls(self, count: int) -> Sequence[SampleCall]:
        """List values that the database holds for the parameters of a fixed query, else simple questions on its tables.

        Raises WorkerFault when the database cannot be read.
        """
        config = self.config
        if config.query is not None:
            return await self._in_thread(lambda stop: _list_lookups(config, count, stop))
        return await self._in_thread(lambda stop: _list_questions(config, count, stop))

    async def check(self) -> str:
        database = self.config.database
        tables = list(await self._in_thread(lambda stop: _schema(_resolve_database(database), stop)))
        return f"{count_of(len(tables), 'table')}: {', '.join(tables[:8])}"

    async def describe_source(self) -> str:
        """The tables with their columns."""
        database = self.config.database
        schema = await self._in_thread(lambda stop: _schema(_resolve_database(database), stop))
        listed = "; ".join(f"{table}({', '.join(columns)})" for table, columns in schema.items())
        return shorten(f"Tables: {listed}", MAX_DESCRIBED_CHARS) if schema else ""

    @staticmethod
    async def _in_thread(work: Callable[[Stop], T]) -> T:
        """Run blocking work; a cancelled call raises the stop flag, which ends the query within moments."""
        stop = Stop()
        try:
            return await asyncio.to_thread(work, stop)
        except asyncio.CancelledError:
            stop.set()
            if stop.interrupt is not None:
                asyncio.get_running_loop().run_in_executor(None, stop.interrupt)
            raise


def shape_result(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> JsonValue:
    """Return one cell as a scalar, one column as a list, anything else as a list of objects."""
    if not rows:
        raise WorkerFault("no_rows", "the query found no rows")
    if len(columns) == 1:
        values = [_plain(row[0]) for row in rows]
        if values == [None]:
            raise WorkerFault("no_rows", "the query found nothing to aggregate: its value is NULL")
        return values[0] if len(values) == 1 else values
    names = _distinct(columns)
    return [dict(zip(names, map(_plain, row), strict=True)) for row in rows]


def _distinct(columns: Sequence[str]) -> list[str]:
    """Make column names distinct: the second `id` becomes `id_2`, so that no value is lost."""
    seen: list[str] = []
    for column in columns:
        again = sum(name == column for name in columns[: len(seen)])
        seen.append(f"{column}_{again + 1}" if again else column)
    return seen


def _plain(value: object) -> JsonValue:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if value is None or isinstance(value, bool | int | float | str | list | dict):
        return value
    return f"<{len(value)} bytes>" if isinstance(value, bytes) else str(value)


def _select(config: SqlConfig, statement: str, values: Mapping[str, JsonValue], stop: Stop) -> Rows:
    database = _resolve_database(config.database)
    try:
        with _reading(database, stop) as connection:
            cursor = _execute(connection, database, statement, values, config.max_rows + 1)
            if cursor.description is None:
                raise BadCall("write one SELECT statement")
            columns = [column[0] for column in cursor.description]
            return columns, _fetch(cursor, config.max_rows)
    except UnicodeEncodeError as error:
        raise BadCall("the statement holds characters that are no text") from error
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise _translate_error(error, database, stop) from error


def _execute(connection: Any, database: str, statement: str, values: Mapping[str, JsonValue], rows: int) -> Any:
    if not _is_postgres(database):
        return connection.execute(statement, dict(values))
    if values:  # psycopg writes :name as %(name)s
        statement = _PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%"))
    # Prepared: the server refuses a second statement. As a subquery: nothing but a SELECT fits.
    inner = statement.strip().rstrip(";")
    return connection.execute(
        f"select * from (\n{inner}\n) as podium limit {rows}",  # noqa: S608  it is all the caller's own
        dict(values) or None,
        prepare=True,
    )


def _fetch(cursor: Iterable[tuple[Any, ...]], max_rows: int) -> list[tuple[Any, ...]]:
    """Fetch the rows. Raises WorkerFault when they are too many or too large."""
    rows, size = [], 0
    for row in cursor:
        rows.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(rows) > max_rows:
            raise WorkerFault("too_many_rows", f"more than {max_rows} rows; aggregate or add a LIMIT")
        if size > MAX_RESULT_BYTES:
            raise WorkerFault("output_too_large", f"more than {MAX_RESULT_BYTES:,} bytes; select less")
    return rows


def _translate_error(error: Exception, database: str, stop: Stop) -> Exception:
    """Translate a database's error; one about a wrong name lists the right ones."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    if "unable to open" in text or "not a database" in text:
        return WorkerFault("database_unreadable", f"{database}: {text}")
    if "not authorized" in text or "prohibited" in text or "authorization denied" in text:
        return BadCall(f"only SELECT is allowed here ({text})")
    if stop.is_set() or "interrupted" in text:
        return WorkerFault("interrupted", "the query was stopped")
    if "too big" in text:
        return WorkerFault("output_too_large", f"one value has more than {MAX_CELL_BYTES:,} bytes")
    return BadCall(f"{text}{_explain_names(text, database, stop)}", code="sql_error")


def _explain_names(text: str, database: str, stop: Stop) -> str:
    """List tables with their columns when the error is about a name."""
    if not any(words in text for words in ("no such table", "no such column", "does not exist")):
        return ""
    tables = (f"{table}({', '.join(columns)})" for table, columns in _schema(database, stop).items())
    return f"; there are: {', '.join(tables)}"[:MAX_KNOWN_CHARS]


def _schema(database: str, stop: Stop) -> dict[str, list[str]]:
    """Read tables and views with their columns."""
    listing = (
        "select table_name, column_name from information_schema.columns "
        "where table_schema = current_schema() order by table_name, ordinal_position"
        if _is_postgres(database)
        else "select m.name, c.name from sqlite_master m, pragma_table_info(m.name) c "
        "where m.type in ('table', 'view') order by m.name, c.cid"
    )
    tables: dict[str, list[str]] = {}
    try:
        with _reading(database, stop, authorize=False) as connection:
            for table, column in connection.execute(listing).fetchall():
                tables.setdefault(str(table), []).append(str(column))
    except sqlite3.Error as error:
        raise WorkerFault("database_unreadable", f"{database}: {error}") from error
    return tables


def _list_lookups(config: SqlConfig, count: int, stop: Stop) -> list[SampleCall]:
    """The sample, and for a query with one parameter values of the column that it is compared with."""
    calls = [SampleCall(dict(config.sample))] if config.sample else []
    compared = {parameter: column for column, parameter in _COMPARED.findall(config.query or "")}
    if len(config.parameters) == 1 and set(compared) == set(config.parameters):
        [(parameter, column)] = compared.items()
        schema = _schema(_resolve_database(config.database), stop)
        table = next((name for name in _FROM.findall(config.query or "") if column in schema.get(name, ())), None)
        if table is not None:
            calls += [SampleCall({parameter: str(value)}) for value in _read_values(config, table, column, count, stop)]
    return calls[:count]


def _list_questions(config: SqlConfig, count: int, stop: Stop) -> list[SampleCall]:
    """List counts, sums and extremes of every table, and how many rows have a value that a column of text repeats."""
    calls: list[SampleCall] = []
    for table, columns in _schema(_resolve_database(config.database), stop).items():
        rows = f"the number of {_name_rows(table)}"
        calls.append(SampleCall({"query": f"select count(*) from {_quote(table)}"}, rows))  # noqa: S608  quoted
        for column in columns:
            values = _read_values(config, table, column, 4, stop)
            about = f"{column.replace('_', ' ')} of all {_name_rows(table)}"
            key = column.casefold() == "id" or column.casefold().endswith("_id")
            if values and not key and all(isinstance(value, int | float) for value in values):
                for function, word in (("sum", "sum"), ("max", "largest"), ("min", "smallest")):
                    phrase = f"the sum of the {about}" if word == "sum" else f"the {word} {about}"
                    query = f"select {function}({_quote(column)}) from {_quote(table)}"  # noqa: S608  names are quoted
                    calls.append(SampleCall({"query": query}, phrase))
            for value in values if all(isinstance(value, str) for value in values) else ():
                where = f"{_quote(column)} = '{str(value).replace(chr(39), chr(39) * 2)}'"
                query = f"select count(*) from {_quote(table)} where {where}"  # noqa: S608  both are quoted
                calls.append(SampleCall({"query": query}, f"{rows} with {column.replace('_', ' ')} {value}"))
    places = range(0, len(calls), max(1, len(calls) // max(1, count)))  # from all tables alike
    return [calls[place] for place in places][:count]


def _read_values(config: SqlConfig, table: str, column: str, count: int, stop: Stop) -> list[JsonValue]:
    """Read short values of a column, each once."""
    statement = (
        f"select distinct {_quote(column)} from {_quote(table)} where {_quote(column)} is not null "  # noqa: S608
        f"order by {_quote(column)} limit {4 * count}"
    )
    _, rows = _select(config.model_copy(update={"max_rows": 4 * count}), statement, {}, stop)
    values = [_plain(row[0]) for row in rows]
    return [value for value in values if isinstance(value, int | float) or 0 < len(str(value)) <= 60][:count]


def _name_rows(table: str) -> str:
    """What the rows of a table are called: "boats", or "rows in the table boat"."""
    return table.replace("_", " ") if table.endswith("s") else f"rows in the table {table}"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _resolve_database(database: str) -> str:
    """Return the database, or the URL behind the reference in the configuration."""
    if not REFERENCE.match(database):
        return database
    try:
        url = resolve(database).get_secret_value()
    except SecretNotFound as error:
        raise WorkerFault("secret_missing", str(error)) from error
    if "://" in url and not url.startswith(("sqlite:///", *_POSTGRES)):
        raise WorkerFault("database_unreadable", f"{database} must hold a postgresql:// or sqlite:/// URL")
    return url


@contextmanager
def _reading(database: str, stop: Stop, authorize: bool = True) -> Iterator[Any]:
    """Open a connection that can only read. Raises WorkerFault when the database is missing."""
    if _is_postgres(database):
        with _postgres(database, stop) as connection:
            yield connection
        return
    path = _sqlite_path(database)
    with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=5)) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES)
        connection.set_progress_handler(lambda: int(stop.is_set()), _PROGRESS_STEPS)
        if authorize:
            connection.set_authorizer(_authorize)
        yield connection


def _authorize(action: int, _first: str | None, second: str | None, *_rest: object) -> int:
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _DENIED_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


def _is_shipped(database: str) -> bool:
    return database == _SHIPPED


def _is_own_file(database: str) -> bool:
    """Whether it is a file of the person's: neither the shipped one nor a server."""
    return not (_is_shipped(database) or REFERENCE.match(database) or _is_postgres(database))


def _sqlite_path(database: str) -> Path:
    if _is_shipped(database):
        from pool_registry.starter.ledger import ledger_database

        return ledger_database()
    path = Path(database.removeprefix("sqlite:///")).expanduser()
    if not path.is_file():
        raise WorkerFault("database_missing", f"there is no database file {path}")
    return path.absolute()


def _is_postgres(database: str) -> bool:
    return database.startswith(_POSTGRES)


@contextmanager
def _postgres(url: str, stop: Stop) -> Iterator[Any]:
    try:
        import psycopg
    except ImportError as error:
        message = "PostgreSQL needs a driver: pip install -e '.[postgres]'"
        raise WorkerFault("driver_missing", message) from error
    options = "-c default_transaction_read_only=on -c statement_timeout=3600000"
    try:
        with psycopg.connect(url.replace("+psycopg", "", 1), connect_timeout=5, options=options) as connection:
            connection.read_only = True
            stop.interrupt = connection.cancel
            yield connection
    except psycopg.errors.QueryCanceled as error:
        raise WorkerFault("interrupted", "the query was stopped") from error
    except psycopg.OperationalError as error:
        raise WorkerFault("connection", str(error).splitlines()[0], retryable=True) from error
    except psycopg.Error as error:
        raise _translate_error(error, url, stop) from error
