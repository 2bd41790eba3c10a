"""The stored form of episodes: an append-only table of events and one summary row per episode.

This module reads them and opens the store of a data folder. The tables are in tables.py, the writing thread in
writer.py. Readers poll by event id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Engine, func, or_, update
from sqlalchemy.orm import Mapped
from sqlmodel import Session, col, select
from sqlmodel.sql.expression import SelectOfScalar

from orchestrator.approval.plan_gate import CallAverages
from orchestrator.binding.stored_edits import BindingEdits
from orchestrator.engine.episode import Episode, replay
from orchestrator.engine.events import Event, StepEnded, load_event
from orchestrator.engine.process_identity import hold_folder, is_alive, this_process
from orchestrator.errors import EpisodeNotFound
from orchestrator.failure_memory.lessons import LessonStore
from orchestrator.traces.tables import EPISODES, EpisodeRow, EventRow, StarRow
from orchestrator.traces.writer import TraceWriter
from pool_registry.pool import Pool
from pool_registry.storage.data_folder import Home
from pool_registry.storage.database import writing
from pool_registry.storage.pool_store import PoolHeadRow, PoolStore, UnlistedPoolRow
from pool_registry.storage.upgrade import open_engine

__all__ = [
    "EpisodeRow",
    "EventRow",
    "RecordedCall",
    "StarRow",
    "Store",
    "TraceFilter",
    "TraceStore",
    "WorkerStats",
    "open_store",
]

MANY_IDS = 500  # in one statement
SORTABLE = ("started_at", "wall_s", "steps", "tokens", "cost", "state", "pool", "orchestrator")


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """The filter of the Traces page; empty fields do not restrict."""

    pool: str = ""
    orchestrator: str = ""
    state: str = ""
    text: str = ""
    user: str = ""
    source: str = ""  # mine, served, evaluation or training
    nested: bool = False  # recursive episodes too
    sort: str = "started_at"  # a column of SORTABLE
    ascending: bool = False
    limit: int = 100
    offset: int = 0


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """How a worker did in recorded episodes."""

    calls: int = 0
    ok: int = 0
    median_latency_s: float | None = None


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """The outcome of one call in a trace. `code` is None when it is OK, and in traces of older versions."""

    status: str
    latency_s: float
    code: str | None


class Listener(Protocol):
    """Is shown events while they happen; must not block."""

    def append(self, episode_id: str, event: Event) -> None: ...

    def close(self) -> None: ...


class TraceStore:
    """Reads episodes; `append` hands events to the writer thread (it is a `Sink`)."""

    def __init__(self, engine: Engine, home: Home) -> None:
        self._engine = engine
        self._home = home.root
        self._hold = hold_folder(home.root)  # shows other containers and hosts that this process's episodes run
        self._writer = TraceWriter(engine, home.set_aside)
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Show another program every event that is stored from now on."""
        self._listeners.append(listener)

    def append(self, episode_id: str, event: Event) -> None:
        self._writer.put(episode_id, event)
        for listener in self._listeners:
            listener.append(episode_id, event)

    def keep_pool(self, pool: Pool, pool_hash: str) -> None:
        """Keep a pool for the traces that name its hash, without listing it among the pools."""
        self._writer.put_pool(pool, pool_hash)

    def flush(self) -> None:
        """Return when everything appended so far is on disk. Raises StorageError if writing fails."""
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()
        for listener in self._listeners:
            listener.close()

    @property
    def problem(self) -> str | None:
        """Why traces cannot be written at the moment (a full disk ...), or None."""
        return self._writer.problem

    def events_after(self, episode_id: str, last_id: int = 0) -> list[tuple[int, Event]]:
        """Return the events of an episode with ids above `last_id`, in order."""
        conditions = (col(EventRow.episode) == episode_id, col(EventRow.id) > last_id)
        query = select(EventRow.id, EventRow.body).where(*conditions).order_by(col(EventRow.id))
        with Session(self._engine) as session:
            return [(event_id or 0, load_event(body)) for event_id, body in session.exec(query)]

    def row(self, episode_id: str) -> EpisodeRow:
        """The summary of an episode. Raises EpisodeNotFound."""
        with Session(self._engine) as session:
            row = session.get(EpisodeRow, episode_id)
        if row is None:
            raise EpisodeNotFound(f"there is no episode {episode_id!r} in this data folder")
        return row

    def episode(self, episode_id: str) -> Episode:
        """The episode, replayed from its events. Raises EpisodeNotFound."""
        self.row(episode_id)
        return replay(episode_id, (event for _, event in self.events_after(episode_id)))

    def read_answers(self, episodes: Sequence[str]) -> dict[str, str | None]:
        """The final answers of these episodes as texts, by id; those that are not stored are not in it."""
        answers: dict[str, str | None] = {}
        with Session(self._engine) as session:
            for start in range(0, len(episodes), MANY_IDS):
                ids = episodes[start : start + MANY_IDS]
                query = select(EpisodeRow.id, EpisodeRow.answer).where(col(EpisodeRow.id).in_(ids))
                answers.update(dict(session.exec(query).all()))
        return answers

    def search(self, criteria: TraceFilter) -> list[EpisodeRow]:
        """List episodes in the order of the filter; equal ones the newest first."""
        query = select(EpisodeRow).where(*_filter_conditions(criteria))
        column = col(getattr(EpisodeRow, criteria.sort if criteria.sort in SORTABLE else SORTABLE[0]))
        order = column.asc() if criteria.ascending else column.desc()
        query = query.order_by(order, col(EpisodeRow.started_at).desc())
        with Session(self._engine) as session:
            return list(session.exec(query.limit(criteria.limit).offset(criteria.offset)))

    def variations(self, episode_id: str) -> list[EpisodeRow]:
        """The what-ifs of an episode, newest first."""
        query = select(EpisodeRow).where(EpisodeRow.what_if_of == episode_id)
        with Session(self._engine) as session:
            return list(session.exec(query.order_by(col(EpisodeRow.started_at).desc()).limit(100)))

    def list_follow_ups(self, episode_id: str) -> list[EpisodeRow]:
        """The runs that go on with an episode, oldest first."""
        query = select(EpisodeRow).where(EpisodeRow.continues == episode_id)
        with Session(self._engine) as session:
            return list(session.exec(query.order_by(col(EpisodeRow.started_at)).limit(100)))

    def list_pools(self) -> list[str]:
        """List the pools that a person, or a client, has run something on: none that was drawn for a task."""
        listed = select(PoolHeadRow.name)
        used = listed.where(select(EpisodeRow.id).where(EpisodeRow.pool == PoolHeadRow.name).exists())
        unlisted = select(UnlistedPoolRow.name).where(col(UnlistedPoolRow.name).not_in(listed))
        sources = [source for source in self.distinct("source") if source not in ("evaluation", "training")]
        with Session(self._engine) as session:
            pools = set(session.exec(used))
            for source in sources:
                of_source = session.exec(_list_values(col(EpisodeRow.pool), col(EpisodeRow.source) == source))
                drawn = set(session.exec(unlisted)) if source == "" else set()
                pools |= set(of_source) - drawn
        return sorted(pools)

    def distinct(self, column: str) -> list[str]:
        """The values that occur in a column of the summary (for filters)."""
        with Session(self._engine) as session:
            return [str(value) for value in session.exec(_list_values(col(getattr(EpisodeRow, column))))]

    def pool_stats(self, versions: Mapping[str, Collection[str]], last: int = 500) -> dict[str, WorkerStats]:
        """How each worker of a pool did in its last episodes. `versions` names for each worker the hashes of the pool's
        versions whose calls count: those in which it was the same."""
        hashes = {pool_hash for chosen in versions.values() for pool_hash in chosen}
        episodes = select(EpisodeRow.id).where(col(EpisodeRow.pool_hash).in_(hashes))
        newest = episodes.order_by(col(EpisodeRow.started_at).desc()).limit(last).subquery()
        calls = select(EventRow.worker, EventRow.status, EventRow.latency_s, EpisodeRow.pool_hash)
        calls = calls.join(EpisodeRow, col(EpisodeRow.id) == col(EventRow.episode))
        calls = calls.where(col(EventRow.worker).is_not(None), col(EventRow.episode).in_(select(newest.c.id)))
        seen: dict[str, list[tuple[str | None, float | None]]] = {}
        with Session(self._engine) as session:
            for worker, status, latency, pool_hash in session.exec(calls):
                if pool_hash in versions.get(worker or "", ()):
                    seen.setdefault(worker or "", []).append((status, latency))
        return {worker: _summarize_calls(rows) for worker, rows in seen.items()}

    def list_called_workers(self) -> set[str]:
        """The names of all workers that have ever been called: one look at an index for each."""
        with Session(self._engine) as session:
            return {str(name) for name in session.exec(_list_values(col(EventRow.worker)))}

    def recent_calls(self, worker: str, pool: str = "", last: int = 50) -> list[RecordedCall]:
        """The last calls that reached a worker, newest first; with `pool` those of its episodes on that pool.

        Reads an index and at most `20 * last` rows, however many there are.
        """
        calls = select(EventRow.status, EventRow.latency_s, EventRow.code)
        if not pool:
            calls = calls.where(col(EventRow.worker) == worker)
        else:
            calls = calls.join(EpisodeRow, col(EpisodeRow.id) == col(EventRow.episode))
            calls = calls.where(
                col(EpisodeRow.pool) == pool, col(EventRow.id).in_(_list_newest_calls(worker, 20 * last))
            )
        with Session(self._engine) as session:
            rows = session.exec(calls.order_by(col(EventRow.id).desc()).limit(last))
            return [RecordedCall(status or "", latency_s or 0.0, code) for status, latency_s, code in rows]

    def star(self, episode_id: str, on: bool) -> None:
        """Mark a trace as worth imitating, or remove the mark. Raises EpisodeNotFound."""
        self.row(episode_id)
        with writing(self._engine, "star") as session:
            row = session.get(StarRow, episode_id)
            if on and row is None:
                session.add(StarRow(episode=episode_id, created_at=datetime.now(UTC)))
            elif row is not None and not on:
                session.delete(row)

    def list_starred(self, pool: str = "") -> list[str]:
        """List the ids of starred traces, oldest first; with `pool` only those that ran on it."""
        query = select(StarRow.episode).join(EpisodeRow, col(EpisodeRow.id) == col(StarRow.episode))
        if pool:
            query = query.where(col(EpisodeRow.pool) == pool)
        with Session(self._engine) as session:
            return list(session.exec(query.order_by(col(StarRow.created_at))))

    def read_call_averages(self, workers: Collection[str], pool: str, last: int = 20) -> dict[str, CallAverages]:
        """What the last successful calls of these workers on a pool took; nothing for those without among the last
        `50 * last` calls of the worker."""
        averages = {}
        with Session(self._engine) as session:
            for worker in workers:
                query = select(EventRow.body).join(EpisodeRow, col(EpisodeRow.id) == col(EventRow.episode))
                newest = _list_newest_calls(worker, 50 * last)
                query = query.where(col(EventRow.id).in_(newest), EventRow.status == "OK", EpisodeRow.pool == pool)
                bodies = session.exec(query.order_by(col(EventRow.id).desc()).limit(last)).all()
                if bodies:
                    averages[worker] = _average_calls([load_event(body) for body in bodies])
        return averages

    def claim(self, episode_id: str, last_event: int) -> bool:
        """Take over an episode that has waited for a person since `last_event`; False when it does not wait, or waits
        with a later plan because another process was faster."""
        waits = (EPISODES.c.id == episode_id) & (EPISODES.c.state == "waiting")
        later = select(EventRow.id).where(col(EventRow.episode) == episode_id, col(EventRow.id) > last_event)
        with writing(self._engine) as session:
            change = update(EPISODES).where(waits, ~later.exists()).values(state="running", owner=this_process())
            return session.connection().execute(change).rowcount == 1

    def follow_resumed(self, episode_id: str) -> None:
        """Keep the summary of an episode that goes on in this process. Raises EpisodeNotFound and DamagedTrace."""
        self._writer.put_resumed(self.episode(episode_id))

    def mark_interrupted(self) -> int:
        """Mark running episodes whose process has ended as interrupted. Returns how many there were."""
        with writing(self._engine, "episode") as session:
            query = select(EpisodeRow).where(EpisodeRow.state == "running")
            lost = [row for row in session.exec(query) if not is_alive(row.owner, self._home)]
            for row in lost:
                row.state = "interrupted"
                session.add(row)
        return len(lost)


