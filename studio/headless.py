"""Runs without the page: one query (`podium run`), and one recorded run that is edited (`podium what-if`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.engine.edits import AnyEdit
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import check_query
from orchestrator.engine.events import FollowUp
from orchestrator.follow_up.readings import Understanding
from orchestrator.traces.store import Store
from orchestrator.what_if import vary
from pool_registry.calls.call_cache import CallCache
from pool_registry.calls.call_cache_table import DatabaseCacheStore
from pool_registry.calls.live_pool import live_pool
from pool_registry.calls.run_limits import NO_RUN_LIMITS, RunLimits
from pool_registry.deployment_mode import ModeName
from pool_registry.pool import Pool
from studio.approvals import WaitingPlan, claim_plan, make_decision
from studio.episode_documents.trace import build_trace_document
from studio.episodes import RecordedRun, prepare_resumed, prepare_run, prepare_variation
from studio.follow_ups import ReadyFollowUp, read_follow_up
from studio.forks import fork_for


async def run_once(
    store: Store,
    pool_name: str,
    orchestrator: str,
    query: str,
    mode: ModeName | None = None,
    run_limits: RunLimits = NO_RUN_LIMITS,
    follow_up: FollowUp | None = None,
) -> dict[str, Any]:
    """Run the query to its end, recorded like any other episode, or until its plan waits for a person; returns its
    trace document. `mode` replaces the pool's, `run_limits` are what it is limited to, `follow_up` what it goes
    on with.

    Raises PoolError or OrchestratorError when it cannot start.
    """
    check_query(query)
    async with live_pool(store.pools.latest(pool_name).pool, CallCache(DatabaseCacheStore(store.engine))) as pool:
        chosen = pool.pool.mode.model_copy(update={"name": mode}) if mode else None
        run = prepare_run(store, pool, orchestrator, query, mode=chosen, run_limits=run_limits, follow_up=follow_up)
        episode = await _finish(run)
    store.traces.flush()
    return build_trace_document(store, store.traces.row(episode.id))


async def read_once(
    origin: Episode, text: str, pool: Pool, agents: Sequence[str], question: str = ""
) -> ReadyFollowUp | Understanding:
    """The question that a follow-up of a recorded run means, or what there is to choose from. Raises what
    `read_follow_up` raises, and InvalidPool."""
    async with live_pool(pool) as live:
        return await read_follow_up(origin, text, live, agents, question)


async def decide_once(
    store: Store, plan: WaitingPlan, approve: bool, by: str, note: str = "", edits: Sequence[AnyEdit] = ()
) -> dict[str, Any]:
    """Decide about a plan that waits and run what follows, until the run has ended or waits again; returns its trace
    document.

    Raises InvalidEdits, UnknownOrchestrator, and NotWaiting when somebody was faster.
    """
    async with live_pool(plan.pool, CallCache(DatabaseCacheStore(store.engine))) as pool:
        decision = make_decision(plan, pool, "approve" if approve else "reject", by, note, edits)
        run = prepare_resumed(store, pool, plan.episode, decision)
        claim_plan(store, plan)
        await _finish(run)
    store.traces.flush()
    return build_trace_document(store, store.traces.row(plan.row.id))


async def vary_once(
    store: Store, origin: Episode, pool: Pool, number: int, edits: Sequence[AnyEdit], *, on_copies: bool = False
) -> Episode:
    """Run a recorded episode with round `number` edited to its end, recorded and graded like any other; `on_copies` of
    what its steps may change (studio/forks.py).

    Raises InvalidEdits before anything runs, and StorageError.
    """
    async with live_pool(pool, CallCache(DatabaseCacheStore(store.engine))) as live:
        variation = vary(origin, number, edits, live)
        fork = fork_for(variation, live) if on_copies else None
        episode = await _finish(prepare_variation(store, live, variation, fork=fork))
    store.traces.flush()
    return episode


async def _finish(run: RecordedRun) -> Episode:
    episode = await run.run()
    await run.learn(episode)
    return episode
