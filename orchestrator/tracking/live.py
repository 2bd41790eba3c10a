"""Sends episodes and figures to trackers while they happen, from a thread of its own: what runs never waits, and never
fails because a tracker does."""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import (
    EpisodeStarted,
    Event,
    FinalizerEnded,
    StepEnded,
    TurnTaken,
)
from orchestrator.traces.store import Store
from orchestrator.tracking.spans import (
    Span,
    TracedEpisode,
    build_episode_span,
    build_final_span,
    build_step_span,
    build_turn_span,
)
from orchestrator.tracking.table import Tracker, TrackerRow, find_tracker
from pool_registry.pool import Pool

log = logging.getLogger(__name__)
VARIABLE = "PODIUM_TRACK"  # places with white space between them
MAX_WAITING_CHARS = 50_000_000  # of events; more are dropped rather than kept in RAM
CLOSE_S = 30.0

FindPool = Callable[[str, str], Pool | None]


def read_places(places: Sequence[str] = ()) -> list[str]:
    """The places that are named, and those of PODIUM_TRACK; each once. Raises TrackerRefused."""
    chosen = list(dict.fromkeys([*places, *os.environ.get(VARIABLE, "").split()]))
    for place in chosen:
        find_tracker(place)
    return chosen


class Tracking:
    """A sink of events and figures. `find_pool` gives the pool of a name and a hash, where it is kept."""

    def __init__(self, places: Iterable[str], find_pool: FindPool) -> None:
        """Raises TrackerRefused when a tracker cannot be used here."""
        self._rows = [find_tracker(place) for place in places]
        self._trackers: list[tuple[TrackerRow, Tracker]] = []
        self._find_pool = find_pool
        self._open: dict[str, TracedEpisode] = {}
        self._spans: dict[int, list[Span]] = {}  # by trace, until its outermost episode is over
        self._jobs: queue.SimpleQueue[tuple[Callable[[], None] | None, int]] = queue.SimpleQueue()
        self._waiting_chars = 0
        self._counting = threading.Lock()
        self._silenced: set[str] = set()  # trackers whose failure was logged
        self._thread = threading.Thread(target=self._work, name="tracking", daemon=True)
        self._thread.start()

    def append(self, episode_id: str, event: Event) -> None:
        self._put(lambda: self._take(episode_id, event), len(repr(event)))

    def log(self, run: str, step: int, figures: Mapping[str, float]) -> None:
        """Send the figures of a step of a job."""
        self._put(lambda: self._send(lambda tracker: tracker.log(run, step, figures)), len(repr(figures)))

    def close(self) -> None:
        """Send what waits, for `CLOSE_S` at most."""
        if not self._thread.is_alive():
            return
        self._put(self._end)
        self._put(None)
        self._thread.join(CLOSE_S)

    def _put(self, job: Callable[[], None] | None, chars: int = 0) -> None:
        """Have the thread do a job that holds so many characters; one that holds none is never left out."""
        with self._counting:
            fits = not chars or self._waiting_chars + chars <= MAX_WAITING_CHARS
            self._waiting_chars += chars * fits
        if fits:
            self._jobs.put((job, chars))
        else:
            self._complain("tracking", "too much waits to be sent; some of it is left out")

    def _work(self) -> None:
        while True:
            job, chars = self._jobs.get()
            if job is None:
                return
            try:
                job()
            except Exception:  # a bug here must not end the thread, nor what runs
                log.warning("a trace could not be sent", exc_info=True)
            with self._counting:
                self._waiting_chars -= chars

    def _end(self) -> None:
        for traced in list(self._open.values()):  # not judged by then, or cut off
            self._finish(traced)
        self._rows.clear()  # what had nothing to send need not be opened
        self._send(lambda tracker: tracker.close())

    def _take(self, episode_id: str, event: Event) -> None:
        if isinstance(event, EpisodeStarted):
            outer = self._open.get(event.parent.episode) if event.parent else None
            path = (*outer.outer, outer.episode.id) if outer else ()
            self._open[episode_id] = TracedEpisode(
                Episode(episode_id), self._find_pool(event.pool, event.pool_hash), path
            )
        traced = self._open.get(episode_id)
        if traced is None:  # it began before, or in another process
            return
        traced.episode.apply(event)
        self._keep(traced.trace_id, list(list_ended(traced, event)))
        if is_over(traced.episode):
            self._finish(traced)

    def _keep(self, trace_id: int, spans: list[Span]) -> None:
        if spans:
            self._spans.setdefault(trace_id, []).extend(spans)
            self._send(lambda tracker: tracker.push(spans), live=True)

    def _finish(self, traced: TracedEpisode) -> None:
        del self._open[traced.episode.id]
        root = build_episode_span(traced)
        self._keep(traced.trace_id, [root])
        if not traced.outer:
            spans = self._spans.pop(traced.trace_id)
            whole = [root, *(span for span in spans if span is not root)]
            self._send(lambda tracker: tracker.push(whole), live=False)

    def _send(self, send: Callable[[Tracker], None], live: bool | None = None) -> None:
        for row, tracker in self._open_trackers():
            if live is not None and row.live != live:
                continue
            try:
                send(tracker)
            except Exception as error:  # noqa: BLE001  another package, or its server
                self._complain(row.name, f"{type(error).__name__}: {error}")

    def _open_trackers(self) -> list[tuple[TrackerRow, Tracker]]:
        """The trackers, which are opened when there is something to send: some take seconds to import."""
        while self._rows:
            row, target = self._rows.pop(0)
            try:
                self._trackers.append((row, row.open(target)))
            except Exception as error:  # noqa: BLE001  another package, or its server
                self._complain(row.name, str(error))
        return self._trackers

    def _complain(self, name: str, problem: str) -> None:
        """Log the first failure of a tracker: the next ones would fill the log."""
        if name not in self._silenced:
            self._silenced.add(name)
            log.warning("%s does not take traces or curves: %s", name, problem)


def track(store: Store, places: Sequence[str] = ()) -> Tracking | None:
    """Send what a store is given from now on to these places and those of PODIUM_TRACK; None where there are none.
    Raises TrackerRefused."""
    chosen = read_places(places)
    if not chosen:
        return None

    def find_pool(name: str, pool_hash: str) -> Pool | None:
        stored = store.pools.by_hash(name, pool_hash)
        return stored.pool if stored else None

    tracking = Tracking(chosen, find_pool)
    store.traces.listen(tracking)
    return tracking


def list_ended(traced: TracedEpisode, event: Event) -> Iterator[Span]:
    """The spans inside an episode that an event, which was applied to it, has ended."""
    episode = traced.episode
    match event:
        case TurnTaken():
            yield build_turn_span(traced, episode.rounds[-1])
        case StepEnded():
            yield build_step_span(traced, episode.steps[event.step])
        case FinalizerEnded() if episode.final is not None:
            yield from build_final_span(traced, episode.final)
        case _:
            return


def is_over(episode: Episode) -> bool:
    """Whether no event follows: a task's verdict comes after the end."""
    if episode.ended is None:
        return False
    return episode.started is None or episode.started.task is None or bool(episode.graded or episode.not_judged)
