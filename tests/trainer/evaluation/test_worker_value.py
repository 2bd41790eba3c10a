"""What a worker brings: the same tasks with and without it, within a time, without calls that may have effects."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Turn
from pool_registry.actions import Action
from pool_registry.calls.effect_free_pool import refuse_effects
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import PoolNotFound
from pool_registry.pool import Pool
from tests.trainer.support.shop import build_shop, describe_worker
from trainer.errors import UnknownTask
from trainer.evaluation import worker_value
from trainer.evaluation.worker_value import TOO_FEW, ValueOptions, measure_in_time, measure_worker_value
from trainer.tasks.sources.jsonl import TaskLine, make_task

OPTIONS = ValueOptions("oracle", seconds=30)
POOL = Pool(
    name="sums",
    workers=(
        describe_worker("calc", "calculator", "Evaluates an expression."),
        describe_worker("spare", "calculator", "Works out a sum."),
    ),
)


def make_sums(count: int, worker: str = "calc"):
    def plan(k: int) -> dict:
        return {"steps": [{"worker": worker, "arguments": {"expression": f"{k} + 1"}, "access": []}], "answer": "$1"}

    lines = [TaskLine(query=f"{worker} {k}", answer=k + 1, plan=plan(k)) for k in range(1, count + 1)]
    return [make_task(line, "sums", index) for index, line in enumerate(lines)]


def measure(tasks, worker="calc", pool=POOL, options=OPTIONS):
    return asyncio.run(measure_worker_value(pool, worker, tasks, options))


def test_tasks_that_need_a_worker_fail_without_it_and_others_do_not():
    value = measure([*make_sums(12), *make_sums(4, "spare")])
    assert (len(value.pairs), value.needing) == (16, 12)
    assert (value.score.with_it, value.score.without_it) == (1.0, 0.25)
    assert 0 < value.score.difference.low < 0.75 < value.score.difference.high < 1
    assert "75 points higher" in value.verdict and "16 tasks" in value.verdict


def test_a_worker_that_no_task_calls_is_said_to_change_nothing():
    value = measure(make_sums(10, "spare"))
    assert value.needing == 0 and value.score.difference.mean == 0 and "never called" in value.verdict


def test_few_tasks_are_called_too_few_however_clear_the_difference_looks():
    value = measure(make_sums(TOO_FEW - 1))
    assert value.score.difference.mean == 1 and not value.enough and "too few" in value.verdict


def test_a_switched_off_worker_is_measured_as_if_it_were_on():
    calc = POOL.worker("calc").model_copy(update={"enabled": False})
    assert measure(make_sums(9), pool=POOL.with_worker(calc, "calc")).score.with_it == 1


def test_the_time_that_is_given_ends_the_measurement():
    value = measure(make_sums(50), options=ValueOptions("oracle", seconds=0))
    assert value.pairs == () and value.tasks == 50 and "too few" in value.verdict


def test_a_pool_of_one_worker_and_an_unknown_worker_are_errors():
    with pytest.raises(UnknownTask, match="nothing would be left"):
        measure(make_sums(3), pool=Pool(name="one", workers=POOL.workers[:1]))
    with pytest.raises(PoolNotFound):
        measure(make_sums(3), worker="ghost")


def test_tools_that_may_have_effects_are_called_only_when_they_are_allowed(tmp_path):
    order = describe_worker("order", "http", "Orders an item.", url="https://127.0.0.1:1/order", method="POST")
    shop = build_shop(tmp_path)
    pool = shop.model_copy(update={"workers": (*shop.workers, order)})
    value = measure(make_sums(2), pool=pool)
    assert value.refused == ("order",)
    assert measure(make_sums(2), pool=pool, options=ValueOptions("oracle", allowed=frozenset({"order"}))).refused == ()

    async def call(name: str, arguments: dict):
        async with live_pool(pool) as live:
            return await refuse_effects(live).call(Action(name, arguments))

    refused = asyncio.run(call("order", {}))
    assert refused.error.code == "may_have_effects" and asyncio.run(call("calc", {"expression": "1 + 1"})).value == 2


class SlowPolicy(Orchestrator):
    """Thinks for longer than there is time."""

    name = "slow"

    async def turn(self, _: object) -> Turn:
        await asyncio.sleep(60)
        return Turn(answer="too late")


def test_an_orchestrator_that_is_too_slow_gives_way_to_the_reference_plans(monkeypatch):
    make = worker_value.make_orchestrator
    known = {"slow": lambda *_: SlowPolicy()}
    monkeypatch.setattr(worker_value, "make_orchestrator", lambda name, *more: known.get(name, make)(name, *more))
    value, note = asyncio.run(measure_in_time(POOL, "calc", make_sums(10), ValueOptions("slow", seconds=4)))
    assert value.orchestrator == "oracle" and len(value.pairs) == 10 and value.enough
    assert "slow did 0 of 10 tasks in 2 s" in note and "reference plans" in note


def test_reference_plans_get_the_whole_time():
    value, note = asyncio.run(measure_in_time(POOL, "calc", make_sums(10), OPTIONS))
    assert (value.orchestrator, len(value.pairs), note) == ("oracle", 10, "")
