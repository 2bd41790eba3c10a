"""Runs without the page: one query (`podium run`), and one recorded run that is edited (`podium what-if`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.engine.edits import AnyEdit
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import check_query
from orchestrator.traces.store import Store
from orchestrator.what_if import vary
from pool_registry.calls.call_cache import CallCache
from pool_registry.calls.call_cache_table import DatabaseCacheStore
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from studio.episode_documents.trace import build_trace_document
from studio.episodes import RecordedRun, prepare_run, prepare_variation


async def run_once(store: Store, pool_name: str, orchestrator: str, query: str) -> dict[str, Any]:
    """Run the query to its end, recorded like any other episode, and return its trace document.

    Raises PoolError or OrchestratorError when it cannot start.
    """
    check_query(query)
    async with live_pool(store.pools.latest(pool_name).pool, CallCache(DatabaseCacheStore(store.engine))) as pool:
        episode = await _finish(prepare_run(store, pool, orchestrator, query))
    store.traces.flush()
    return build_trace_document(store, store.traces.row(episode.id))


async def vary_once(store: Store, origin: Episode, pool: Pool, number: int, edits: Sequence[AnyEdit]) -> Episode:
    """Run a recorded episode with round `number` edited to its end, recorded and graded like any other.

    Raises InvalidEdits before anything runs, and StorageError.
    """
    async with live_pool(pool, CallCache(DatabaseCacheStore(store.engine))) as live:
        episode = await _finish(prepare_variation(store, live, vary(origin, number, edits, live)))
    store.traces.flush()
    return episode


async def _finish(run: RecordedRun) -> Episode:
    episode = await run.run()
    await run.learn(episode)
    return episode
