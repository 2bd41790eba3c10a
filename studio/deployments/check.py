"""Checks what a deployment would serve before it is recorded, so that a running server is never sent to something that
cannot be opened."""

from __future__ import annotations

import asyncio

from orchestrator.traces.store import Store
from pool_registry.calls.effect_free_pool import refuse_effects
from pool_registry.calls.live_pool import live_pool
from pool_registry.deployment_mode import tighten_mode
from pool_registry.pool import Pool
from studio.deployments.states import Candidate, DeploymentRefused, ServingSide
from studio.episodes import make_orchestrator_with_memory


def check_serving(store: Store, serving: ServingSide) -> None:
    """Raise what would fail at the first request: PoolNotFound, InvalidPool or UnknownOrchestrator."""
    asyncio.run(_open(store, store.pools.get(serving.pool, serving.pool_version).pool, serving.orchestrator))


def check_candidate(store: Store, serving: ServingSide, candidate: Candidate) -> None:
    """Raise what would fail at its first request, and DeploymentRefused for a shadow whose plans would wait."""
    pool = store.pools.get(serving.pool, serving.pool_version).pool
    mode = tighten_mode(pool.mode, serving.options.mode)
    if candidate.share is None and mode.name != "autonomous":
        raise DeploymentRefused(
            f"plans of this deployment wait for a person (mode {mode.name}), and nobody approves those of a shadow; "
            "try the candidate on a share of the requests: --share 0.1"
        )
    if candidate.share is None and not serving.options.record:
        raise DeploymentRefused(
            "this deployment stores nothing that clients send, and the answers of a shadow would be stored; try the "
            "candidate on a share of the requests: --share 0.1"
        )
    asyncio.run(_open(store, pool, candidate.orchestrator, with_effects=candidate.share is not None))


async def _open(store: Store, pool: Pool, orchestrator: str, with_effects: bool = True) -> None:
    async with live_pool(pool) as opened:
        make_orchestrator_with_memory(store, opened if with_effects else refuse_effects(opened), orchestrator)
