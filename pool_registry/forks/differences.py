"""What a what-if changed on its copies: each file's lines and each table's rows, before and after."""

from __future__ import annotations

import difflib
import filecmp
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pool_registry.forks.copies import LOGS, is_sqlite
from pool_registry.text import shorten

MAX_CHANGES = 60  # of one what-if
MAX_ROWS = 20  # that a table lost or won
MAX_TEXT_BYTES = 200_000  # of a file whose lines are compared
MAX_LINES = 12
MAX_CHARS = 300


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: in which original file, where in it ("" for the file itself), and both worlds ("": nothing)."""

    place: str
    item: str
    original: str
    on_copy: str


def list_changes(original: Path, copy: Path) -> Iterator[Change]:
    """Compare a file or folder as it was copied with what became of it."""
    if not (original.is_dir() and copy.is_dir()):
        yield from _compare_files(original, original, copy)
        return
    for name in sorted(_list_files(original) | _list_files(copy)):
        yield from _compare_files(original / name, original / name, copy / name)


def _list_files(folder: Path) -> set[Path]:
    files = {(Path(at) / name).relative_to(folder) for at, _, names in os.walk(folder) for name in names}
    return {name for name in files if not name.name.endswith(LOGS)}


def _compare_files(place: Path, before: Path, after: Path) -> Iterator[Change]:
    if not before.exists() or not after.exists():
        if before.exists() or after.exists():
            yield Change(str(place), "", _describe_file(before), _describe_file(after))
    elif is_sqlite(before) and is_sqlite(after):
        yield from _compare_databases(place, before, after)
    elif not filecmp.cmp(before, after, shallow=False):
        yield from _compare_texts(place, before, after)


def _describe_file(path: Path) -> str:
    return f"a file of {path.lstat().st_size:,} bytes" if path.exists() else ""


def _compare_texts(place: Path, before: Path, after: Path) -> Iterator[Change]:
    """The lines that differ; of what is no text, or long, the sizes alone."""
    texts = [_read_text(path) for path in (before, after)]
    if texts[0] is None or texts[1] is None:
        yield Change(str(place), "", _describe_file(before), _describe_file(after))
        return
    old, new = texts[0].splitlines(), texts[1].splitlines()
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for _, start, end, new_start, new_end in [code for code in codes if code[0] != "equal"][:MAX_LINES]:
        item = f"line {start + 1}"
        yield Change(str(place), item, _shorten("\n".join(old[start:end])), _shorten("\n".join(new[new_start:new_end])))


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8") if path.stat().st_size <= MAX_TEXT_BYTES else None
    except (UnicodeDecodeError, OSError):
        return None


def _compare_databases(place: Path, before: Path, after: Path) -> Iterator[Change]:
    """The rows of every table that only one of two SQLite files has, paired by primary key where there is one."""
    address = f"file:{quote(str(after))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        connection.execute("attach ? as original", (f"file:{quote(str(before))}?mode=ro",))
        old, new = (_list_tables(connection, schema) for schema in ("original", "main"))
        for table in sorted(old.keys() | new.keys()):
            if old.get(table) != new.get(table):
                yield Change(str(place), f"table {table}", old.get(table, ""), new.get(table, ""))
            else:
                yield from _compare_tables(place, connection, table)


def _list_tables(connection: sqlite3.Connection, schema: str) -> dict[str, str]:
    rows = connection.execute(
        f"select name, sql from {schema}.sqlite_master where type = 'table' and name not like 'sqlite_%'"  # noqa: S608
    )
    return {name: _shorten(sql or "") for name, sql in rows}


def _compare_tables(place: Path, connection: sqlite3.Connection, table: str) -> Iterator[Change]:
    name = '"' + table.replace('"', '""') + '"'
    columns = connection.execute(f"pragma main.table_info({name})").fetchall()
    keys = [row[0] for row in columns if row[5]]
    gone, fresh = (
        connection.execute(
            f"select * from {one}.{name} except select * from {other}.{name} limit {MAX_ROWS}"  # noqa: S608
        ).fetchall()
        for one, other in (("original", "main"), ("main", "original"))
    )
    names = [row[1] for row in columns]
    before, after = ({_key(row, keys): _describe_row(names, row) for row in rows} for rows in (gone, fresh))
    for key in dict.fromkeys((*before, *after)):
        yield Change(str(place), f"a row of {table}", before.get(key, ""), after.get(key, ""))


def _key(row: tuple[object, ...], keys: list[int]) -> tuple[object, ...]:
    return tuple(row[place] for place in keys) if keys else row


def _describe_row(names: list[str], row: tuple[object, ...]) -> str:
    return _shorten(", ".join(f"{name} {_describe_value(value)}" for name, value in zip(names, row, strict=True)))


def _describe_value(value: object) -> str:
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    return "nothing" if value is None else str(value)


def _shorten(text: str) -> str:
    return shorten(text, MAX_CHARS)
