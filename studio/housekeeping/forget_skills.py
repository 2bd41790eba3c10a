"""Takes skills out of pools that were made of what is forgotten: out of the current version, and with every older one.

A skill names its runs by their ids and its tasks by digests, which is how it is found. A pool that a trace names by its
hash is gone with its version; the trace stays.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from pool_registry.pool import Pool
from pool_registry.storage.database import writing
from pool_registry.storage.pool_store import PoolHeadRow, PoolStore, PoolVersionRow, UnlistedPoolRow, drop_opened
from pool_registry.worker import WorkerSpec
from pool_registry.workers.skill import SkillConfig

KIND = "skill"


def forget_skills(engine: Engine, runs: Collection[str], digests: Collection[str]) -> int:
    """Delete the skills that were made of these runs, or of tasks with these digests. Returns how many different
    skills that were."""
    marks = {*runs, *digests}
    gone: set[tuple[str, str]] = set()
    pools = PoolStore(engine)
    for name in pools.names():
        made = list_made_of(pools.latest(name).pool, marks)
        if made:
            gone |= {(name, skill) for skill in made}
            pools.edit(name, lambda current: _take_out(current, list_made_of(current, marks)))
    with writing(engine, PoolVersionRow.__tablename__, PoolHeadRow.__tablename__) as session:
        for name, made, row in _list_holders(session, marks):
            gone |= {(name, skill) for skill in made}
            drop_opened(row.hash)
            session.delete(row)
    return len(gone)


def list_made_of(pool: Pool, marks: Collection[str]) -> frozenset[str]:
    """The names of the skills of a pool that one of these ids or digests was made into."""
    return frozenset(
        spec.name
        for spec in pool.workers
        if spec.kind == KIND
        and (record := SkillConfig.model_validate(spec.config).record) is not None
        and not {*record.runs, *record.tasks}.isdisjoint(marks)
    )


def _list_holders(
    session: Session, marks: Collection[str]
) -> list[tuple[str, frozenset[str], PoolVersionRow | UnlistedPoolRow]]:
    """The stored versions that still have such a skill: none is current any more."""
    mark = f'"{KIND}"'
    versions = session.exec(select(PoolVersionRow).where(col(PoolVersionRow.body).contains(mark))).all()
    bodies: list[tuple[PoolVersionRow | UnlistedPoolRow, str]] = [(row, row.body) for row in versions]
    unlisted = ((row, zlib.decompress(row.body).decode()) for row in session.exec(select(UnlistedPoolRow)))
    bodies += [(row, body) for row, body in unlisted if mark in body]
    pools = [(row, Pool.model_validate_json(body)) for row, body in bodies]
    return [(row.name, made, row) for row, pool in pools if (made := list_made_of(pool, marks))]


def _take_out(pool: Pool, names: Collection[str]) -> Pool:
    """A pool without these workers, and without what others say of them."""
    workers = tuple(_let_go(spec, names) for spec in pool.workers if spec.name not in names)
    return pool.model_copy(update={"workers": workers})


def _let_go(spec: WorkerSpec, names: Collection[str]) -> WorkerSpec:
    tools = spec.config.get("tools")
    changes: dict[str, object] = {"fallback": ""} if spec.fallback in names else {}
    if isinstance(tools, list | tuple) and any(tool in names for tool in tools):
        changes["config"] = {**spec.config, "tools": [tool for tool in tools if tool not in names]}
    return spec.model_copy(update=changes) if changes else spec
