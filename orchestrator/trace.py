"""The stored form of episodes: an append-only table of events and one summary row per episode.

Events are written by one thread, a transaction per batch of what has queued up: the event loop never
waits for the disk, and a crash loses at most what was in flight. Readers poll by event id.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

import psutil
from sqlalchemy import ColumnElement, Engine, Index, bindparam, insert, or_, update
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Field, Session, SQLModel, col, select

from orchestrator.episode import Episode, replay
from orchestrator.errors import DamagedTrace, EpisodeNotFound
from orchestrator.events import EpisodeEnded, EpisodeStarted, Event, Graded, StepEnded, dump_event, load_event
from orchestrator.memory import ReflectionStore
from pool_registry.actions import Observation, as_text
from pool_registry.errors import StorageError
from pool_registry.home import Home
from pool_registry.store import PoolStore, open_engine, writing

log = logging.getLogger(__name__)
RETRY_S = 1.0
GATHER_S = 0.02  # after a batch: what comes meanwhile shares one transaction, and the event loop has the GIL


class EpisodeRow(SQLModel, table=True):
    """One line of the Traces page. `state` is running, interrupted or the outcome."""

    __tablename__ = "episode"

    id: str = Field(primary_key=True)
    query: str
    pool: str = Field(index=True)
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
    tokens: int = 0
    cost: float = 0.0
    user_name: str = Field(default="", index=True)


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


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """What the Traces page asks for; empty fields do not restrict."""

    pool: str = ""
    orchestrator: str = ""
    state: str = ""
    text: str = ""
    user: str = ""
    nested: bool = False  # recursive episodes too
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
    """How one call ended, by its trace. `code` is None when it is OK, and in traces of older versions."""

    status: str
    latency_s: float
    code: str | None


def this_process() -> str:
    """This process as pid and start time, so that a reused pid is never taken for it."""
    return _process(os.getpid())


@cache
def _process(pid: int) -> str:
    return f"{pid}:{psutil.Process(pid).create_time():.2f}"


def is_alive(owner: str) -> bool:
    """Whether the process that `this_process` named still runs (a zombie does not)."""
    pid, _, started = owner.partition(":")
    try:
        process = psutil.Process(int(pid))
        return f"{process.create_time():.2f}" == started and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError):
        return False


class TraceStore:
    """Reads episodes; `append` hands events to the writer thread (it is a `Sink`)."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._writer = _Writer(engine)

    def append(self, episode_id: str, event: Event) -> None:
        self._writer.put(episode_id, event)

    def flush(self) -> None:
        """Return when everything appended so far is on disk. Raises StorageError when it cannot be."""
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()

    @property
    def problem(self) -> str | None:
        """Why nothing can be written at the moment (a full disk ...), or None."""
        return self._writer.problem

    def events_after(self, episode_id: str, last_id: int = 0) -> list[tuple[int, Event]]:
        """Events of an episode with ids above `last_id`, in order."""
        wanted = (col(EventRow.episode) == episode_id, col(EventRow.id) > last_id)
        query = select(EventRow.id, EventRow.body).where(*wanted).order_by(col(EventRow.id))
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
        """The episode as its events tell it. Raises EpisodeNotFound."""
        self.row(episode_id)
        return replay(episode_id, (event for _, event in self.events_after(episode_id)))

    def search(self, wanted: TraceFilter) -> list[EpisodeRow]:
        """Episodes, newest first."""
        query = select(EpisodeRow).where(*_conditions(wanted))
        query = query.order_by(col(EpisodeRow.started_at).desc()).limit(wanted.limit).offset(wanted.offset)
        with Session(self._engine) as session:
            return list(session.exec(query))

    def variations(self, episode_id: str) -> list[EpisodeRow]:
        """The what-ifs of an episode, newest first."""
        query = select(EpisodeRow).where(EpisodeRow.what_if_of == episode_id)
        with Session(self._engine) as session:
            return list(session.exec(query.order_by(col(EpisodeRow.started_at).desc()).limit(100)))

    def distinct(self, column: str) -> list[str]:
        """The values that occur in a column of the summary (for filters)."""
        attribute = getattr(EpisodeRow, column)
        with Session(self._engine) as session:
            return [str(value) for value in session.exec(select(attribute).distinct().order_by(attribute))]

    def worker_stats(self, last: int = 5000) -> dict[str, WorkerStats]:
        """How each worker did in the last steps of all episodes."""
        query = select(EventRow.worker, EventRow.status, EventRow.latency_s)
        query = query.where(col(EventRow.worker).is_not(None)).order_by(col(EventRow.id).desc()).limit(last)
        seen: dict[str, list[tuple[str | None, float | None]]] = {}
        with Session(self._engine) as session:
            for worker, status, latency in session.exec(query):
                seen.setdefault(worker or "", []).append((status, latency))
        return {worker: _stats(calls) for worker, calls in seen.items()}

    def recent_calls(self, worker: str, pool: str = "", last: int = 50) -> list[RecordedCall]:
        """The last calls that reached a worker, newest first; with `pool` those of its episodes on that pool.

        Reads an index and at most `20 * last` rows, however many there are.
        """
        newest = select(EventRow.id).where(col(EventRow.worker) == worker).order_by(col(EventRow.id).desc())
        calls = select(EventRow.status, EventRow.latency_s, EventRow.code)
        if not pool:
            calls = calls.where(col(EventRow.worker) == worker)
        else:
            calls = calls.join(EpisodeRow, col(EpisodeRow.id) == col(EventRow.episode))
            calls = calls.where(col(EpisodeRow.pool) == pool, col(EventRow.id).in_(newest.limit(20 * last)))
        with Session(self._engine) as session:
            rows = session.exec(calls.order_by(col(EventRow.id).desc()).limit(last))
            return [RecordedCall(status or "", latency_s or 0.0, code) for status, latency_s, code in rows]

    def star(self, episode_id: str, on: bool) -> None:
        """Mark a trace as worth imitating, or take the mark back. Raises EpisodeNotFound."""
        self.row(episode_id)
        with writing(self._engine) as session:
            known = session.get(StarRow, episode_id)
            if on and known is None:
                session.add(StarRow(episode=episode_id, created_at=datetime.now(UTC)))
            elif known is not None and not on:
                session.delete(known)

    def starred(self, pool: str = "") -> list[str]:
        """Ids of starred traces, oldest first; with `pool` only those that ran on it."""
        query = select(StarRow.episode).join(EpisodeRow, col(EpisodeRow.id) == col(StarRow.episode))
        if pool:
            query = query.where(col(EpisodeRow.pool) == pool)
        with Session(self._engine) as session:
            return list(session.exec(query.order_by(col(StarRow.created_at))))

    def mark_interrupted(self) -> int:
        """Episodes whose process is gone will never end; say so. Returns how many there were."""
        with writing(self._engine) as session:
            query = select(EpisodeRow).where(EpisodeRow.state == "running")
            lost = [row for row in session.exec(query) if not is_alive(row.owner)]
            for row in lost:
                row.state = "interrupted"
                session.add(row)
        return len(lost)