@dataclass(frozen=True, slots=True)
class Store:
    """The parts of a data folder's database."""

    home: Home
    engine: Engine
    pools: PoolStore
    traces: TraceStore
    lessons: LessonStore
    bindings: BindingEdits

    def close(self) -> None:
        self.traces.close()


def open_store(home: Home) -> Store:
    """The migrated store of a data folder. Raises StorageError saying what to do."""
    engine = open_engine(home)
    return Store(home, engine, PoolStore(engine), TraceStore(engine, home), LessonStore(engine), BindingEdits(engine))


def _filter_conditions(criteria: TraceFilter) -> Iterable[ColumnElement[bool]]:
    if not criteria.nested:
        yield col(EpisodeRow.depth) == 0
    if criteria.pool:
        yield col(EpisodeRow.pool) == criteria.pool
    if criteria.orchestrator:
        yield col(EpisodeRow.orchestrator) == criteria.orchestrator
    if criteria.user:
        yield col(EpisodeRow.user_name) == criteria.user
    if criteria.source:
        yield col(EpisodeRow.source) == criteria.source
    if criteria.state == "correct":
        yield col(EpisodeRow.correct).is_(True)
    elif criteria.state == "wrong":
        yield col(EpisodeRow.correct).is_(False)
    elif criteria.state:
        yield col(EpisodeRow.state) == criteria.state
    if criteria.text:
        columns = (EpisodeRow.query, EpisodeRow.answer, EpisodeRow.id)
        yield or_(*(col(column).icontains(criteria.text, autoescape=True) for column in columns))


