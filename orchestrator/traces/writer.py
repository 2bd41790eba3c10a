"""The one thread that writes traces, in one transaction per batch of queued events: the event loop never waits for
the disk, and a crash loses at most the events in the queue."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlalchemy import Engine, bindparam, insert, update
from sqlalchemy.exc import SQLAlchemyError

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EpisodeEnded, EpisodeStarted, Event, Graded, StepEnded, dump_event
from orchestrator.engine.process_identity import this_process
from orchestrator.errors import DamagedTrace
from orchestrator.traces.tables import EPISODES, EVENTS
from pool_registry.actions import Observation, as_text
from pool_registry.errors import StorageError
from pool_registry.pool import Pool
from pool_registry.storage.pool_store import add_unlisted_pools, writing

log = logging.getLogger(__name__)
RETRY_S = 1.0
GATHER_S = 0.02  # pause after a batch: later events share one transaction, and the event loop gets the GIL
# Core statements, not the ORM: one statement for a whole batch takes a tenth of the time.
_ADD_EPISODE, _ADD_EVENT = insert(EPISODES), insert(EVENTS)
_CHANGE_EPISODE = update(EPISODES).where(EPISODES.c.id == bindparam("key"))


@dataclass(frozen=True, slots=True)
class UnlistedPool:
    """A pool that traces refer to, with its hash."""

    hash: str
    pool: Pool


Record: TypeAlias = tuple[str, Event] | UnlistedPool  # an episode's id and its event, or a pool


class TraceWriter:
    """The one thread that writes events. Keeps them in memory while the disk refuses."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._queue: queue.SimpleQueue[Record | threading.Event | None] = queue.SimpleQueue()
        self._open: dict[str, Episode] = {}
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self.problem: str | None = None

    def put(self, episode_id: str, event: Event) -> None:
        self._put((episode_id, event))

    def put_pool(self, pool: Pool, pool_hash: str) -> None:
        self._put(UnlistedPool(pool_hash, pool))

    def _put(self, record: Record) -> None:
        self._queue.put(record)
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
            records = [item for item in items if isinstance(item, tuple | UnlistedPool)]
            for episode_id, event in _list_events(records):
                self._follow(episode_id, event)
            self._write_until_done(records)
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
            log.error("%s; later events are still written", error)
            del self._open[episode_id]

    def _write_until_done(self, records: Sequence[Record]) -> None:
        while records:
            try:
                self._write(records)
            except SQLAlchemyError as error:
                self.problem = str(getattr(error, "orig", None) or error)
                time.sleep(RETRY_S)
            else:
                self.problem = None
                break
        for episode_id, event in _list_events(records):
            if isinstance(event, EpisodeEnded):
                self._open.pop(episode_id, None)

    def _write(self, records: Sequence[Record]) -> None:
        events = _list_events(records)
        with writing(self._engine) as session:
            add_unlisted_pools(session, {item.hash: item.pool for item in records if isinstance(item, UnlistedPool)})
            if not events:
                return
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


def _list_events(records: Sequence[Record]) -> list[tuple[str, Event]]:
    return [record for record in records if isinstance(record, tuple)]


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
                "code": _failure_code(event.observation),
            }
    return row


def _failure_code(observation: Observation) -> str | None:
    """The code of the called worker's failure, also when a substitute answered in its place."""
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
