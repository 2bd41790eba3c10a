"""Several episodes as one stream: the Compare page draws them side by side while they grow.

One stream for all, because a browser opens only a few connections to a host. Whenever a graph gets another shape,
all are laid out again together and the diff against the reference is sent; until then only states and times change.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.graphs.alignment import align
from orchestrator.traces.store import EpisodeRow, Store
from studio.episode_documents.schema import StepState
from studio.episode_documents.view import build_episode_view, build_view_patch
from studio.frame.sse import message
from studio.pages.compare.graph_diff import build_graph_diff
from studio.pages.compare.schema import ComparisonDocument, ComparisonPatch
from studio.pages.run.stream import EpisodeFollower


class ComparisonFollower:
    """One viewer of several episodes; `reference` is the index of the one that the others are compared with."""

    def __init__(self, store: Store, rows: Sequence[EpisodeRow], reference: int) -> None:
        self._sides = [EpisodeFollower(store, row) for row in rows]
        self._reference = reference

    def poll(self) -> list[str]:
        """The messages for what was recorded since the last poll. Raises DamagedTrace."""
        changes = [side.take_events() for side in self._sides]
        if "view" in changes:
            return [message(self.document().to_json(), "views")]
        return [message(self._build_patch(place).to_json(), "patch") for place, change in enumerate(changes) if change]

    def is_over(self) -> bool:
        """Whether every episode has ended."""
        over = [side.is_over() for side in self._sides]  # all are asked: each counts how long it waits for its verdict
        return all(over)

    def document(self) -> ComparisonDocument:
        """Every graph in one system of coordinates, and what each has other than the reference."""
        sides, reference = self._sides, self._reference
        episodes = [side.episode for side in sides]
        aligned = align(episodes, [side.pool for side in sides], reference)
        return ComparisonDocument(
            reference=reference,
            views=[
                build_episode_view(side.episode, side.row, side.pool, side.version, placed)
                for side, placed in zip(sides, aligned, strict=True)
            ],
            slots=[{str(k): slot for k, slot in placed.slots.items()} for placed in aligned],
            diffs=[
                None
                if place == reference
                else build_graph_diff((episodes[reference], aligned[reference]), (episodes[place], placed))
                for place, placed in enumerate(aligned)
            ],
        )

    def _build_patch(self, place: int) -> ComparisonPatch:
        """What changed without the shape; the steps' places come from the last common layout."""
        side = self._sides[place]
        change = build_view_patch(side.episode, side.row, side.pool, side.version)
        return ComparisonPatch(
            place=place,
            clock_s=change.clock_s,
            episode=change.episode,
            turns=change.turns,
            totals=change.totals,
            nodes=[StepState(**node.model_dump(exclude={"x", "y"})) for node in change.nodes],
        )