def _list_newest_calls(worker: str, count: int) -> SelectOfScalar[int | None]:
    """Select the ids of the last calls of a worker: one look at an index, however many there are."""
    calls = select(col(EventRow.id)).where(col(EventRow.worker) == worker)
    return calls.order_by(col(EventRow.id).desc()).limit(count)


def _list_values(column: Mapped[Any], *conditions: ColumnElement[bool]) -> SelectOfScalar[Any]:
    """Select the values of a column in order. Where an index begins with the conditions' columns and goes on with this
    one, each value takes one look at it, however many rows have it; DISTINCT reads every row."""
    first = select(func.min(column).label("value")).where(*conditions).cte("listed", recursive=True)
    following = select(func.min(column)).where(column > first.c.value, *conditions).scalar_subquery()
    listed = first.union_all(select(following).where(first.c.value.is_not(None)))
    return select(listed.c.value).where(listed.c.value.is_not(None)).order_by(listed.c.value)


def _summarize_calls(calls: Sequence[tuple[str | None, float | None]]) -> WorkerStats:
    latencies = sorted(latency for _, latency in calls if latency is not None)
    median = latencies[len(latencies) // 2] if latencies else None
    return WorkerStats(len(calls), sum(status == "OK" for status, _ in calls), median)


def _average_calls(events: Sequence[Event]) -> CallAverages:
    observed = [event.observation for event in events if isinstance(event, StepEnded)]
    latencies = sorted(observation.latency_s for observation in observed)
    cost = sum(observation.usage.cost for observation in observed) / len(observed)
    return CallAverages(len(observed), cost, latencies[len(latencies) // 2])
