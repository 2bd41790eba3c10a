"""A recorded run as a task of its pool: its query, its answer and the plan that led to it."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.plan import Step, Turn
from orchestrator.policies.oracle import OraclePolicy
from orchestrator.traces.store import open_store
from pool_registry.calls.live_pool import live_pool
from pool_registry.storage.data_folder import find_home
from tests.trainer.support.shop import build_shop
from trainer.errors import UnusableTasks
from trainer.sft.episode_task import make_line_of_episode
from trainer.tasks.sources.jsonl import make_task


@pytest.fixture
def record(tmp_path, monkeypatch):
    """Runs a plan on the shop and returns the task of its trace."""
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    store = open_store(find_home())
    shop = store.pools.save(build_shop(tmp_path)).pool

    async def run(turn: Turn) -> str:
        async with live_pool(shop) as live:
            episode = await run_episode(EpisodeSpec("What is 6 * 7 + 1?"), OraclePolicy(turn), live, sink=store.traces)
        store.traces.flush()
        return episode.id

    yield lambda turn: make_line_of_episode(store, asyncio.run(run(turn)), "shop")
    store.close()


def test_a_run_becomes_a_task_with_its_plan(record):
    steps = (Step(1, "calc", {"expression": "6 * 7"}), Step(2, "calc", {"expression": "$1 + 1"}, (1,)))
    line = record(Turn(steps, "$2"))
    task = make_task(line, "shop", 0)
    assert (line.query, task.ref.split, task.workers) == ("What is 6 * 7 + 1?", "train", ("calc",))
    assert task.verifier.accepts("43") and not task.verifier.accepts("42")
    assert task.oracle_turn is not None and len(task.oracle_turn.steps) == 2


def test_a_run_without_a_plan_that_led_to_its_answer_is_no_task(record):
    with pytest.raises(UnusableTasks, match="no plan on the pool shop"):
        record(Turn((Step(1, "abacus", {"expression": "6 * 7"}),), "43"))
