"""Episodes of the store in the formats of others: each with the episodes that its steps ran."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from orchestrator.traces.store import EpisodeRow, Store
from pool_registry.pool import Pool
from studio.episode_documents.recorded_runs import nested_episodes, replay_documents
from studio.episode_documents.static_page import static_page
from studio.episode_documents.trace import trace_document
from studio.export.otel import Told, otlp
from studio.export.svg_and_graphml import graph_graphml, graph_svg


def jsonl(store: Store, episodes: Iterable[str]) -> str:
    """One line for each episode: its whole trace document."""
    rows = (row for episode in episodes for row in _family(store, store.traces.row(episode)))
    return "".join(json.dumps(trace_document(store, row), ensure_ascii=False) + "\n" for row in rows)


def otlp_document(store: Store, episodes: Iterable[str]) -> dict[str, Any]:
    """An OTLP export request with the spans of all of them."""
    return otlp((each for episode in episodes for each in _told(store, store.traces.row(episode), ())), _version())


def svg_of(store: Store, episode: str) -> str:
    row = store.traces.row(episode)
    return graph_svg(store.traces.episode(episode), row, _pool(store, row))


def xml_of(store: Store, episode: str) -> str:
    row = store.traces.row(episode)
    return graph_graphml(store.traces.episode(episode), _pool(store, row))


def page_of(store: Store, episode: str) -> str:
    """One HTML file that replays the episode."""
    row = store.traces.row(episode)
    info = {"title": "A recorded run", "about": "", "orchestrator": row.orchestrator, "pool": row.pool}
    return static_page({**info, "live": False, "links": []}, replay_documents(store, [row], row.orchestrator))


def _family(store: Store, row: EpisodeRow) -> Iterator[EpisodeRow]:
    yield row
    yield from nested_episodes(store, row)


def _told(store: Store, row: EpisodeRow, outer: tuple[str, ...]) -> Iterator[Told]:
    """An episode that is itself inside another one belongs to that one's trace."""
    if not outer:
        outer = tuple(_around(store, row))
    episode = store.traces.episode(row.id)
    yield Told(episode, _pool(store, row), outer)
    for run in episode.steps.values():
        if run.observation is not None and run.observation.episode:
            yield from _told(store, store.traces.row(run.observation.episode), (*outer, row.id))


def _around(store: Store, row: EpisodeRow) -> list[str]:
    """The episodes around this one, outermost first."""
    return [*_around(store, store.traces.row(row.parent)), row.parent] if row.parent else []


def _pool(store: Store, row: EpisodeRow) -> Pool | None:
    stored = store.pools.by_hash(row.pool, row.pool_hash)
    return stored.pool if stored else None


def _version() -> str:
    try:
        return version("podium-studio")
    except PackageNotFoundError:
        return "0"
