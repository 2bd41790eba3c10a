"""Which recorded runs a page shows: right and starred ones by themselves, others only when a person names them."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.events import Graded
from orchestrator.plan import Step, Turn
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from studio.pages.publish.commands import PublishCommands
from studio.publish.plan import make_plan
from studio.publish.request import Publication, PublishError
from studio.publish.traces import choose_runs, list_candidates, record_examples
from tests.studio.support.recorded import Named
from trainer.demonstrations.episode_task import Judgement, keep_run


@pytest.fixture
def mine(request) -> Publication:
    """A publication of a pool that no other test runs on."""
    pool = f"sums{abs(hash(request.node.name))}"
    return Publication(pool=pool, orchestrator="random_plan", repo="mine", with_model=False)


@pytest.fixture
def record(runtime, mine):
    """Runs a plan of so many steps for a query, and gives the verdict, if there is one; the episode's id."""
    store = runtime.store
    store.pools.save(Pool(name=mine.pool, workers=(WorkerSpec(name="calc", kind="calculator", description="d"),)))

    async def run(query: str, steps: int) -> str:
        plan = Turn(tuple(Step(k, "calc", {"expression": f"{k} + 1"}) for k in range(1, steps + 1)), f"${steps}")
        async with live_pool(store.pools.latest(mine.pool).pool) as pool:
            return (await run_episode(EpisodeSpec(query), Named("random_plan", plan), pool, sink=store.traces)).id

    def record_run(query: str, steps: int, correct: bool | None = None) -> str:
        episode = asyncio.run(run(query, steps))
        if correct is not None:
            store.traces.append(episode, Graded(correct, "2", 1.0))
        store.traces.flush()
        return episode

    return record_run


def test_only_right_and_starred_runs_are_chosen_whatever_their_steps(runtime, record, mine):
    record("long and wrong", 5, correct=False)
    record("long and unverified", 4)
    right = record("short and right", 1, correct=True)
    starred, disproved = record("liked", 1), record("liked and wrong", 3, correct=False)
    for episode in (starred, disproved):
        runtime.store.traces.star(episode, True)
    assert {row.id for row in choose_runs(runtime.store, mine)} == {right, starred}
    rows = PublishCommands(runtime).run("runs", {"pool": mine.pool, "orchestrator": "random_plan"})["runs"]
    assert {row["query"]: row["shown"] for row in rows} == {
        "short and right": True, "liked": True, "long and unverified": False,
        "long and wrong": False, "liked and wrong": False,
    }  # fmt: skip
    assert [row["correct"] for row in rows[-2:]] == [False, False], "wrong ones stand last"


def test_a_run_that_a_person_confirmed_is_chosen_and_one_that_they_corrected_is_not(runtime, record, mine):
    confirmed, corrected = record("How much is 1 + 1?", 1), record("How much is 2 + 2?", 2)
    keep_run(runtime.store, confirmed, mine.pool, Judgement(is_right=True))
    keep_run(runtime.store, corrected, mine.pool, Judgement(answer="4"))
    assert [row.id for row in choose_runs(runtime.store, mine)] == [confirmed]


def test_a_replay_of_unverified_runs_wants_a_persons_choice(runtime, record, mine, tmp_path):
    unverified = record("nobody knows", 1)
    with pytest.raises(PublishError, match="known to be right: choose runs yourself"):
        make_plan(runtime.store, mine, tmp_path).space("mine")
    chosen = mine.model_copy(update={"traces": (unverified,)})
    assert make_plan(runtime.store, chosen, tmp_path).space("mine").text("space.json")


def test_examples_are_recorded_only_on_a_pool_that_can_solve_them(runtime, record, mine):
    assert record_examples(runtime.store, mine) == 0 and list_candidates(runtime.store, mine) == []
