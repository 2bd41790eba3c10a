"""Which recorded runs a published page shows: those that the publication names, or the best recent ones whose answer a
verifier or a person found right."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection

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


def choose_runs(store: Store, publication: Publication) -> list[EpisodeRow]:
    """The runs to show: those that the publication names, else the best that are vouched for, at most six. Raises
    PublishError for an unknown id."""
    if publication.traces:
        try:
            return [store.traces.row(episode) for episode in publication.traces]
        except EpisodeNotFound as error:
            raise PublishError(f"{error}; choose runs of the Traces page") from error
    stars = set(store.traces.list_starred())
    return [row for row in list_candidates(store, publication) if is_vouched(row, stars)][:MAX_RUNS]


def list_candidates(store: Store, publication: Publication) -> list[EpisodeRow]:
    """The newest runs that could be shown, one for each query, best first: those with a right answer and starred ones
    before those that nothing verified, wrong ones last."""
    filters = TraceFilter(
        pool=publication.pool, orchestrator=publication.orchestrator, state="answered", limit=MAX_CANDIDATES
    )
    stars = set(store.traces.list_starred())
    rows = store.traces.search(filters)
    rows.sort(key=lambda row: (row.correct is False, row.id not in stars, row.correct is not True, -min(row.steps, 8)))
    return _one_per_query(rows)


def is_vouched(row: EpisodeRow, stars: Collection[str]) -> bool:
    """Whether a verifier or a person found a run's answer right, or a person starred a run that nothing verified."""
    return row.correct is True or (row.correct is None and row.id in stars)


def record_examples(store: Store, publication: Publication) -> int:
    """Record a few runs for a page that would have none, and return how many. Only where the pool has the workers that
    solve them, and where runs are free and have no side effects: no worker of it may reach another machine.

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
    tasks = [find_task(family, level, "test", index) for family, level, index in EXAMPLES]
    criteria = TraceFilter(pool=publication.pool, orchestrator=publication.orchestrator, limit=MAX_CANDIDATES)
    tried = {row.query for row in store.traces.search(criteria)}
    solvable = [task for task in tasks if not task.list_missing_workers(pool) and task.query not in tried]
    for task in solvable:
        asyncio.run(run_once(store, publication.pool, publication.orchestrator, task.query))
    return len(solvable)


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
