"""What an editor may not do to pools: add or change workers that want something of this machine, and change pools that
an owner has shared read-only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Field, Session, SQLModel

from pool_registry.errors import PoolNotFound
from pool_registry.network.address_policy import is_own_host
from pool_registry.pool import Pool
from pool_registry.secrets import list_references
from pool_registry.storage.data_folder import find_home
from pool_registry.storage.database import writing
from pool_registry.storage.pool_store import PoolHeadRow
from pool_registry.wants import find_origin, list_wants
from pool_registry.worker import WorkerSpec
from studio.access.roles import UserRole, current_rights

SAFE_SOURCES = ("openapi", "space", "mcp")  # of workers to look at; a function's file is run to read it


class ReadOnlyPoolRow(SQLModel, table=True):
    """A pool that only owners change; everybody else looks at it and runs it."""

    __tablename__ = "read_only_pool"

    name: str = Field(primary_key=True)


class ReadOnlyPools:
    """The pools that only owners change."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def holds(self, name: str) -> bool:
        with Session(self._engine) as session:
            return session.get(ReadOnlyPoolRow, name) is not None

    def set(self, name: str, read_only: bool) -> None:
        """Say whether only owners change a pool. Raises PoolNotFound, also where it has just been renamed."""
        with writing(self._engine, "read_only_pool", "pool_head") as session:
            if session.get(PoolHeadRow, name) is None:
                raise PoolNotFound(f"there is no pool {name!r} any more")
            row = session.get(ReadOnlyPoolRow, name)
            if read_only and row is None:
                session.add(ReadOnlyPoolRow(name=name))
            elif not read_only and row is not None:
                session.delete(row)

    def check(self, name: str) -> None:
        """Raise RoleRefused where the sender of the request may not change this pool."""
        if not current_rights.get().is_owner and self.holds(name):
            current_rights.get().require(UserRole.OWNER, f"change the pool {name}, which is shared read-only: copy it")


def check_workers(pool: Pool, before: Pool | None) -> None:
    """Raise RoleRefused when `pool` has a worker that only an owner may add or change. `before` is what it was made
    from: what stands there, just so, may stay."""
    if current_rights.get().is_owner:
        return
    for spec in pool.workers:
        check_worker(spec, before)


def check_worker(spec: WorkerSpec, pool: Pool | None) -> None:
    """Raise RoleRefused when only an owner may add, change or try this worker."""
    rights = current_rights.get()
    if rights.is_owner:
        return
    stored = pool.find_worker(spec.name) if pool is not None else None
    if stored is not None and _calls_alike(spec, stored):
        return
    if wants := [want for want in list_wants(spec) if not _is_upload(spec, want)]:
        rights.require(UserRole.OWNER, f"add, change or try {spec.name}, because it {wants[0]}")


def check_source(fields: Mapping[str, Any]) -> None:
    """Raise RoleRefused when only an owner may look at what this source of workers offers."""
    rights, source = current_rights.get(), str(fields.get("source") or "")
    server = fields.get("server")
    settings = {**fields, **server} if isinstance(server, Mapping) else fields
    if source not in SAFE_SOURCES or (source == "mcp" and settings.get("transport") != "http"):
        rights.require(UserRole.OWNER, "look into a program or a function: that starts it")
    check_address(settings)


def check_address(fields: Mapping[str, Any]) -> None:
    """Raise RoleRefused when a request with these fields would send a key, or reach this machine or its network."""
    rights = current_rights.get()
    if list_references(dict(fields)):
        rights.require(UserRole.OWNER, "send a key of this machine to an address")
    hosts = [origin for value in fields.values() if isinstance(value, str) and (origin := find_origin(value))]
    if fields.get("allow_private") is True or any(is_own_host(_read_host(origin)) for origin in hosts):
        rights.require(UserRole.OWNER, "reach this machine and its network")


def _calls_alike(spec: WorkerSpec, stored: WorkerSpec) -> bool:
    """Whether a call does what a call of the stored worker does, which an owner has agreed to."""
    agreed = stored.enabled or not spec.enabled
    return agreed and (spec.kind, spec.config) == (stored.kind, stored.config)


def _is_upload(spec: WorkerSpec, want: str) -> bool:
    """Whether all that is wanted is to read documents that were uploaded to the studio."""
    path = spec.config.get("path")
    if spec.kind != "documents" or not isinstance(path, str) or want != f"reads the documents {path} on this machine":
        return False
    return Path(path).resolve().is_relative_to((find_home().artifacts / "documents").resolve())


def _read_host(origin: str) -> str:
    return origin.partition("://")[2].rpartition(":")[0].strip("[]")
