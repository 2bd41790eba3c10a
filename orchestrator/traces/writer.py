"""The one thread that writes traces, in one transaction per batch of queued events: the event loop never waits for
the disk, and a crash loses at most the events in the queue. Who acknowledges a run to somebody flushes first.

A disk that refuses may recover: such a batch is tried again until it is written. An event that the database will never
take is set aside, in a file beside the database, and recording goes on with the next."""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TypeAlias

from sqlalchemy import Connection, Engine, bindparam, insert, update
from sqlalchemy.exc import DBAPIError, OperationalError

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, Event, Graded, StepEnded, dump_event
from orchestrator.engine.process_identity import this_process
from orchestrator.traces.step_counts import count_steps
from orchestrator.traces.tables import EPISODES, EVENTS
from pool_registry.actions import Observation, as_text
from pool_registry.errors import DatabaseBusy, StorageError
from pool_registry.pool import Pool
from pool_registry.storage.database import writing
from pool_registry.storage.pool_store import add_unlisted_pools

log = logging.getLogger(__name__)
RETRY_S = 1.0
GATHER_S = 0.02  # pause before a batch: later events share its transaction, and the event loop gets the GIL
MAX_BATCH = 8000  # records in one transaction
# Core statements, not the ORM: one statement for a whole batch takes a tenth of the time.
_ADD_EPISODE = insert(EPISODES)
_CHANGE_EPISODE = update(EPISODES).where(EPISODES.c.id == bindparam("key"))


@dataclass(frozen=True, slots=True)
class UnlistedPool:
    """A pool that traces refer to, with its hash."""

    hash: str
    pool: Pool


@dataclass(frozen=True, slots=True)
class ResumedEpisode:
    """An episode that goes on here after it waited for a person, as it was recorded."""

    episode: Episode


Record: TypeAlias = tuple[str, Event] | UnlistedPool | ResumedEpisode  # an episode's id and its event, or a pool


class TraceWriter:
    """The one thread that writes events. Keeps them in memory while the disk refuses."""

    def __init__(self, engine: Engine, set_aside: Path) -> None:
        self._engine = engine
        self._set_aside = set_aside
        self._refused: set[str] = set()  # episodes whose first event was set aside: nothing else can be stored of them
        self._queue: queue.SimpleQueue[Record | threading.Event | None] = queue.SimpleQueue()
        self._open: dict[str, Episode] = {}
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._flush_requested = threading.Event()
        self.problem: str | None = None

    def put(self, episode_id: str, event: Event) -> None:
        self._put((episode_id, event))

    def put_pool(self, pool: Pool, pool_hash: str) -> None:
        self._put(UnlistedPool(pool_hash, pool))

    def put_resumed(self, episode: Episode) -> None:
        """Follow an episode whose earlier events are stored. It must be no one else's: later events change it."""
        self._put(ResumedEpisode(episode))

    def _put(self, record: Record) -> None:
        self._queue.put(record)
        if self._thread is None:
            self._start()

    def flush(self) -> None:
        if self._thread is None:
            return
        done = threading.Event()
        self._queue.put(done)
        self._flush_requested.set()
        while not done.wait(0.2):
            if self.problem is not None:
                raise StorageError(f"traces cannot be written: {self.problem}")
            if not self._thread.is_alive():
                raise StorageError("traces cannot be written: the writer has ended; restart the studio")

    def close(self) -> None:
        if self._thread is not None:
            self._queue.put(None)
            self._flush_requested.set()
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
            self._flush_requested.wait(GATHER_S)
            self._flush_requested.clear()
            while not self._queue.empty() and len(items) < MAX_BATCH:
                items.append(self._queue.get())
            records = [item for item in items if item is not None and not isinstance(item, threading.Event)]
            for record in records:
                if isinstance(record, tuple):
                    self._follow(*record)
                elif isinstance(record, ResumedEpisode):
                    self._open[record.episode.id] = record.episode
            self._write_until_done(records)
            for item in items:
                if isinstance(item, threading.Event):
                    item.set()
            if None in items:
                return

    def _follow(self, episode_id: str, event: Event) -> None:
        if isinstance(event, EpisodeStarted):
            if episode_id in self._open:  # a second start: the database will refuse it
                return
            self._open[episode_id] = Episode(episode_id)
        if episode_id not in self._open:
            return
        try:
            self._open[episode_id].apply(event)
        except Exception as error:  # noqa: BLE001  an orchestrator's bug: keep its events, and keep writing
            log.error("episode %s: %s: %s; later events are still written", episode_id, type(error).__name__, error)
            del self._open[episode_id]

    def _write_until_done(self, records: Sequence[Record]) -> None:
        while records:
            try:
                if self._refused:
                    records = self._drop_refused(records)
                self._write(records)
            except Exception as error:  # noqa: BLE001  a record that will never be stored must not stop the others
                if _may_pass(error):
                    self.problem = str(getattr(error, "orig", None) or error)
                    time.sleep(RETRY_S)
                    continue
                self.problem = None
                if len(records) == 1:
                    self._put_aside(records[0], error)
                else:
                    for record in records:
                        self._write_until_done([record])
                break
            else:
                self.problem = None
                break
        for episode_id, event in _list_events(records):
            if isinstance(event, EpisodeEnded):
                self._open.pop(episode_id, None)

    def _drop_refused(self, records: Sequence[Record]) -> list[Record]:
        """Put the events aside whose episode's start could not be stored; returns the other records."""
        orphans = [record for record in records if isinstance(record, tuple) and record[0] in self._refused]
        for record in orphans:
            self._put_aside(record, ValueError("the start of its episode could not be stored"))
        return [record for record in records if record not in orphans]

    def _put_aside(self, record: Record, error: Exception) -> None:
        """Append a record that cannot be stored to a file, with the reason, and note it in the log."""
        reason = f"{type(error).__name__}: {getattr(error, 'orig', None) or error}"
        if isinstance(record, UnlistedPool):
            what, line = f"pool {record.pool.name}", {"pool": record.hash, "body": record.pool.model_dump(mode="json")}
        elif isinstance(record, ResumedEpisode):  # nothing is written for it
            return
        else:
            episode_id, event = record
            what, line = f"an event of episode {episode_id}", {"episode": episode_id, "type": event.type}
            line |= {"body": repr(event)}
            followed = self._open.get(episode_id)
            if followed is not None and followed.started is event:
                self._refused.add(episode_id)
                del self._open[episode_id]
        log.error("%s cannot be stored and is kept in %s: %s", what, self._set_aside, reason)
        try:
            with self._set_aside.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**line, "reason": reason}, ensure_ascii=True) + "\n")
        except OSError as failure:
            log.error("%s cannot be written: %s", self._set_aside, failure)

    def _write(self, records: Sequence[Record]) -> None:
        events = _list_events(records)
        with writing(self._engine) as session:
            add_unlisted_pools(session, {item.hash: item.pool for item in records if isinstance(item, UnlistedPool)})
            if not events:
                return
            started = [(key, event) for key, event in events if isinstance(event, EpisodeStarted)]
            connection = session.connection()
            if started:
                connection.execute(
                    _ADD_EPISODE, [_first_row(key, event, self._open.get(key)) for key, event in started]
                )
            _add_events(connection, [_event_row(key, event, self._open.get(key)) for key, event in events])
            going_on = {key for key, _ in events if key in self._open}.difference(key for key, _ in started)
            if going_on:
                connection.execute(_CHANGE_EPISODE, [{"key": key} | _summary(self._open[key]) for key in going_on])
            verdicts = [{"key": key, "correct": event.correct} for key, event in events if isinstance(event, Graded)]
            if verdicts:
                connection.execute(_CHANGE_EPISODE, verdicts)


