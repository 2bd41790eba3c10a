"""The tables of traces: episodes, their events and stars. store.py reads them, writer.py writes them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from orchestrator.traces.step_counts import StepCounts


class EpisodeRow(SQLModel, table=True):
    """One line of the Traces page. `state` is running, waiting (for a person), interrupted or the outcome. Steps are
    counted as in step_counts.py."""

    __tablename__ = "episode"
    __table_args__ = (
        Index("ix_episode_pool_started_at", "pool", "started_at"),
        Index("ix_episode_source_pool", "source", "pool"),
    )

    id: str = Field(primary_key=True)
    query: str
    pool: str
    pool_hash: str
    orchestrator: str = Field(index=True)
    started_at: str = Field(index=True)
    depth: int = 0
    parent: str | None = Field(default=None, index=True)
    what_if_of: str | None = Field(default=None, index=True)
    family: str | None = None
    state: str = Field(default="running", index=True)
    owner: str = ""
    answer: str | None = None
    correct: bool | None = None
    wall_s: float = 0.0
    steps: int = 0
    failed_steps: int = 0
    tries: int = 0
    tokens: int = 0
    cost: float = 0.0
    user_name: str = Field(default="", index=True)
    source: str = ""
    deployment: str = Field(default="", index=True)
    side: str = ""  # of the deployment: serving, candidate or shadow
    shadow_of: str = ""
    continues: str | None = Field(default=None, index=True)

    @property
    def counts(self) -> StepCounts:
        return StepCounts(self.steps, self.failed_steps, self.tries)


class EventRow(SQLModel, table=True):
    """One event; `body` is its JSON. Worker, status, error code and latency are copied out of ended steps."""

    __tablename__ = "event"
    __table_args__ = (Index("ix_event_worker", "worker", "id"),)

    id: int | None = Field(default=None, primary_key=True)
    episode: str = Field(foreign_key="episode.id", ondelete="CASCADE", index=True)
    type: str
    worker: str | None = None
    status: str | None = None
    latency_s: float | None = None
    body: str
    code: str | None = None


class StarRow(SQLModel, table=True):
    """A trace that a person marked as worth imitating."""

    __tablename__ = "star"

    episode: str = Field(primary_key=True, foreign_key="episode.id", ondelete="CASCADE")
    created_at: datetime


# For SQLAlchemy's statements; SQLModel leaves `__table__` untyped.
EPISODES, EVENTS = SQLModel.metadata.tables["episode"], SQLModel.metadata.tables["event"]
