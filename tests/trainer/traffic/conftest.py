"""A data folder with the shop, whose runs people and clients judge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.engine.edits import WhatIf
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.plan import Step, Turn
from orchestrator.policies.baselines.oracle import OraclePolicy
from orchestrator.traces.store import Store, open_store
from pool_registry.calls.live_pool import live_pool
from pool_registry.storage.data_folder import find_home
from tests.trainer.support.shop import build_shop
from trainer.demonstrations.episode_task import Judgement, judge_run

Ask = Callable[..., str]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    store = open_store(find_home())
    store.pools.save(build_shop(tmp_path))
    yield store
    store.close()


@pytest.fixture
def ask(store: Store) -> Ask:
    """Runs a query whose plan computes an expression, and judges it where a judgement comes with it. Returns the id."""

    async def run(spec: EpisodeSpec, turn: Turn) -> str:
        async with live_pool(store.pools.latest("shop").pool) as live:
            return (await run_episode(spec, OraclePolicy(turn), live, sink=store.traces)).id

    def record(
        query: str, expression: str = "6 * 7", judgement: Judgement | None = None, source: str = "mine",
        user: str = "", corrects: str = "",
    ) -> str:  # fmt: skip
        what_if = WhatIf(corrects, 1, ()) if corrects else None
        turn = Turn((Step(1, "calc", {"expression": expression}),), "$1")
        episode = asyncio.run(run(EpisodeSpec(query, source=source, user=user, what_if=what_if), turn))
        store.traces.flush()
        if judgement is not None:
            judge_run(store, episode, judgement)
        return episode

    return record
