"""Links to one run each, which open without a login: made, listed, taken back, and void after a time.

A link's token is 256 random bits; only its hash is stored, so a link is shown once. It goes with its run: one that is
deleted, also to the trash, or forgotten takes its links along.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine, delete
from sqlmodel import Field, Session, SQLModel, col, select

from orchestrator.traces.tables import EpisodeRow
from pool_registry.errors import PoolError
from pool_registry.storage.database import writing

PLACE = "/shared/"  # the address of a link, before its token
ADDRESS = re.compile(rf"{PLACE}[A-Za-z0-9_-]{{43}}")
DEFAULT_DAYS = 30.0
MOST_DAYS = 365.0
ID_CHARS = 12  # of the token's hash: enough to name a link, too few to open one
ENDED = "the run has not ended; share it when it has"


class ShareRefused(PoolError):
    """Raised where a run cannot be shared, or a link is not there."""


class SharedRunRow(SQLModel, table=True):
    """A link to a run. `token_hash` is that of what stands in its address."""

    __tablename__ = "shared_run"

    token_hash: str = Field(primary_key=True)
    episode: str = Field(foreign_key="episode.id", ondelete="CASCADE", index=True)
    created_at: datetime
    expires_at: datetime
    user_name: str = ""


@dataclass(frozen=True, slots=True)
class SharedRun:
    """A link as it is listed; times are ISO 8601, `user` made it ("" without login)."""

    id: str
    episode: str
    query: str
    user: str
    created_at: str
    expires_at: str


class SharedRuns:
    """The links of a data folder."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, episode: str, days: float = DEFAULT_DAYS, user: str = "") -> str:
        """Make a link that works for some days; returns its address on the studio. Raises ShareRefused."""
        if not 0 < days <= MOST_DAYS:
            raise ShareRefused(f"a link works for at most {MOST_DAYS:.0f} days; say for how many, such as 30")
        token, now = secrets.token_urlsafe(32), _now()
        with writing(self._engine, "shared_run") as session:
            run = session.get(EpisodeRow, episode)
            if run is None:
                raise ShareRefused(f"there is no episode {episode!r} in this data folder")
            if run.state in ("running", "waiting"):
                raise ShareRefused(ENDED)
            session.exec(delete(SharedRunRow).where(col(SharedRunRow.expires_at) <= now))
            until = now + timedelta(days=days)
            row = SharedRunRow(
                token_hash=_hash(token), episode=episode, created_at=now, expires_at=until, user_name=user
            )
            session.add(row)
        return f"{PLACE}{token}"

    def find_run(self, token: str) -> str | None:
        """The run that a token opens; None where it opens none (any longer)."""
        with Session(self._engine) as session:
            row = session.get(SharedRunRow, _hash(token))
            return row.episode if row is not None and row.expires_at.replace(tzinfo=UTC) > _now() else None

    def list(self, episode: str = "", user: str | None = None) -> list[SharedRun]:
        """The links that work, the latest first: of a run, those that a person made, or all."""
        query = select(SharedRunRow, EpisodeRow.query).join(EpisodeRow, col(EpisodeRow.id) == col(SharedRunRow.episode))
        query = query.where(col(SharedRunRow.expires_at) > _now())
        if episode:
            query = query.where(SharedRunRow.episode == episode)
        if user is not None:
            query = query.where(SharedRunRow.user_name == user)
        with Session(self._engine) as session:
            return [
                _to_shared(row, text) for row, text in session.exec(query.order_by(col(SharedRunRow.created_at).desc()))
            ]

    def revoke(self, link_id: str, user: str | None = None) -> None:
        """Take a link back at once, one that this person made where `user` is given. Raises ShareRefused."""
        whose = () if user is None else (col(SharedRunRow.user_name) == user,)
        meant = col(SharedRunRow.token_hash).startswith(link_id, autoescape=True)
        with writing(self._engine, "shared_run") as session:
            if len(link_id) != ID_CHARS or not session.exec(delete(SharedRunRow).where(meant, *whose)).rowcount:
                raise ShareRefused(f"there is no link {link_id!r}; it may have been taken back already")

    def revoke_all(self, episode: str) -> int:
        """Take back the links of a run; returns how many there were."""
        with writing(self._engine, "shared_run") as session:
            return int(session.exec(delete(SharedRunRow).where(col(SharedRunRow.episode) == episode)).rowcount)


def _to_shared(row: SharedRunRow, query: str) -> SharedRun:
    times = (moment.replace(tzinfo=UTC).isoformat(timespec="seconds") for moment in (row.created_at, row.expires_at))
    return SharedRun(row.token_hash[:ID_CHARS], row.episode, query, row.user_name, *times)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _now() -> datetime:
    return datetime.now(UTC)
