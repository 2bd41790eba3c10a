"""One query without the page: what `python -m studio run` does."""

from __future__ import annotations

from typing import Any

from orchestrator.memory import memory_of
from orchestrator.policies import make_orchestrator
from orchestrator.policies.model import remembering
from orchestrator.reflection import remember
from orchestrator.run import EpisodeSpec, check_query, run_episode
from orchestrator.trace import Store
from pool_registry.live import live_pool
from pool_registry.recall import Recall
from pool_registry.shelf import DatabaseShelf
from studio.export import trace_document
from trainer.evaluate import grade, resolve
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
