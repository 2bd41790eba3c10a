"""How often a checkpoint was right in recorded runs, by query: what a curriculum by task begins with."""

from __future__ import annotations

from collections import defaultdict

from orchestrator.traces.store import Store, TraceFilter
from trainer.methods.grpo.curriculum import Past
from trainer.tasks.task import normalize_query

MAX_RUNS = 5000  # the newest of the checkpoint on the pool


def count_past_success(store: Store, pool: str, orchestrator: str) -> Past:
    """Count the judged runs of an orchestrator on a pool: right ones, and all, by normalized query."""
    counts: defaultdict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    if not orchestrator:
        return counts
    for row in store.traces.search(TraceFilter(pool=pool, orchestrator=orchestrator, limit=MAX_RUNS)):
        if row.correct is not None:
            right, tries = counts[normalize_query(row.query)]
            counts[normalize_query(row.query)] = (right + row.correct, tries + 1)
    return counts
