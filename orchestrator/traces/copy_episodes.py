"""Copies episodes out of another data folder's database, such as that of a rented machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Engine, create_engine, insert, select
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import SQLModel

from orchestrator.traces.tables import EPISODES, EVENTS
from pool_registry.errors import StorageError
from pool_registry.storage.database import writing

POOLS = SQLModel.metadata.tables["unlisted_pool"]


def copy_episodes(database: Path, engine: Engine) -> int:
    """Copy the episodes of a SQLite file, with their events and unlisted pools, that `engine` does not hold. Returns
    how many there were. Each is copied as a whole. Raises StorageError for a file that cannot be read."""
    source = create_engine(f"sqlite:///{database}")
    try:
        return sum(_copy_episode(source, engine, episode) for episode in _list_missing(source, engine))
    except SQLAlchemyError as error:
        raise StorageError(f"the traces in {database} cannot be read: {error}") from error
    finally:
        source.dispose()


def _list_missing(source: Engine, engine: Engine) -> Iterator[str]:
    """Yield the ids of episodes that `engine` does not hold, oldest first, after copying the pools that they name."""
    with source.connect() as there, writing(engine) as session:
        stored = set(session.scalars(select(POOLS.c.hash)))
        for pool in there.execute(select(POOLS)).mappings():
            if pool["hash"] not in stored:
                session.execute(insert(POOLS).values(**pool))
        held = set(session.scalars(select(EPISODES.c.id)))
        episodes = list(there.scalars(select(EPISODES.c.id).order_by(EPISODES.c.started_at)))
    yield from (episode for episode in episodes if episode not in held)


def _copy_episode(source: Engine, engine: Engine, episode: str) -> int:
    with source.connect() as there, writing(engine) as session:
        row = there.execute(select(EPISODES).where(EPISODES.c.id == episode)).mappings().one()
        session.execute(insert(EPISODES).values(**row))
        events = there.execute(select(EVENTS).where(EVENTS.c.episode == episode).order_by(EVENTS.c.id)).mappings()
        rows = [{name: value for name, value in event.items() if name != "id"} for event in events]
        if rows:
            session.execute(insert(EVENTS), rows)
    return 1
