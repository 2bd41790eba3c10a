"""The trash of a data folder: what was deleted, kept for a while so that it can be put back.

HOME/trash/KEY/entry.json   what it is
HOME/trash/KEY/rows.json.gz its rows of the database, by table
HOME/trash/KEY/files/N      its folders and files
"""

from __future__ import annotations

import base64
import gzip
import json
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from sqlalchemy import ColumnElement, Engine, Table, delete, insert, select, tuple_
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, SQLModel

from pool_registry.atomic_write import draft_folder
from pool_registry.errors import StorageError
from pool_registry.storage.data_folder import Home
from pool_registry.storage.database import writing

KEPT_DAYS = 14.0
BATCH = 500  # rows of one statement
TIME, BYTES = "time:", "bytes:"

Rows = Mapping[str, list[dict[str, Any]]]


class TrashEntry(BaseModel):
    """Something that was deleted. `places` are the paths of its files below the data folder, in the order of their
    numbers."""

    model_config = ConfigDict(frozen=True)

    key: str
    kind: str
    name: str
    deleted_at: str
    size: int = 0
    places: tuple[str, ...] = ()

    @property
    def age_days(self) -> float:
        return (datetime.now(UTC) - datetime.fromisoformat(self.deleted_at)).total_seconds() / 86_400


class Trash:
    """The trash of one data folder."""

    def __init__(self, engine: Engine, home: Home) -> None:
        self._engine, self._home = engine, home
        self._folder = home.root / "trash"

    def put(
        self,
        kind: str,
        name: str,
        rows: Sequence[tuple[str, ColumnElement[bool]]] = (),
        places: Sequence[Path] = (),
        first: Callable[[Session], None] = lambda _session: None,
    ) -> TrashEntry:
        """Move rows (table, condition), in the order in which they can be inserted, and files here, all in one
        transaction: what others save goes here, too, or is refused. It begins with `first`."""
        with writing(self._engine, *(name for name, _ in rows)) as session:
            first(session)
            kept = read_rows(session, rows)
            entry = self._keep(kind, name, kept, places)
            delete_rows(session, rows)
        return entry

    def _keep(self, kind: str, name: str, kept: Rows, places: Sequence[Path]) -> TrashEntry:
        """Write rows here and move files here."""
        there = [place for place in places if place.exists()]
        entry = TrashEntry(
            key=f"{datetime.now(UTC):%Y%m%d%H%M%S}-{secrets.token_hex(3)}",
            kind=kind,
            name=name,
            deleted_at=datetime.now(UTC).isoformat(timespec="seconds"),
            size=sum(measure(place) for place in there) + len(json.dumps(kept)),
            places=tuple(str(place.relative_to(self._home.root)) for place in there),
        )
        self._folder.mkdir(exist_ok=True)
        with draft_folder(self._folder / entry.key) as draft:
            (draft / "files").mkdir()
            (draft / "rows.json.gz").write_bytes(gzip.compress(json.dumps(kept).encode()))
            (draft / "entry.json").write_text(entry.model_dump_json(), encoding="utf-8")
        for number, place in enumerate(there):
            shutil.move(place, self._folder / entry.key / "files" / str(number))
        return entry

    def list(self) -> list[TrashEntry]:
        """What can be put back, the latest first."""
        entries = [entry for folder in self._folder.glob("[!.]*") if (entry := _read_entry(folder)) is not None]
        return sorted(entries, key=lambda entry: entry.key, reverse=True)

    def restore(self, key: str) -> TrashEntry:
        """Put something back where it was. Raises StorageError where something else stands there now.

        What a killed process has left where it was, or put back already, stays.
        """
        folder = self._folder / key
        entry = _read_entry(folder) if key and "/" not in key and not key.startswith(".") else None
        if entry is None:
            raise StorageError(f"there is nothing {key[:80]!r} in the trash; `podium trash list` shows what there is")
        rows = self.read_rows(key)
        try:
            with writing(self._engine, *rows) as session:
                insert_rows(session, rows)
                session.flush()
                self._move_back(entry)  # in one transaction: nobody finds the thing without its files
        except IntegrityError as error:
            raise StorageError(f"there is a {entry.kind} {entry.name!r} again; rename or delete that first") from error
        shutil.rmtree(folder)
        return entry

    def _move_back(self, entry: TrashEntry) -> None:
        folder = self._folder / entry.key / "files"
        moves = [(folder / str(number), self._home.root / place) for number, place in enumerate(entry.places)]
        moves = [(kept, place) for kept, place in moves if kept.exists()]
        taken = next((place for _, place in moves if place.exists()), None)
        if taken is not None:
            raise StorageError(f"{taken} is there again; move or delete it, then put {entry.name} back")
        for kept, place in moves:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(kept, place)

    def read_rows(self, key: str) -> Rows:
        """The rows of a thing, by table."""
        rows: Rows = json.loads(gzip.decompress((self._folder / key / "rows.json.gz").read_bytes()))
        return rows

    def read_texts(self, key: str) -> Iterator[bytes]:
        """The rows of a thing as JSON, then its files."""
        yield json.dumps(self.read_rows(key)).encode()
        for path in sorted((self._folder / key / "files").rglob("*")):
            if path.is_file():
                yield path.read_bytes()

    def remove(self, key: str) -> None:
        """Delete one thing for good."""
        shutil.rmtree(self._folder / key)

    def empty(self, older_than_days: float = 0.0) -> int:
        """Delete for good what lies here for longer; returns how many there were."""
        old = [entry for entry in self.list() if entry.age_days >= older_than_days]
        for entry in old:
            shutil.rmtree(self._folder / entry.key, ignore_errors=True)
        return len(old)


