"""Calls never raise: whatever a worker does ends in one of the four statuses."""

from __future__ import annotations

import asyncio
import time

import pytest
import stamina

from pool_registry.actions import Action, Observation, Status
from pool_registry.calls.caching_pool import CachingPool
from pool_registry.calls.effect_free_pool import refuse_effects
from pool_registry.calls.live_pool import LiveWorker, live_pool
from pool_registry.calls.run_limits import RunLimits
from pool_registry.pool import Pool
from tests.pool_registry.support.kinds_for_tests import Counts, Flaky, odd_kinds, spec

__all__ = ["odd_kinds"]
pytestmark = pytest.mark.usefixtures("odd_kinds")


def call(*workers, worker: str, **arguments) -> Observation:
    async def once() -> Observation:
        async with live_pool(Pool(name="p", workers=workers)) as pool:
            return await pool.call(Action(worker, arguments or {"text": "hi"}))

    return asyncio.run(once())


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        ("raises", Status.EXEC_ERR, "worker_raised"),
        ("refuses", Status.PARSE_ERR, "bad_arguments"),
        ("huge", Status.EXEC_ERR, "output_too_large"),
        ("notjson", Status.EXEC_ERR, "invalid_response"),
    ],
)
def test_misbehaviour_becomes_a_status_with_a_code(kind, status, code):
    seen = call(spec(kind), worker=kind)
    assert (seen.status, seen.error.code) == (status, code)
    assert seen.value is None and seen.error.message


def test_a_hanging_worker_is_timed_out():
    seen = call(spec("hangs", timeout_s=0.05), worker="hangs")
    assert seen.status is Status.TIMEOUT and 0.04 < seen.latency_s < 5


@pytest.mark.medium
def test_the_time_out_starts_with_the_worker_and_not_in_the_queue():
    async def queue() -> list[Observation]:
        slow = spec("counts", max_concurrency=1, timeout_s=1.0)  # fifty times what a call takes: machines are busy
        async with live_pool(Pool(name="p", workers=(slow,))) as pool:
            return await asyncio.gather(*(pool.call(Action("counts", {"text": "x"})) for _ in range(70)))

    assert {seen.status for seen in asyncio.run(queue())} == {Status.OK}


def test_no_more_calls_run_at_once_than_a_worker_takes():
    async def many() -> None:
        Counts.running = Counts.most = 0
        async with live_pool(Pool(name="p", workers=(spec("counts", max_concurrency=3),))) as pool:
            await asyncio.gather(*(pool.call(Action("counts", {"text": "x"})) for _ in range(10)))

    asyncio.run(many())
    assert Counts.most == 3


def test_text_is_cleaned_of_what_databases_and_browsers_refuse():
    assert call(spec("dirty"), worker="dirty").value == "a\ufffdb\ufffdc"


def test_an_unknown_worker_and_bad_arguments_say_what_to_write():
    assert "use one of: echo" in call(spec("echo"), worker="nobody").error.message
    wrong = call(spec("echo"), worker="echo", txt="hi")
    assert wrong.status is Status.PARSE_ERR and "txt" in wrong.error.message


def test_only_faults_that_may_pass_are_retried():
    with stamina.set_testing(True, attempts=10, cap=True):
        Flaky.calls = 0
        assert call(spec("flaky", retries=3), worker="flaky", text="3").value == 3
        Flaky.calls = 0
        tired = call(spec("flaky", retries=1), worker="flaky", text="9")
    assert tired.error.code == "rate_limited" and Flaky.calls == 2


def test_a_disabled_worker_cannot_be_called():
    assert call(spec("echo", enabled=False), worker="echo").status is Status.PARSE_ERR


def test_prices_are_put_on_calls():
    assert call(spec("echo", price_call=0.25), worker="echo").usage.cost == 0.25


def test_a_call_costs_little_more_than_the_work_itself():
    async def many() -> float:
        async with live_pool(Pool(name="p", workers=(spec("echo"),))) as pool:
            started = time.perf_counter()
            for _ in range(2000):
                await pool.call(Action("echo", {"text": "x"}))
            return (time.perf_counter() - started) / 2000

    assert asyncio.run(many()) < 1e-3


def test_a_plan_that_names_a_judge_hears_that_it_only_judges():
    judge = spec("counts").model_copy(update={"name": "judge", "judge_only": True})
    seen = call(spec("dirty"), judge, worker="judge")
    assert (seen.status, seen.error.code) == (Status.PARSE_ERR, "unknown_worker")
    assert seen.error.message == "judge only judges answers; use one of: dirty"


def test_views_of_a_pool_keep_the_judges_that_they_name():
    judge = spec("counts").model_copy(update={"name": "judge", "judge_only": True})

    async def look() -> tuple[LiveWorker | None, ...]:
        async with live_pool(Pool(name="p", workers=(spec("dirty"), judge))) as pool:
            assert "judge" not in pool.workers
            limited = pool.limit(RunLimits(max_cost=1.0))
            views = (pool, CachingPool(pool), refuse_effects(pool), limited, pool.narrow({"dirty"}))
            return tuple(view.find_judge("judge") for view in (*views, pool.limit(RunLimits(("judge",)))))

    whole, cached, guarded, capped, narrowed, banned = asyncio.run(look())
    assert whole is not None and whole is cached is guarded is capped
    assert narrowed is None and banned is None
