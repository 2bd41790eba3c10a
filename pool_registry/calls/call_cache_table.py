"""Recorded observations in the database, so that a worker's cache outlives the process. Kept for a week."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Engine, delete
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Field, Session, SQLModel, col

from pool_registry.actions import Observation
from pool_registry.storage.database import writing

log = logging.getLogger(__name__)
KEEP = timedelta(days=7)
TIDY_EVERY = 100  # writes
_codec: TypeAdapter[Observation] = TypeAdapter(Observation)


class RecordedRow(SQLModel, table=True):
    """One observation under the key of its call (call_cache.py)."""

    __tablename__ = "recorded"

    key: str = Field(primary_key=True)
    body: str
    created_at: datetime = Field(index=True)


class DatabaseCacheStore:
    """A `CacheStore`. A database error costs the record, never the call: both methods log it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._writes = 0

    def get(self, key: str) -> Observation | None:
        """Return the recorded observation unless it is too old."""
        try:
            with Session(self._engine) as session:
                row = session.get(RecordedRow, key)
            if row is None or row.created_at.replace(tzinfo=UTC) < datetime.now(UTC) - KEEP:
                return None
            return _codec.validate_json(row.body)
        except (SQLAlchemyError, ValidationError) as error:
            log.warning("a recorded observation cannot be read, so its call is made again: %s", type(error).__name__)
            return None

    def put(self, key: str, observation: Observation) -> None:
        """Record an observation; every TIDY_EVERY writes, delete the old ones."""
        try:
            with writing(self._engine) as session:
                body = _codec.dump_json(observation).decode()
                session.merge(RecordedRow(key=key, body=body, created_at=datetime.now(UTC)))
                if self._writes % TIDY_EVERY == 0:
                    session.connection().execute(
                        delete(RecordedRow).where(col(RecordedRow.created_at) < datetime.now(UTC) - KEEP)
                    )
            self._writes += 1
        except SQLAlchemyError as error:
            log.warning("an observation cannot be recorded: %s", type(error).__name__)