@dataclass(frozen=True, slots=True)
class Store:
    """Everything that is kept in the database."""

    home: Home
    engine: Engine
    pools: PoolStore
    traces: TraceStore
    reflections: ReflectionStore

    def close(self) -> None:
        self.traces.close()


def open_store(home: Home) -> Store:
    """The migrated store of a data folder. Raises StorageError saying what to do."""
    engine = open_engine(home)
    return Store(home, engine, PoolStore(engine), TraceStore(engine), ReflectionStore(engine))


class _Writer:
    """The one thread that writes events. Keeps them in memory while the disk refuses."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._queue: queue.SimpleQueue[tuple[str, Event] | threading.Event | None] = queue.SimpleQueue()
        self._open: dict[str, Episode] = {}
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self.problem: str | None = None

    def put(self, episode_id: str, event: Event) -> None:
        self._queue.put((episode_id, event))
        if self._thread is None:
            self._start()

    def flush(self) -> None:
        if self._thread is None:
            return
        done = threading.Event()
        self._queue.put(done)
        while not done.wait(0.2):
            if self.problem is not None:
                raise StorageError(f"traces cannot be written: {self.problem}")
            if not self._thread.is_alive():
                raise StorageError("traces cannot be written: the writer has ended; restart the studio")

    def close(self) -> None:
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(timeout=10)
            self._thread = None

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="trace-writer", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while True:
            items = [self._queue.get()]
            while not self._queue.empty() and len(items) < 2000:
                items.append(self._queue.get())
            events = [item for item in items if isinstance(item, tuple)]
            for episode_id, event in events:
                self._follow(episode_id, event)
            self._write_until_done(events)
            for item in items:
                if isinstance(item, threading.Event):
                    item.set()
            if None in items:
                return
            time.sleep(GATHER_S)

    def _follow(self, episode_id: str, event: Event) -> None:
        if isinstance(event, EpisodeStarted):
            self._open[episode_id] = Episode(episode_id)
        if episode_id not in self._open:
            return
        try:
            self._open[episode_id].apply(event)
        except DamagedTrace as error:  # an orchestrator's bug: keep its events, and keep writing
            log.error("%s; what comes is still written", error)
            del self._open[episode_id]

    def _write_until_done(self, events: Sequence[tuple[str, Event]]) -> None:
        while events:
            try:
                self._write(events)
            except SQLAlchemyError as error:
                self.problem = str(getattr(error, "orig", None) or error)
                time.sleep(RETRY_S)
            else:
                self.problem = None
                break
        for episode_id, event in events:
            if isinstance(event, EpisodeEnded):
                self._open.pop(episode_id, None)

    def _write(self, events: Sequence[tuple[str, Event]]) -> None:
        with writing(self._engine) as session:
            started = [(key, event) for key, event in events if isinstance(event, EpisodeStarted)]
            connection = session.connection()
            if started:
                connection.execute(_ADD_EPISODE, [_first_row(key, event) for key, event in started])
            connection.execute(_ADD_EVENT, [_event_row(key, event, self._open.get(key)) for key, event in events])
            summaries = [_summary(self._open[key]) for key in {key for key, _ in events} if key in self._open]
            if summaries:
                connection.execute(_CHANGE_EPISODE, summaries)
            verdicts = [{"key": key, "correct": event.correct} for key, event in events if isinstance(event, Graded)]
            if verdicts:
                connection.execute(_CHANGE_EPISODE, verdicts)


# Tables rather than models: one statement for a whole batch, at a tenth of the unit of work's price.
_EPISODES, _EVENTS = SQLModel.metadata.tables["episode"], SQLModel.metadata.tables["event"]
_ADD_EPISODE, _ADD_EVENT = insert(_EPISODES), insert(_EVENTS)
_CHANGE_EPISODE = update(_EPISODES).where(_EPISODES.c.id == bindparam("key"))


def _first_row(episode_id: str, event: EpisodeStarted) -> dict[str, object]:
    return {
        "id": episode_id,
        "query": event.query,
        "pool": event.pool,
        "pool_hash": event.pool_hash,
        "orchestrator": event.orchestrator,
        "started_at": event.started_at,
        "depth": event.depth,
        "parent": event.parent.episode if event.parent else None,
        "what_if_of": event.what_if.episode if event.what_if else None,
        "family": event.task.family if event.task else None,
        "state": "running",
        "owner": this_process(),
        "wall_s": 0.0,
        "steps": 0,
        "failed_steps": 0,
        "tokens": 0,
        "cost": 0.0,
        "user_name": event.user,
    }


def _event_row(episode_id: str, event: Event, episode: Episode | None) -> dict[str, object]:
    row: dict[str, object] = {
        "episode": episode_id,
        "type": event.type,
        "worker": None,
        "status": None,
        "latency_s": None,
        "body": dump_event(event),
        "code": None,
    }
    if isinstance(event, StepEnded) and episode is not None:
        run = episode.steps[event.step]
        if run.started_at is not None:  # a call that never reached the worker says nothing about it
            row |= {
                "worker": run.step.worker,
                "status": event.observation.status.value,
                "latency_s": event.observation.latency_s,
                "code": _code(event.observation),
            }
    return row


def _code(observation: Observation) -> str | None:
    """Why the worker that was called failed, also when another one answered in its place."""
    failure = observation.error or observation.instead_of
    return None if failure is None else failure.code


def _summary(episode: Episode) -> dict[str, object]:
    usage = episode.usage
    observed = episode.observations().values()
    return {
        "key": episode.id,
        "state": episode.ended.outcome if episode.ended else "running",
        "answer": None if episode.answer is None else as_text(episode.answer),
        "wall_s": episode.last_at,
        "steps": len(episode.steps),
        "failed_steps": sum(not observation.ok for observation in observed),
        "tokens": usage.tokens,
        "cost": usage.cost,
    }


def _conditions(wanted: TraceFilter) -> Iterable[ColumnElement[bool]]:
    if not wanted.nested:
        yield col(EpisodeRow.depth) == 0
    if wanted.pool:
        yield col(EpisodeRow.pool) == wanted.pool
    if wanted.orchestrator:
        yield col(EpisodeRow.orchestrator) == wanted.orchestrator
    if wanted.user:
        yield col(EpisodeRow.user_name) == wanted.user
    if wanted.state == "correct":
        yield col(EpisodeRow.correct).is_(True)
    elif wanted.state == "wrong":
        yield col(EpisodeRow.correct).is_(False)
    elif wanted.state:
        yield col(EpisodeRow.state) == wanted.state
    if wanted.text:
        columns = (EpisodeRow.query, EpisodeRow.answer, EpisodeRow.id)
        yield or_(*(col(column).icontains(wanted.text, autoescape=True) for column in columns))


def _stats(calls: Sequence[tuple[str | None, float | None]]) -> WorkerStats:
    latencies = sorted(latency for _, latency in calls if latency is not None)
    median = latencies[len(latencies) // 2] if latencies else None
    return WorkerStats(len(calls), sum(status == "OK" for status, _ in calls), median)
