"""Recorded episodes in the formats of other programs, each with the episodes that its steps ran."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from orchestrator.traces.store import EpisodeRow, Store
from orchestrator.tracking.otlp import encode_json
from orchestrator.tracking.packages import explain_tracker
from orchestrator.tracking.spans import Span, TracedEpisode, list_spans
from orchestrator.tracking.table import find_tracker
from pool_registry.pool import Pool
from studio.episode_documents.recorded_runs import build_replays, find_nested_episodes
from studio.episode_documents.static_page import static_page
from studio.episode_documents.trace import build_trace_document
from studio.export.svg_and_graphml import draw_svg, write_graphml


def export_jsonl(store: Store, episodes: Iterable[str]) -> str:
    """Write the whole trace document of each episode, as JSON Lines."""
    rows = (row for episode in episodes for row in _with_nested(store, store.traces.row(episode)))
    return "".join(json.dumps(build_trace_document(store, row), ensure_ascii=False) + "\n" for row in rows)


def export_otlp(store: Store, episodes: Iterable[str]) -> dict[str, Any]:
    """Build an OTLP export request with the spans of all the episodes. Raises TrackerRefused where the SDK is not
    installed."""
    return encode_json(span for episode in episodes for span in list_trace(store, episode))


def send_traces(store: Store, episodes: Iterable[str], places: Sequence[str]) -> None:
    """Send the traces of the episodes to trackers. Raises TrackerRefused when one cannot be used, or fails."""
    trackers = []
    for row, target in [find_tracker(place) for place in places]:
        with explain_tracker(row.name):
            trackers.append((row, row.open(target)))
    for spans in (list_trace(store, episode) for episode in episodes):
        for row, tracker in trackers:
            with explain_tracker(row.name):
                tracker.push(spans)
    for row, tracker in trackers:
        with explain_tracker(row.name):
            tracker.close()


def list_trace(store: Store, episode: str) -> list[Span]:
    """The spans of an episode and of those that its steps ran, its own first."""
    return [span for traced in _trace_episodes(store, store.traces.row(episode), ()) for span in list_spans(traced)]


def export_svg(store: Store, episode: str) -> str:
    """Draw the graph as a stand-alone SVG."""
    row = store.traces.row(episode)
    return draw_svg(store.traces.episode(episode), row, _find_pool(store, row))


def export_graphml(store: Store, episode: str) -> str:
    """Write the graph as GraphML."""
    row = store.traces.row(episode)
    return write_graphml(store.traces.episode(episode), _find_pool(store, row))


def export_page(store: Store, episode: str) -> str:
    """Build one HTML file that replays the episode."""
    row = store.traces.row(episode)
    info = {"title": "A recorded run", "about": "", "orchestrator": row.orchestrator, "pool": row.pool}
    return static_page({**info, "live": False, "links": []}, build_replays(store, [row], row.orchestrator))


def _with_nested(store: Store, row: EpisodeRow) -> Iterator[EpisodeRow]:
    yield row
    yield from find_nested_episodes(store, row)


def _trace_episodes(store: Store, row: EpisodeRow, outer: tuple[str, ...]) -> Iterator[TracedEpisode]:
    """An episode and those inside it. Its trace is that of the outermost episode around it."""
    if not outer:
        outer = tuple(_outer_episodes(store, row))
    episode = store.traces.episode(row.id)
    yield TracedEpisode(episode, _find_pool(store, row), outer)
    for run in episode.steps.values():
        if run.observation is not None and run.observation.episode:
            yield from _trace_episodes(store, store.traces.row(run.observation.episode), (*outer, row.id))


def _outer_episodes(store: Store, row: EpisodeRow) -> list[str]:
    """The ids of the episodes around this one, outermost first."""
    return [*_outer_episodes(store, store.traces.row(row.parent)), row.parent] if row.parent else []


def _find_pool(store: Store, row: EpisodeRow) -> Pool | None:
    stored = store.pools.by_hash(row.pool, row.pool_hash)
    return stored.pool if stored else None
