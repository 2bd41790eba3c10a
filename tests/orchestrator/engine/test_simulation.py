"""Two thousand simulated episodes: no deadlock, no late end, no step out of order, no look beyond an access list, no
cap or limit exceeded, and the same trace for the same seed. `python -m tests.orchestrator.simulate` runs more."""

from __future__ import annotations

import asyncio
import logging

import pytest

from orchestrator.engine.budget import Budget
from pool_registry.calls import worker_state
from pool_registry.calls.live_pool import LivePool
from tests.orchestrator.support.simulated_episode import check_seed, run_seed
from tests.orchestrator.support.simulated_loop import Deadlock, simulate
from tests.trust.trials import choose_trials, count_trials

SEEDS = choose_trials(2000)
PART = 250


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.medium
@pytest.mark.parametrize("first", range(0, SEEDS, PART))
def test_what_must_hold_of_every_episode_holds(first):
    broken = {seed: problems for seed in range(first, first + PART) if (problems := check_seed(seed))}
    count_trials(PART, len(broken))
    assert broken == {}


@pytest.mark.medium
def test_the_seeds_reach_every_way_to_end():
    outcomes = {run_seed(seed).episode.ended.outcome for seed in range(300)}
    assert outcomes >= {
        "answered",
        "max_rounds",
        "deadline",
        "orchestrator_failed",
        "stopped",
        "max_tokens",
        "max_cost",
    }


def test_a_call_that_is_shown_less_than_its_access_list_is_noticed(monkeypatch):
    call = LivePool.call
    monkeypatch.setattr(LivePool, "call", lambda self, action, visible, *rest: call(self, action, visible[1:], *rest))
    assert any("access list" in problem for seed in range(60) for problem in check_seed(seed))


def test_steps_that_are_not_counted_are_noticed(monkeypatch):
    monkeypatch.setattr(Budget, "admit_step", lambda _: None)
    assert any("steps started" in problem for seed in range(60) for problem in check_seed(seed))


def test_a_worker_that_runs_more_calls_than_it_may_is_noticed(monkeypatch):
    monkeypatch.setattr(worker_state.asyncio, "Semaphore", lambda _: asyncio.BoundedSemaphore(1000))
    assert any("at a time" in problem for seed in range(60) for problem in check_seed(seed))


def test_what_can_never_end_is_a_deadlock():
    async def wait():
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock):
        simulate(wait())
    assert simulate(asyncio.sleep(86_400, "a day later")) == "a day later"