def _may_pass(error: Exception) -> bool:
    """Whether the database may take the same records later: the disk is full, the file locked, the server away."""
    return isinstance(error, OperationalError | DatabaseBusy) or (
        isinstance(error, DBAPIError) and error.connection_invalidated
    )


def _list_events(records: Sequence[Record]) -> list[tuple[str, Event]]:
    return [record for record in records if isinstance(record, tuple)]


def _first_row(episode_id: str, event: EpisodeStarted, episode: Episode | None) -> dict[str, object]:
    return _summary(episode or Episode(episode_id)) | {
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
        "owner": this_process(),
        "user_name": event.user,
        "source": event.source,
        "deployment": event.served_as.deployment if event.served_as else "",
        "side": event.served_as.side if event.served_as else "",
        "shadow_of": event.served_as.shadow_of if event.served_as else "",
        "continues": (event.follow_up.before[-1].episode or None) if event.follow_up else None,
    }


def _add_events(connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert events by the driver's own call: text and numbers need none of the care that SQLAlchemy takes of every
    value, which takes as long as SQLite itself."""
    compiled = insert(EVENTS).compile(dialect=connection.dialect, column_keys=list(rows[0]))
    order = compiled.positiontup  # None where the driver takes names
    values = list(map(itemgetter(*order), rows)) if order else list(rows)
    connection.exec_driver_sql(str(compiled), values)


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
                "code": _failure_code(event.observation),
            }
    return row


def _failure_code(observation: Observation) -> str | None:
    """The code of the called worker's failure, also when a substitute answered in its place."""
    failure = observation.error or observation.instead_of
    return None if failure is None else failure.code


def _summary(episode: Episode) -> dict[str, object]:
    """The columns of an episode's row that change while it runs."""
    usage = episode.usage
    counts = count_steps(episode)
    return {
        "state": episode.ended.outcome if episode.ended else ("waiting" if episode.held else "running"),
        "answer": None if episode.final_answer is None else as_text(episode.final_answer),
        "wall_s": episode.last_at,
        "steps": counts.steps,
        "failed_steps": counts.failed,
        "tries": counts.tries,
        "tokens": usage.tokens,
        "cost": usage.cost,
    }
