"""Without the page: one query (`python -m studio run`), and one recorded run that is edited (`what-if`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.engine.edits import AnyEdit
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, check_query, run_episode
from orchestrator.errors import InvalidEdits
from orchestrator.failure_memory.lessons import memory_of
from orchestrator.failure_memory.write_lesson import remember
from orchestrator.policies.model import remembering
from orchestrator.policies.registry import make_orchestrator
from orchestrator.traces.store import Store
from orchestrator.what_if import run_variation, vary
from pool_registry.calls.call_cache import Recall
from pool_registry.calls.call_cache_table import DatabaseShelf
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import PoolNotFound
from pool_registry.pool import Pool
from studio.episode_documents.trace import trace_document
from trainer.evaluation.trials import grade, resolve
from trainer.tasks import recognize


async def run_once(store: Store, pool_name: str, orchestrator_name: str, query: str) -> dict[str, Any]:
    """Run the query to its end, recorded like any other episode, and return its trace document.

    Raises PoolError or OrchestratorError when it cannot start.
    """
    check_query(query)
    task = recognize(query)
    recall = Recall(DatabaseShelf(store.engine))
    async with live_pool(store.pools.latest(pool_name).pool, recall) as pool:
        orchestrator = make_orchestrator(orchestrator_name, pool, task.oracle_turn if task else None)
        orchestrator = remembering(orchestrator, memory_of(pool.pool, store.reflections))
        spec = EpisodeSpec(query, task=task.ref if task else None)
        episode = await run_episode(spec, orchestrator, pool, sink=store.traces, resolve=resolve)
        if task is not None:
            await grade(episode, task, store.traces, pool)
        await remember(episode, pool, store.reflections)
    store.traces.flush()
    return trace_document(store, store.traces.row(episode.id))


def recorded_run(store: Store, episode_id: str) -> tuple[Episode, Pool]:
    """A recorded episode that has ended, and the version of the pool that it ran on.

    Raises EpisodeNotFound, DamagedTrace, PoolNotFound, or InvalidEdits while it is under way.
    """
    row = store.traces.row(episode_id)
    if row.state == "running":
        raise InvalidEdits([("", "this run is still under way; edit it when it has ended")])
    stored = store.pools.by_hash(row.pool, row.pool_hash)
    if stored is None:
        raise PoolNotFound(
            f"the version of pool {row.pool!r} that this run used is not kept in this data folder, "
            "so its workers cannot be called anew"
        )
    return store.traces.episode(episode_id), stored.pool


async def vary_once(store: Store, origin: Episode, pool: Pool, number: int, edits: Sequence[AnyEdit]) -> Episode:
    """Run a recorded episode with round `number` edited to its end, recorded and graded like any other.

    Raises InvalidEdits before anything runs, and StorageError.
    """
    task = recognize(origin.query)
    async with live_pool(pool, Recall(DatabaseShelf(store.engine))) as live:
        wanted = vary(origin, number, edits, live)
        ref = task.ref if task else None
        episode = await run_variation(wanted, live, task=ref, sink=store.traces, resolve=resolve)
        if task is not None:
            await grade(episode, task, store.traces, live)
    store.traces.flush()
    return episode
