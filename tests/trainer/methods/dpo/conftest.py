"""A data folder with the shop in it, and recorded runs on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.events import Graded, TaskRef
from orchestrator.plan import Step, Turn
from orchestrator.policies.baselines.oracle import OraclePolicy
from orchestrator.traces.store import Store, open_store
from pool_registry.calls.live_pool import live_pool
from pool_registry.storage.data_folder import find_home
from tests.trainer.support.shop import build_shop

Record = Callable[..., str]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    opened = open_store(find_home())
    opened.pools.save(build_shop(tmp_path))
    yield opened
    opened.close()


@pytest.fixture
def record(store: Store) -> Record:
    """Runs one call of calc for a query, and writes down what was said of its answer; returns the trace's id."""

    async def run(query: str, expression: str, split: str) -> str:
        turn = Turn((Step(1, "calc", {"expression": expression}),), "$1")
        task = TaskRef("sums", 1, split, 0) if split else None
        async with live_pool(store.pools.latest("shop").pool) as live:
            return (await run_episode(EpisodeSpec(query, task=task), OraclePolicy(turn), live, sink=store.traces)).id

    def record_run(
        query: str, expression: str, correct: bool | None = None, split: str = "", star: bool = False
    ) -> str:
        episode = asyncio.run(run(query, expression, split))
        if correct is not None:
            store.traces.append(episode, Graded(correct, "", 1.0))
        store.traces.flush()
        if star:
            store.traces.star(episode, True)
        return episode

    return record_run
