"""Which recorded runs a published page shows: those that were asked for, or the best recent ones."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

from orchestrator.errors import EpisodeNotFound
from orchestrator.traces.store import EpisodeRow, Store, TraceFilter
from pool_registry.kinds import kind_of
from studio.episode_documents.replay_document import replay_document
from studio.publish.request import Publication, PublishError
from trainer.tasks import find_task

SHOWN = 6
EXAMPLES = (("itinerary", 3, 0), ("ledger", 1, 0), ("forge", 1, 0), ("itinerary", 1, 1))  # family, level, index
LOOKED_AT = 200
MAX_BYTES = 8_000_000  # of one run: 1,000 steps with long prompts; larger ones make a page slow
UNKNOWN_ID = re.compile(r"[^A-Za-z0-9_-]")


def chosen_rows(store: Store, asked: Publication, most: int = SHOWN) -> list[EpisodeRow]:
    """The runs to show, `most` of them, best first. Raises PublishError for an id that is not there."""
    if asked.traces:
        try:
            return [store.traces.row(each) for each in asked.traces]
        except EpisodeNotFound as error:
            raise PublishError(f"{error}; choose runs of the Traces page") from error
    wanted = TraceFilter(pool=asked.pool, orchestrator=asked.orchestrator, state="answered", limit=LOOKED_AT)
    stars = set(store.traces.starred())
    found = store.traces.search(wanted)
    found.sort(key=lambda row: (row.correct is False, row.id not in stars, row.correct is not True, -min(row.steps, 8)))
    return _different(found)[:most]


def record_examples(store: Store, asked: Publication) -> int:
    """Record a few runs for a page that would have none; how many. Only where a run costs nothing and leaves
    nothing: no worker of the pool may reach another machine.

    Raises PoolError or OrchestratorError when they cannot be run.
    """
    from studio.headless import run_once  # the trainer's tasks

    pool = store.pools.latest(asked.pool).pool
    if asked.traces or chosen_rows(store, asked) or any(kind_of(spec).load().remote for spec in pool.enabled):
        return 0
    for family, level, index in EXAMPLES:
        query = find_task(family, level, "test", index).query
        asyncio.run(run_once(store, asked.pool, asked.orchestrator, query))
    return len(EXAMPLES)


def replays(store: Store, rows: list[EpisodeRow], shown_as: str) -> list[dict[str, Any]]:
    """The documents of runs and of the episodes inside them; `listed` marks those that were chosen.

    `shown_as` is the orchestrator's name for others: a folder of this machine is none.
    """
    found: list[dict[str, Any]] = []
    for row in rows:
        found.append({**_document(store, row, shown_as), "listed": True})
        found += [{**_document(store, inner, shown_as), "listed": False} for inner in inside(store, row)]
    return found


def _document(store: Store, row: EpisodeRow, shown_as: str) -> dict[str, Any]:
    stored = store.pools.by_hash(row.pool, row.pool_hash)
    pool, version = (stored.pool, stored.version) if stored else (None, None)
    document = replay_document(store.traces.episode(row.id), row, pool, version)
    document["view"]["episode"]["orchestrator"] = shown_as
    return document


def inside(store: Store, row: EpisodeRow) -> Iterator[EpisodeRow]:
    """The episodes that steps of this one ran, and theirs."""
    for run in store.traces.episode(row.id).steps.values():
        if run.observation is not None and run.observation.episode:
            inner = store.traces.row(run.observation.episode)
            yield inner
            yield from inside(store, inner)


def _different(rows: list[EpisodeRow]) -> list[EpisodeRow]:
    """One run for each query."""
    seen: dict[str, EpisodeRow] = {}
    for row in rows:
        seen.setdefault(row.query, row)
    return list(seen.values())


def check_size(path: str, size: int) -> None:
    """Raise PublishError for a run that is too large to be shown on a page."""
    if size > MAX_BYTES:
        raise PublishError(f"{path} has {size:,} bytes, {MAX_BYTES:,} are the most; leave this run out with --trace")
