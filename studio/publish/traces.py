"""Which recorded runs a published page shows: those that the publication names, or the best recent ones."""

from __future__ import annotations

import asyncio
import re

from orchestrator.errors import EpisodeNotFound
from orchestrator.traces.store import EpisodeRow, Store, TraceFilter
from pool_registry.kinds import kind_of
from studio.publish.request import Publication, PublishError
from trainer.tasks import find_task

MAX_RUNS = 6
EXAMPLES = (("itinerary", 3, 0), ("ledger", 1, 0), ("forge", 1, 0), ("itinerary", 1, 1))  # family, level, index
MAX_CANDIDATES = 200
MAX_BYTES = 8_000_000  # of one run: 1,000 steps with long prompts; larger ones make a page slow
UNSAFE_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")


def choose_runs(store: Store, publication: Publication, most: int = MAX_RUNS) -> list[EpisodeRow]:
    """Choose at most `most` runs to show, best first. Raises PublishError for an unknown id."""
    if publication.traces:
        try:
            return [store.traces.row(episode) for episode in publication.traces]
        except EpisodeNotFound as error:
            raise PublishError(f"{error}; choose runs of the Traces page") from error
    filters = TraceFilter(
        pool=publication.pool, orchestrator=publication.orchestrator, state="answered", limit=MAX_CANDIDATES
    )
    stars = set(store.traces.list_starred())
    rows = store.traces.search(filters)
    rows.sort(key=lambda row: (row.correct is False, row.id not in stars, row.correct is not True, -min(row.steps, 8)))
    return _one_per_query(rows)[:most]


def record_examples(store: Store, publication: Publication) -> int:
    """Record a few runs for a page that would have none, and return how many. Only where runs are free and have no side
    effects: no worker of the pool may reach another machine.

    Raises PoolError or OrchestratorError when they cannot be run.
    """
    from studio.headless import run_once  # the trainer's tasks

    pool = store.pools.latest(publication.pool).pool
    if (
        publication.traces
        or choose_runs(store, publication)
        or any(kind_of(spec).load().remote for spec in pool.enabled)
    ):
        return 0
    for family, level, index in EXAMPLES:
        query = find_task(family, level, "test", index).query
        asyncio.run(run_once(store, publication.pool, publication.orchestrator, query))
    return len(EXAMPLES)


def _one_per_query(rows: list[EpisodeRow]) -> list[EpisodeRow]:
    """One run for each query."""
    seen: dict[str, EpisodeRow] = {}
    for row in rows:
        seen.setdefault(row.query, row)
    return list(seen.values())


def check_size(path: str, size: int) -> None:
    """Raise PublishError for a run that is too large to be shown on a page."""
    if size > MAX_BYTES:
        raise PublishError(f"{path} has {size:,} bytes, {MAX_BYTES:,} are the most; leave this run out with --trace")
