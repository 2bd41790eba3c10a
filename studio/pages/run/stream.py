"""The viewers of an episode: one feed folds the recorded events, and every viewer is sent what changed.

It reads the database, so a reload, a second viewer or a restarted studio goes on with the present state. However many
watch an episode, its documents are made once for each change.
"""

from __future__ import annotations

import threading
import time
from weakref import WeakValueDictionary

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EpisodeEnded, Event, PlanDecided, PlanEscalated, PlanHeld, TurnTaken
from orchestrator.errors import DamagedTrace
from orchestrator.traces.store import EpisodeRow, Store
from studio.episode_documents.view import build_episode_view, build_view_patch
from studio.frame.sse import message
from studio.orchestrators.offers import list_offers
from trainer.demonstrations.second_try import mark_interrupted_tries

POLL_S = 0.1
LOOK_FOR_DEAD_S = 5.0  # how long an episode is quiet before we ask whether its process still lives
GRADE_WAIT_S = 2.0  # a verdict follows the end of an episode at once, if one follows at all


_NEW_PLAN = (TurnTaken, PlanHeld, PlanEscalated, PlanDecided, EpisodeEnded)


class EpisodeFollower:
    """Folds the events of one recorded episode."""

    def __init__(self, store: Store, row: EpisodeRow) -> None:
        self._store, self._traces = store, store.traces
        self.row = row
        stored = store.pools.by_hash(row.pool, row.pool_hash)
        self.pool = stored.pool if stored else None
        self.version = stored.version if stored else None
        self.episode = Episode(row.id)
        self.last_id = 0
        self._shape: object = None
        self._shown_interrupted = False
        self._look_at = time.monotonic() + LOOK_FOR_DEAD_S
        self._over_since: float | None = None

    def take_events(self) -> str:
        """Take in what was recorded: "" for nothing, "patch" for states and times, "view" for another shape of the
        graph. Raises DamagedTrace."""
        events = []
        for event_id, event in self._traces.events_after(self.episode.id, self.last_id):
            self.last_id = event_id
            self.episode.apply(event)
            events.append(event)
        if events:
            self._look_at = time.monotonic() + LOOK_FOR_DEAD_S
        elif time.monotonic() >= self._look_at and self._goes_on():
            self._look_for_dead()
        interrupted = self.row.state == "interrupted"
        if not events and self._shape is not None and interrupted == self._shown_interrupted:
            return ""
        self._shown_interrupted = interrupted
        return "view" if self._takes_new_shape(events) else "patch"

    def is_over(self) -> bool:
        """Whether nothing will come any more: the episode has ended, and its verdict is there or will not come."""
        if not self._has_ended() or self._is_tried_again():
            return False
        self._over_since = self._over_since or time.monotonic()
        expects_verdict = self.row.family is not None and self.row.state != "interrupted"
        waited = time.monotonic() - self._over_since > GRADE_WAIT_S
        is_judged = self.episode.graded is not None or self.episode.not_judged is not None
        return is_judged or not expects_verdict or waited

    def _has_ended(self) -> bool:
        return self.episode.ended is not None or self.row.state == "interrupted"

    def _is_tried_again(self) -> bool:
        """Whether its second try is under way, of which its head says what becomes."""
        return self.episode.retried is not None and self.episode.retried.state in ("preparing", "running")

    def _goes_on(self) -> bool:
        return (not self._has_ended() and self.episode.held is None) or self._is_tried_again()

    def _look_for_dead(self) -> None:
        """An episode whose process is gone will never end: mark it as interrupted; a second try likewise."""
        self._look_at = time.monotonic() + LOOK_FOR_DEAD_S
        self._traces.mark_interrupted()
        if self._is_tried_again():
            mark_interrupted_tries(self._store)
        self.row = self._traces.row(self.episode.id)

    def _takes_new_shape(self, events: list[Event]) -> bool:
        """Whether the graph has another shape than the last one sent; remembers the new one."""
        shape = (len(self.episode.steps), len(self.episode.rounds), self.row.state == "interrupted")
        changed = shape != self._shape or any(isinstance(event, _NEW_PLAN) for event in events)
        self._shape = shape
        return changed


class EpisodeFeed:
    """The messages of one episode, shared by its viewers.

    Whichever viewer comes first after `POLL_S` reads what was recorded; the others wait for it. Each change has a
    number, and a viewer names the last one it was sent.
    """

    def __init__(self, store: Store, row: EpisodeRow) -> None:
        self._follower = EpisodeFollower(store, row)
        self._lock = threading.Lock()
        self._next_look = 0.0
        self._damage = ""
        self._change = 0
        self._new_shape = 0  # the last change that gave the graph another shape
        self._messages: dict[str, str] = {}  # of the last change, by kind
        self.over_at = 0  # the change after which nothing comes; 0 while something may

    def read_after(self, change: int) -> tuple[int, list[str]]:
        """Return the number of the last change, and the message that brings a viewer from `change` there; 0 is a viewer
        who has seen nothing. Raises DamagedTrace."""
        with self._lock:
            if time.monotonic() >= self._next_look:
                self._look()
                self._next_look = time.monotonic() + POLL_S / 2
            if self._damage:
                raise DamagedTrace(self._damage)
            if change == self._change:
                return change, []
            return self._change, [self._message("view" if change < self._new_shape else "patch")]

    def _look(self) -> None:
        try:
            kind = self._follower.take_events()
        except DamagedTrace as error:
            self._damage = str(error)
            return
        if kind:
            self._change += 1
            self._messages.clear()
        if kind == "view":
            self._new_shape = self._change
        self.over_at = self._change if self._follower.is_over() else 0

    def _message(self, kind: str) -> str:
        if kind not in self._messages:
            seen = self._follower
            build = build_episode_view if kind == "view" else build_view_patch
            offers = list_offers(seen.episode, seen.pool)
            document = build(seen.episode, seen.row, seen.pool, seen.version, offers=offers)
            self._messages[kind] = message(document.to_json(), kind, str(seen.last_id))
        return self._messages[kind]


class EpisodeViewer:
    """One viewer of an episode. `poll` and `is_over` are what studio/frame/sse.py's `follow` needs."""

    def __init__(self, feed: EpisodeFeed) -> None:
        self._feed = feed
        self._change = 0

    def poll(self) -> list[str]:
        """The messages for what was recorded since the last poll. Raises DamagedTrace."""
        self._change, messages = self._feed.read_after(self._change)
        return messages

    def is_over(self) -> bool:
        """Whether this viewer has been sent everything."""
        return self._feed.over_at != 0 and self._feed.over_at == self._change


class EpisodeFeeds:
    """The feeds of the episodes that somebody watches; a feed goes with its last viewer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._feeds: WeakValueDictionary[str, EpisodeFeed] = WeakValueDictionary()

    def open_viewer(self, row: EpisodeRow) -> EpisodeViewer:
        """One more viewer of an episode."""
        with self._lock:
            feed = self._feeds.get(row.id) or EpisodeFeed(self._store, row)
            self._feeds[row.id] = feed
        return EpisodeViewer(feed)
