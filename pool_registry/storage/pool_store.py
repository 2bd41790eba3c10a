"""The tables of pools."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import ValidationError
from sqlalchemy import Engine, func
from sqlmodel import Field, Session, SQLModel, UniqueConstraint, select

from pool_registry.errors import InvalidPool, PoolNotFound
from pool_registry.pool import Pool, check_files, check_pool, rename_pool
from pool_registry.pools.pool_merge import merge_edits
from pool_registry.storage.database import writing
from pool_registry.validation_words import describe_problems

MAX_OPENED = 8
_opened: dict[str, Pool] = {}  # the last pools that were read, by the hash of their content: each is read many times


class PoolVersionRow(SQLModel, table=True):
    """One immutable version of a pool. `body` is the pool's JSON, `hash` that of its content."""

    __tablename__ = "pool_version"
    __table_args__ = (UniqueConstraint("name", "version"), UniqueConstraint("name", "hash"))

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(index=True)
    version: int
    hash: str = Field(index=True)
    body: str
    created_at: datetime


class PoolHeadRow(SQLModel, table=True):
    """The number of a pool's current version."""

    __tablename__ = "pool_head"

    name: str = Field(primary_key=True)
    version: int


class UnlistedPoolRow(SQLModel, table=True):
    """A pool that was drawn for a task. Traces find it by its hash; no list of pools shows it. `body` is the pool's
    JSON, compressed: a training job draws thousands."""

    __tablename__ = "unlisted_pool"

    hash: str = Field(primary_key=True)
    name: str
    body: bytes
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredPool:
    """A stored version of a pool. `version` is 0 for an unlisted one."""

    pool: Pool
    version: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SavedEdit:
    """An edit that was saved: the version with it, the content that it was made to, and the version until then."""

    stored: StoredPool
    base: Pool
    before: Pool

    @property
    def is_merged(self) -> bool:
        """Whether others had saved something since."""
        return self.base.hash != self.before.hash


class PoolStore:
    """Pools by name and version. Saving never changes a version: it adds one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def names(self) -> list[str]:
        """Return every pool's name, in alphabetical order."""
        with Session(self._engine) as session:
            return _list_names(session)

    def latest(self, name: str) -> StoredPool:
        """Return the current version. Raises PoolNotFound."""
        with Session(self._engine) as session:
            head = session.get(PoolHeadRow, name)
            if head is None:
                raise _explain_missing(session, name)
        return self.get(name, head.version)

    def get(self, name: str, version: int) -> StoredPool:
        """Return one version. Raises PoolNotFound."""
        row = self._find(PoolVersionRow.name == name, PoolVersionRow.version == version)
        if row is None:
            raise PoolNotFound(f"pool {name!r} has no version {version}")
        return _to_stored_pool(row)

    def by_hash(self, name: str, content_hash: str) -> StoredPool | None:
        """Return the version with this content, or else the unlisted pool with it, or None."""
        with Session(self._engine) as session:
            return _find_content(session, name, content_hash)

    def _find(self, *conditions: bool) -> PoolVersionRow | None:
        with Session(self._engine) as session:
            return session.exec(select(PoolVersionRow).where(*conditions)).first()

    def versions(self, name: str) -> list[StoredPool]:
        """Return every version, newest first."""
        query = select(PoolVersionRow).where(PoolVersionRow.name == name)
        with Session(self._engine) as session:
            rows = session.exec(query.order_by(PoolVersionRow.version.desc())).all()  # type: ignore[attr-defined]
        return [_to_stored_pool(row) for row in rows]

    def save(self, pool: Pool) -> StoredPool:
        """Make `pool` the current version of its name, whatever that holds now: a new version, or the old one with this
        content. Who changes a pool that others may change, too, calls `edit`.

        Raises InvalidPool when a worker is configured wrongly, or names files that cannot be used.
        """
        with self._changing() as session:
            head = _find_head(session, pool.name)
            return _set_head(session, pool, head.pool if head else None)

    def create(self, pool: Pool) -> StoredPool:
        """Save a pool under a name that is free. Raises InvalidPool."""
        with self._changing() as session:
            if _find_head(session, pool.name) is not None:
                raise InvalidPool([("name", f"there is a pool {pool.name!r} already; choose another name")])
            return _set_head(session, pool, None)

    def edit(self, name: str, change: Callable[[Pool], Pool], based_on: str = "") -> SavedEdit:
        """Read, change and save a pool in one transaction.

        `based_on` is the hash of the content that the person saw: `change` is made to that, and merged with what others
        have saved since. Without it the change is made to the current version. `change` holds up every writer, so
        what waits for a server or a model comes before.

        Raises PoolNotFound, EditConflict when another edit has changed the same, and InvalidPool.
        """
        with self._changing() as session:
            head = _find_head(session, name)
            if head is None:
                raise _explain_missing(session, name)
            base = _find_base(session, based_on, head.pool)
            stored = _set_head(session, merge_edits(base, change(base), head.pool), head.pool)
        return SavedEdit(stored, base, head.pool)

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """Keep a pool where it is while the body changes what lies beside it: nobody else edits, renames or deletes it.
        Holds up every writer. Raises PoolNotFound."""
        with self._changing() as session:
            if session.get(PoolHeadRow, name) is None:
                raise _explain_missing(session, name)
            yield

    def _changing(self) -> AbstractContextManager[Session]:
        return writing(self._engine, PoolVersionRow.__tablename__, PoolHeadRow.__tablename__)


