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
MAX_COMPARED_LINES = 2000  # the time grows with their square
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
    """Compare a file or folder as it was copied with what became of it. No link is followed: what a worker has made a
    link to is not for whoever reads the changes."""
    if not (_is_folder(original) and _is_folder(copy)):
        yield from _compare_files(original, original, copy)
        return
    for name in sorted(_list_files(original) | _list_files(copy)):
        yield from _compare_files(original / name, original / name, copy / name)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _list_files(folder: Path) -> set[Path]:
    """What is in a folder and is no folder; a link to one counts as a link."""
    names = set()
    for at, inner, files in os.walk(folder):
        linked = [name for name in inner if Path(at, name).is_symlink()]
        names |= {Path(at, name).relative_to(folder) for name in (*files, *linked)}
    return {name for name in names if not name.name.endswith(LOGS)}


def _compare_files(place: Path, before: Path, after: Path) -> Iterator[Change]:
    if not (_is_file(before) and _is_file(after)):
        described = _describe(before), _describe(after)
        if described[0] != described[1]:
            yield Change(str(place), "", *described)
    elif is_sqlite(before) and is_sqlite(after):
        yield from _compare_databases(place, before, after)
    elif not filecmp.cmp(before, after, shallow=False):
        yield from _compare_texts(place, before, after)


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _describe(path: Path) -> str:
    if path.is_symlink():
        return f"a link to {_shorten(str(path.readlink()))}"
    if _is_file(path):
        return f"a file of {path.stat().st_size:,} bytes"
    if path.is_dir():
        return "a folder"
    return "no file of data, such as a pipe" if path.exists() else ""


def _compare_texts(place: Path, before: Path, after: Path) -> Iterator[Change]:
    """The lines that differ; of what is no text, or long, the sizes alone."""
    old, new = _read_lines(before), _read_lines(after)
    if old is None or new is None:
        yield Change(str(place), "", _describe(before), _describe(after))
        return
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for _, start, end, new_start, new_end in [code for code in codes if code[0] != "equal"][:MAX_LINES]:
        item = f"line {start + 1}"
        yield Change(str(place), item, _shorten("\n".join(old[start:end])), _shorten("\n".join(new[new_start:new_end])))


def _read_lines(path: Path) -> list[str] | None:
    """The lines of a text; None where it is none, or too long to be compared."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.stat().st_size <= MAX_TEXT_BYTES else None
    except (UnicodeDecodeError, OSError):
        return None
    return lines if lines is not None and len(lines) <= MAX_COMPARED_LINES else None


def _compare_databases(place: Path, before: Path, after: Path) -> Iterator[Change]:
    """The rows of every table that only one of two SQLite files has, paired by primary key where there is one."""
    address = f"file:{quote(str(after))}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            connection.execute("attach ? as original", (f"file:{quote(str(before))}?mode=ro",))
            old, new = (_list_tables(connection, schema) for schema in ("original", "main"))
            for table in sorted(old.keys() | new.keys()):
                if old.get(table) != new.get(table):
                    yield Change(str(place), f"table {table}", old.get(table, ""), new.get(table, ""))
                else:
                    yield from _compare_tables(place, connection, table)
    except sqlite3.Error as error:
        yield Change(str(place), "", _describe(before), f"{_describe(after)} that cannot be compared: {error}")


def _list_tables(connection: sqlite3.Connection, schema: str) -> dict[str, str]:
    rows = connection.execute(
        f"select name, sql from {schema}.sqlite_master where type = 'table' and name not like 'sqlite_%'"  # noqa: S608
    )
    return {name: _shorten(sql or "") for name, sql in rows}


def _compare_tables(place: Path, connection: sqlite3.Connection, table: str) -> Iterator[Change]:
    name = '"' + table.replace('"', '""') + '"'
    columns = connection.execute(f"pragma main.table_info({name})").fetchall()
    key_names = [row[1] for row in columns if row[5]]
    sides = []
    for one, other in (("original", "main"), ("main", "original")):
        rows = connection.execute(
            f"select * from {one}.{name} except select * from {other}.{name} limit {MAX_ROWS}"  # noqa: S608
        )
        names = [column[0] for column in rows.description]  # with those that are computed
        keys = [names.index(key) for key in key_names]
        sides.append({_key(row, keys): _describe_row(names, row) for row in rows})
    before, after = sides
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
