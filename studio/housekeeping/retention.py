"""Retention: what is deleted by itself, by age and by size. HOME/retention.json holds the setting; without one
served requests go after 90 days, and what lies in the trash after 14.

Starred traces, and those that run or wait, always stay. What is deleted goes to the trash first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError
from sqlalchemy import ColumnElement, func
from sqlmodel import Session, col, select

from orchestrator.engine.events import SERVED
from orchestrator.traces.store import EpisodeRow, EventRow, StarRow, Store
from pool_registry.atomic_write import lock_file, write_atomically
from pool_registry.errors import StorageError
from pool_registry.storage.data_folder import Home
from pool_registry.strict_model import FrozenModel
from pool_registry.validation_words import describe_problems
from studio.housekeeping.things import MAX_TRACES, Things
from studio.housekeeping.trash import KEPT_DAYS, measure
from trainer.errors import TrainerError
from trainer.jobs.queue import JobRow, JobStore

MAX_DAYS = 365_000  # a thousand years: a day further back than the calendar reaches cannot be written
DRAWN = ("evaluation", "training")  # sources whose traces go first
ENDED = ("done", "failed", "stopped")
Days = Annotated[float, Field(gt=0, le=MAX_DAYS)]
Size = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Retention(FrozenModel):
    """How long, and up to which size, things are kept; empty means for ever."""

    traces_days: Days | None = Field(default=None, description="Days that traces of people and clients stay.")
    drawn_days: Days | None = Field(default=None, description="Days that traces of evaluations and training stay.")
    served_days: Days | None = Field(default=90, description="Days that traces of served requests stay.")
    traces_mb: Size | None = Field(default=None, description="Megabytes of traces; the oldest go first.")
    jobs_days: Days | None = Field(default=None, description="Days that ended jobs stay, with their checkpoints.")
    jobs_gb: Size | None = Field(default=None, description="Gigabytes of jobs; the oldest ended ones go first.")
    trash_days: float = Field(
        default=KEPT_DAYS, ge=0, le=MAX_DAYS, description="Days that deleted things can be put back."
    )
    copies: int = Field(default=7, ge=0, description="Daily copies of the database that stay; 0 makes none.")
    copies_days: Days = Field(default=30, description="Days that a daily copy stays; the newest always does.")


@dataclass(frozen=True, slots=True)
class Tidying:
    """What retention deletes: traces, jobs, and things in the trash for good. `kept` says why something stays."""

    traces: tuple[str, ...]
    jobs: tuple[str, ...]
    trash: tuple[str, ...]
    kept: tuple[str, ...] = ()


def read_retention(home: Home) -> Retention:
    """Read the setting. Raises StorageError where its file is damaged."""
    try:
        return Retention.model_validate_json(_file(home).read_bytes())
    except FileNotFoundError:
        return Retention()
    except ValidationError as error:
        problem = describe_problems(error)
        raise StorageError(f"{_file(home)} cannot be read; correct or delete it: {problem}") from error
    except OSError as error:
        raise StorageError(f"{_file(home)} cannot be read; correct or delete it: {error}") from error


def write_retention(home: Home, retention: Retention) -> None:
    """Write the setting."""
    write_atomically(_file(home), retention.model_dump_json(indent=1))


def change_retention(home: Home, changes: Mapping[str, float | None]) -> None:
    """Change some of the setting; of two people who do so at once each keeps theirs. Raises StorageError."""
    with lock_file(_file(home).with_suffix(".lock")):
        write_retention(home, vary_retention(read_retention(home), changes))


def vary_retention(retention: Retention, changes: Mapping[str, float | None]) -> Retention:
    """A retention with some of it changed. Raises StorageError naming what is out of range."""
    try:
        return Retention.model_validate({**retention.model_dump(), **changes})
    except ValidationError as error:
        raise StorageError(f"the retention stays as it is: {describe_problems(error)}") from error


def tidy(store: Store, dry_run: bool = False, retention: Retention | None = None) -> Tidying:
    """Delete what a retention no longer keeps, the setting where none is named; with `dry_run` only list it."""
    retention = retention or read_retention(store.home)
    things = Things(store)
    traces = list_old_traces(store, retention)
    jobs = list_old_jobs(JobStore(store.engine, store.home), retention)
    trash = tuple(entry.key for entry in things.trash.list() if entry.age_days >= retention.trash_days)
    if dry_run:
        return Tidying(tuple(traces), tuple(jobs), trash)
    things.trash.empty(retention.trash_days)
    for start in range(0, len(traces), MAX_TRACES):
        things.delete_traces(traces[start : start + MAX_TRACES])
    kept = [problem for job in jobs if (problem := _delete_job(things, job))]
    return Tidying(tuple(traces), tuple(jobs), trash, tuple(kept))


def list_old_traces(store: Store, retention: Retention) -> list[str]:
    """List the traces that are too old or too many, the oldest first."""
    drawn, served = col(EpisodeRow.source).in_(DRAWN), col(EpisodeRow.source) == SERVED
    limits = ((retention.drawn_days, drawn), (retention.served_days, served), (retention.traces_days, ~drawn))
    old: dict[str, None] = {}
    with Session(store.engine) as session:
        for days, which in limits:
            if days is not None:
                query = select(EpisodeRow.id).where(*_is_deletable(), which, EpisodeRow.started_at < _ago(days))
                old |= dict.fromkeys(session.exec(query.order_by(EpisodeRow.started_at)))
        if retention.traces_mb is not None:
            old |= dict.fromkeys(_list_above(session, retention.traces_mb * 1e6, old))
    return list(old)


def list_old_jobs(jobs: JobStore, retention: Retention) -> list[str]:
    """List the ended jobs that are too old or too large together, the oldest first."""
    ended = [row for row in reversed(jobs.all(limit=100_000)) if row.state in ENDED]
    old: dict[str, None] = {}
    if retention.jobs_days is not None:
        oldest = datetime.now(UTC) - timedelta(days=retention.jobs_days)
        old |= dict.fromkeys(row.id for row in ended if _end_of(row) < oldest)
    if retention.jobs_gb is not None:
        sizes = {row.id: measure(jobs.folder(row.id).path) for row in ended}
        over = sum(sizes.values()) - sum(sizes[job] for job in old) - retention.jobs_gb * 1e9
        for row in ended:
            if over <= 0:
                break
            if row.id not in old:
                old[row.id] = None
                over -= sizes[row.id]
    return list(old)


def _list_above(session: Session, limit: float, gone: Sequence[str] | dict[str, None]) -> list[str]:
    """The traces beyond a size in bytes: first those of evaluations and training, each from the oldest."""
    size = func.sum(func.length(EventRow.body))
    query = select(EpisodeRow.id, EpisodeRow.source, size).join(EventRow, col(EventRow.episode) == col(EpisodeRow.id))
    query = query.where(*_is_deletable()).group_by(EpisodeRow.id, EpisodeRow.source, EpisodeRow.started_at)
    rows = [row for row in session.exec(query.order_by(EpisodeRow.started_at)) if row[0] not in gone]
    over, above = sum(size for _, _, size in rows) - limit, []
    for episode, _, size in sorted(rows, key=lambda row: row[1] not in DRAWN):
        if over <= 0:
            break
        above.append(episode)
        over -= size
    return above


def _is_deletable() -> tuple[ColumnElement[bool], ...]:
    starred = select(StarRow.episode)
    return (
        col(EpisodeRow.state).not_in(("running", "waiting")),
        col(EpisodeRow.id).not_in(starred),
        col(EpisodeRow.depth) == 0,
    )


def _delete_job(things: Things, job: str) -> str:
    """Delete a job; returns why it stays, "" where it does not."""
    try:
        things.delete("job", job)
    except (StorageError, TrainerError) as error:
        return str(error)
    return ""


def _end_of(row: JobRow) -> datetime:
    return (row.ended_at or row.created_at).replace(tzinfo=UTC)


def _ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="milliseconds")


def _file(home: Home) -> Path:
    return home.root / "retention.json"