def _list_names(session: Session) -> list[str]:
    return list(session.exec(select(PoolHeadRow.name).order_by(PoolHeadRow.name)))


def _explain_missing(session: Session, name: str) -> PoolNotFound:
    return PoolNotFound(f"there is no pool {name!r}; there are: {', '.join(_list_names(session)) or 'none'}")


def _find_content(session: Session, name: str, content_hash: str) -> StoredPool | None:
    content = (PoolVersionRow.name == name, PoolVersionRow.hash == content_hash)
    row = session.exec(select(PoolVersionRow).where(*content)).first()
    if row is not None:
        return _to_stored_pool(row)
    unlisted = session.get(UnlistedPoolRow, content_hash)
    return None if unlisted is None else _open_unlisted(unlisted)


def _find_base(session: Session, based_on: str, head: Pool) -> Pool:
    """The content that an edit is made to. Raises InvalidPool where it is not known here."""
    if based_on in ("", head.hash):
        return head
    stored = _find_content(session, head.name, based_on)
    if stored is None:
        sentence = f"the version of {head.name!r} that this edit began with is not here any more; open the pool again"
        raise InvalidPool([("", sentence)])
    return stored.pool


def copy_head(session: Session, name: str, new: str) -> None:
    """Begin the pool `new` with the current version of another. Raises PoolNotFound and InvalidPool."""
    head = _find_head(session, name)
    if head is None:
        raise PoolNotFound(f"there is no pool {name!r} any more")
    if _find_head(session, new) is not None:
        raise InvalidPool([("name", f"there is a pool {new!r} already; choose another name")])
    _set_head(session, rename_pool(head.pool, new), head.pool)


def keep_versions(session: Session, name: str) -> None:
    """Keep a pool's versions for the traces that name them, out of every list."""
    rows = session.exec(select(PoolVersionRow).where(PoolVersionRow.name == name)).all()
    add_unlisted_pools(session, {row.hash: _to_stored_pool(row).pool for row in rows})


def _find_head(session: Session, name: str) -> StoredPool | None:
    head = session.get(PoolHeadRow, name)
    if head is None:
        return None
    current = (PoolVersionRow.name == name, PoolVersionRow.version == head.version)
    return _to_stored_pool(session.exec(select(PoolVersionRow).where(*current)).one())


def _set_head(session: Session, pool: Pool, before: Pool | None) -> StoredPool:
    """Make `pool` the current version; `before` is the one until now. Raises InvalidPool."""
    check_pool(pool, before)
    check_files(pool, before)
    same = select(PoolVersionRow).where(PoolVersionRow.name == pool.name, PoolVersionRow.hash == pool.hash)
    row = session.exec(same).first()
    if row is None:
        row = _row(pool, _last_version(session, pool.name) + 1)
        session.add(row)
    session.merge(PoolHeadRow(name=pool.name, version=row.version))
    return _to_stored_pool(row)


def add_unlisted_pools(session: Session, pools: Mapping[str, Pool]) -> None:
    """Add pools by their hash, for traces to find. Those that are there already stay."""
    for pool_hash, pool in pools.items():
        if session.get(UnlistedPoolRow, pool_hash) is None:
            body = zlib.compress(_dump_body(pool).encode())
            session.add(UnlistedPoolRow(hash=pool_hash, name=pool.name, body=body, created_at=datetime.now(UTC)))


def _open_unlisted(row: UnlistedPoolRow) -> StoredPool:
    pool = _load_body(zlib.decompress(row.body), f"the unlisted pool {row.name!r}")
    return StoredPool(pool, 0, row.created_at.replace(tzinfo=UTC))


def _last_version(session: Session, name: str) -> int:
    query = select(func.max(PoolVersionRow.version)).where(PoolVersionRow.name == name)
    return session.exec(query).one() or 0


def _row(pool: Pool, version: int) -> PoolVersionRow:
    body = _dump_body(pool)
    return PoolVersionRow(name=pool.name, version=version, hash=pool.hash, body=body, created_at=datetime.now(UTC))


def _to_stored_pool(row: PoolVersionRow) -> StoredPool:
    pool = _opened.get(row.hash)
    if pool is None:
        pool = _load_body(row.body, f"version {row.version} of {row.name!r}")
        while len(_opened) >= MAX_OPENED:
            _opened.pop(next(iter(_opened)), None)
        _opened[row.hash] = pool
    return StoredPool(pool, row.version, row.created_at.replace(tzinfo=UTC))


def drop_opened(content_hash: str) -> None:
    """Keep no copy of a version's content in this process: its row is deleted."""
    _opened.pop(content_hash, None)


def _dump_body(pool: Pool) -> str:
    return json.dumps(pool.model_dump(mode="json"), ensure_ascii=False)


def _load_body(body: str | bytes, what: str) -> Pool:
    try:
        return Pool.model_validate_json(body)
    except ValidationError as error:
        raise InvalidPool([("", f"{what} cannot be read: {describe_problems(error)}")]) from error