def read_rows(session: Session, rows: Sequence[tuple[str, ColumnElement[bool]]]) -> Rows:
    """The rows of these conditions as JSON values, by table."""
    return {
        name: [_pack(dict(row)) for row in session.connection().execute(select(_table(name)).where(which)).mappings()]
        for name, which in rows
    }


def delete_rows(session: Session, rows: Sequence[tuple[str, ColumnElement[bool]]]) -> None:
    for name, which in reversed(rows):
        session.connection().execute(delete(_table(name)).where(which))


def insert_rows(session: Session, rows: Rows) -> None:
    """Insert rows that `read_rows` gave, but for those that are there as they were. Raises IntegrityError where another
    one has a row's place."""
    for name, packed in rows.items():
        for batch in _batches([_unpack(row) for row in packed]):
            missing = _list_missing(session, _table(name), batch)
            if missing:
                session.connection().execute(insert(_table(name)), missing)


def measure(place: Path) -> int:
    """The bytes of a file, or of all files in a folder."""
    if place.is_file():
        return place.stat().st_size
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def _batches(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]


def _list_missing(session: Session, table: Table, batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that the table does not hold in just this form."""
    key = list(table.primary_key.columns)
    keys = [tuple(row[column.name] for column in key) for row in batch]
    query = select(table).where(tuple_(*key).in_(keys))
    present = {json.dumps(_pack(dict(row))) for row in session.connection().execute(query).mappings()}
    return [row for row in batch if json.dumps(_pack(row)) not in present]


def _table(name: str) -> Table:
    return SQLModel.metadata.tables[name]


def _read_entry(folder: Path) -> TrashEntry | None:
    try:
        return TrashEntry.model_validate_json((folder / "entry.json").read_bytes())
    except (OSError, ValidationError):
        return None


def _pack(row: dict[str, Any]) -> dict[str, Any]:
    """A row as JSON values: times and bytes as marked text."""
    packed: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, datetime):
            packed[name] = [TIME, value.isoformat()]
        elif isinstance(value, bytes):
            packed[name] = [BYTES, base64.b64encode(value).decode()]
        else:
            packed[name] = value
    return packed


def _unpack(row: dict[str, Any]) -> dict[str, Any]:
    unpacked: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, list):
            mark, text = value
            unpacked[name] = datetime.fromisoformat(text) if mark == TIME else base64.b64decode(text)
        else:
            unpacked[name] = value
    return unpacked
