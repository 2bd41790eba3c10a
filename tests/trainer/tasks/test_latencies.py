"""Latencies drawn for workers: each call really waits, the trace says why, and the reward `efficiency` sees it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.engine.events import TaskRef
from orchestrator.plan import Step, Turn
from pool_registry.actions import Action, Status
from pool_registry.calls.caching_pool import CachingPool
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import InvalidPool
from pool_registry.pool import Limits, Pool, check_pool
from tests.trainer.tasks.test_vary_pool import OFF, STARTER, a_task, run_plan
from trainer.methods.grpo.rewards import compute_drawn_wait, efficiency_reward, make_sample
from trainer.tasks.pool_conditions import compute_delay_s, delay_worker, list_tools, unwrap_worker, wrap_flaky
from trainer.tasks.pool_settings import PoolSettings
from trainer.tasks.task import Task
from trainer.tasks.vary_pool import vary_pool
from trainer.tasks.verifier import ExactText

CALCULATOR = STARTER.worker("calculator")
LIMITS = Limits(deadline_s=300)
SLOW = OFF.model_copy(update={"latencies": 1.0, "max_latency_ms": 200})


def call_twice(pool: Pool, caching: bool) -> list:
    """The observations of two equal calls."""

    async def run():
        async with live_pool(pool) as live:
            open_pool = CachingPool(live) if caching else live
            return [await open_pool.call(Action("calculator", {"expression": "2+3"})) for _ in range(2)]

    return asyncio.run(run())


@pytest.mark.parametrize("caching", [False, True])
def test_a_delayed_tool_answers_the_same_later_and_never_from_a_cache(caching):
    slow = Pool(name="p", workers=(delay_worker(CALCULATOR, 30),))
    for observation in call_twice(slow, caching):
        assert (observation.status, observation.value) == (Status.OK, 5)
        assert observation.latency_s >= 0.029 and not observation.cached


def test_a_delay_does_not_use_up_the_time_out():
    hurried = CALCULATOR.model_copy(update={"timeout_s": 0.05})
    assert call_twice(Pool(name="p", workers=(delay_worker(hurried, 60),)), False)[0].status is Status.OK


def test_an_agent_cannot_be_delayed_and_no_wait_is_negative():
    for spec in (delay_worker(STARTER.worker("solver"), 1), delay_worker(CALCULATOR, -1)):
        with pytest.raises(InvalidPool):
            check_pool(Pool(name="p", workers=(spec,)))


def test_no_pool_is_slow_unless_the_recipe_says_so():
    assert PoolSettings().latencies == 0
    for index in range(30):
        pool = vary_pool(a_task(index), STARTER, PoolSettings(), 0).pool
        assert not any(map(compute_delay_s, pool.workers))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 300), st.integers(1, 10_000), st.integers(0, 3))
def test_latencies_are_drawn_for_half_of_the_tools_within_the_range_and_told(index, longest, seed):
    drawn = SLOW.model_copy(update={"max_latency_ms": longest})
    pool = vary_pool(a_task(index), STARTER, drawn, seed).pool
    slow = [spec for spec in pool.workers if spec.kind == "delayed"]
    assert len(slow) == (len(list_tools(STARTER)) + 1) // 2
    for spec in slow:
        latency_ms = spec.config["latency_ms"]
        assert max(1, longest // 10) <= latency_ms <= longest and compute_delay_s(spec) == latency_ms / 1000
        assert spec.description.endswith(f"Takes about {latency_ms} milliseconds a call.")
        assert unwrap_worker(spec) == STARTER.worker(spec.name)


def test_other_draws_stay_as_they_were():
    fast, slow = (
        vary_pool(a_task(), STARTER, PoolSettings(rename_parameters=0, latencies=share), 0) for share in (0, 1)
    )
    assert [unwrap_worker(spec).config for spec in fast.pool.workers] == [
        unwrap_worker(spec).config for spec in slow.pool.workers
    ]
    assert fast.oracle_turn == slow.oracle_turn


def test_a_plan_waits_for_the_workers_that_it_calls_and_gives_the_expected_answer():
    drawn = SLOW.model_copy(update={"max_latency_ms": 20, "rename_parameters": 1.0, "flaky": 1.0, "prices": 1.0})
    waits = []
    for index in range(4):
        varied = vary_pool(a_task(index), STARTER, drawn, 0)
        episode = run_plan(varied)
        assert episode.graded.correct
        for run in episode.steps.values():
            wait = compute_delay_s(varied.pool.worker(run.step.worker))
            assert run.observation.latency_s >= wait * 0.95
            waits.append(wait)
    assert any(waits) and not all(waits)


def test_delays_of_nested_wrappers_add_up():
    assert compute_delay_s(delay_worker(wrap_flaky(delay_worker(CALCULATOR, 20), 0), 30)) == pytest.approx(0.05)
    assert compute_delay_s(CALCULATOR) == 0


def run_sample(*steps: Step):
    """The graded episode of a plan on a fast calculator and on slow ones."""
    slow = delay_worker(CALCULATOR.model_copy(update={"name": "slow"}), 40)
    pool = Pool(name="speeds", workers=(CALCULATOR, slow, slow.model_copy(update={"name": "other"})), limits=LIMITS)
    task = Task(TaskRef("own", 1, "train", 0), "q", ExactText("2"), Turn(steps, f"${len(steps)}"), pool)
    return make_sample(task, run_plan(task), LIMITS)


def test_efficiency_counts_a_drawn_latency_exactly_and_parallel_ones_once():
    text = {"expression": "1+1"}
    fast = run_sample(Step(1, "calculator", text), Step(2, "calculator", text))
    beside = run_sample(Step(1, "slow", text), Step(2, "other", text))
    after = run_sample(Step(1, "slow", text), Step(2, "other", {"expression": "$1"}, (1,)))
    assert [compute_drawn_wait(sample) for sample in (fast, beside, after)] == pytest.approx([0, 0.04, 0.08])
    group = (fast, beside, after)
    best, middle, worst = (efficiency_reward(sample, group) for sample in group)
    once, twice = (1 / (1 + 10 * wait_s / LIMITS.deadline_s) for wait_s in (0.04, 0.08))
    assert (best, middle, worst) == pytest.approx((1, (2 + once) / 3, (2 / 3 + 1 + twice) / 3), abs=1e-9)
    assert after.totals.critical_path_s >= 0.08


def test_a_refused_call_does_not_count_as_a_wait():
    assert compute_drawn_wait(run_sample(Step(1, "slow", {"nonsense": 1}))) == 0
    plain = run_sample(Step(1, "slow", {"expression": "1+1"}))
    assert compute_drawn_wait(replace(plain, task=replace(plain.task, pool=None))) == 0
