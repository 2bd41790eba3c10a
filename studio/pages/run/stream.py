"""One viewer of one episode: folds the recorded events and sends what changed.

It reads the database, so a reload, a second viewer or a restarted studio goes on with the present state.
"""

from __future__ import annotations

import time

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EpisodeEnded, Event, PlanDecided, PlanEscalated, PlanHeld, TurnTaken
from orchestrator.traces.store import EpisodeRow, Store
from studio.episode_documents.view import build_episode_view, build_view_patch
from studio.frame.sse import message
from studio.orchestrators.offers import list_offers

POLL_S = 0.1
LOOK_FOR_DEAD_S = 5.0  # how long an episode is quiet before we ask whether its process still lives
GRADE_WAIT_S = 2.0  # a verdict follows the end of an episode at once, if one follows at all


_NEW_PLAN = (TurnTaken, PlanHeld, PlanEscalated, PlanDecided, EpisodeEnded)


class EpisodeFollower:
    """Follows one recorded episode. `poll` and `is_over` are what studio/frame/sse.py's `follow` needs."""

    def __init__(self, store: Store, row: EpisodeRow) -> None:
        self._traces = store.traces
        self.row = row
        stored = store.pools.by_hash(row.pool, row.pool_hash)
        self.pool = stored.pool if stored else None
        self.version = stored.version if stored else None
        self.episode = Episode(row.id)
        self._last_id = 0
        self._shape: object = None
        self._shown_interrupted = False
        self._look_at = time.monotonic() + LOOK_FOR_DEAD_S
        self._over_since: float | None = None

    def poll(self) -> list[str]:
        """The messages for what was recorded since the last poll. Raises DamagedTrace."""
        change = self.take_events()
        if not change:
            return []
        build = build_episode_view if change == "view" else build_view_patch
        offers = list_offers(self.episode, self.pool)
        document = build(self.episode, self.row, self.pool, self.version, offers=offers)
        return [message(document.to_json(), change, str(self._last_id))]

    def take_events(self) -> str:
        """Take in what was recorded: "" for nothing, "patch" for states and times, "view" for another shape of the
        graph. Raises DamagedTrace."""
        events = []
        for event_id, event in self._traces.events_after(self.episode.id, self._last_id):
            self._last_id = event_id
            self.episode.apply(event)
            events.append(event)
        if events:
            self._look_at = time.monotonic() + LOOK_FOR_DEAD_S
        elif time.monotonic() >= self._look_at and not self._has_ended() and self.episode.held is None:
            self._look_for_dead()
        interrupted = self.row.state == "interrupted"
        if not events and self._shape is not None and interrupted == self._shown_interrupted:
            return ""
        self._shown_interrupted = interrupted
        return "view" if self._takes_new_shape(events) else "patch"

    def is_over(self) -> bool:
        """Whether nothing will come any more: the episode has ended, and its verdict is there or will not come."""
        if not self._has_ended():
            return False
        self._over_since = self._over_since or time.monotonic()
        expects_verdict = self.row.family is not None and self.row.state != "interrupted"
        waited = time.monotonic() - self._over_since > GRADE_WAIT_S
        is_judged = self.episode.graded is not None or self.episode.not_judged is not None
        return is_judged or not expects_verdict or waited

    def _has_ended(self) -> bool:
        return self.episode.ended is not None or self.row.state == "interrupted"

    def _look_for_dead(self) -> None:
        """An episode whose process is gone will never end: mark it as interrupted."""
        self._look_at = time.monotonic() + LOOK_FOR_DEAD_S
        self._traces.mark_interrupted()
        self.row = self._traces.row(self.episode.id)

    def _takes_new_shape(self, events: list[Event]) -> bool:
        """Whether the graph has another shape than the last one sent; remembers the new one."""
        shape = (len(self.episode.steps), len(self.episode.rounds), self.row.state == "interrupted")
        changed = shape != self._shape or any(isinstance(event, _NEW_PLAN) for event in events)
        self._shape = shape
        return changed
