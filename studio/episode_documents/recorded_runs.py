"""Recorded runs as replay documents, each with the episodes that its steps ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.traces.store import EpisodeRow, Store
from studio.episode_documents.replay_document import build_replay


def build_replays(store: Store, rows: list[EpisodeRow], shown_as: str) -> list[dict[str, Any]]:
    """The documents of runs and of the episodes inside them; `listed` marks the runs themselves.

    `shown_as` replaces the orchestrator's name, which may be a folder of this machine.
    """
    documents: list[dict[str, Any]] = []
    for row in rows:
        documents.append({**_replay(store, row, shown_as), "listed": True})
        nested = find_nested_episodes(store, row)
        documents += [{**_replay(store, inner, shown_as), "listed": False} for inner in nested]
    return documents


def find_nested_episodes(store: Store, row: EpisodeRow) -> Iterator[EpisodeRow]:
    """The episodes that steps of this one ran, and the episodes inside those."""
    for run in store.traces.episode(row.id).steps.values():
        if run.observation is not None and run.observation.episode:
            inner = store.traces.row(run.observation.episode)
            yield inner
            yield from find_nested_episodes(store, inner)


def _replay(store: Store, row: EpisodeRow, shown_as: str) -> dict[str, Any]:
    stored = store.pools.by_hash(row.pool, row.pool_hash)
    pool, version = (stored.pool, stored.version) if stored else (None, None)
    document = build_replay(store.traces.episode(row.id), row, pool, version)
    document["view"]["episode"] |= {"orchestrator": shown_as, "orchestrator_label": shown_as}
    return document
