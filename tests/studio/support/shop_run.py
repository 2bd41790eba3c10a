"""A recorded run on a pool whose workers change something (tests/pool_registry/forks/shop_pool.py)."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.plan import Step, Turn
from orchestrator.traces.store import Store
from pool_registry.calls.live_pool import live_pool
from tests.pool_registry.forks.shop_pool import make_database, make_notes, make_pool
from tests.studio.support.recorded import Named

PLAN = Turn(
    (
        Step(1, "place_order", {"item": "cup", "count": 2}),
        Step(2, "add_note", {"text": "cups are ordered"}, access=(1,)),
        Step(3, "count_orders", {}, access=(1, 2)),
    ),
    "$3",
)


@dataclass(frozen=True, slots=True)
class ShopRun:
    """A run that ordered two cups, and what it changed."""

    episode: str
    database: Path
    notes: Path


def record_order(store: Store, folder: Path) -> ShopRun:
    """Make the pool's database and notes in a folder, and run the plan on them."""
    database, notes = make_database(folder), make_notes(folder)
    pool = store.pools.save(make_pool(database, notes)).pool

    async def run() -> str:
        async with live_pool(pool) as live:
            episode = await run_episode(EpisodeSpec("order two cups"), Named("boss", PLAN), live, sink=store.traces)
        assert episode.ended is not None and episode.ended.outcome == "answered"
        store.traces.flush()
        return episode.id

    with ThreadPoolExecutor(1) as thread:  # Playwright's own loop may run in this one
        return ShopRun(thread.submit(lambda: asyncio.run(run())).result(), database, notes)
