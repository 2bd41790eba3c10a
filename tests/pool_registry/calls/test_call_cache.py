"""The observation cache: an equal call is made once, and only what is worth keeping is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from pool_registry.actions import Action, Observation, Status
from pool_registry.calls.caching_pool import CachingPool
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.errors import WorkerFault
from pool_registry.kinds import KINDS, Kind
from pool_registry.pool import Pool
from pool_registry.worker import Call, NoConfig, Reply, Visible, Worker, WorkerSpec, one_string


class Counting(Worker[NoConfig]):
    """Counts its calls in its value. `fail` fails, `wait` waits for `release`."""

    cacheable = True
    calls = 0
    release: asyncio.Event

    @property
    def parameters(self) -> Mapping[str, Any]:
        return one_string("text", "anything")

    async def call(self, call: Call) -> Reply:
        Counting.calls += 1
        number, text = Counting.calls, call.text("text")
        if "wait" in text:
            await Counting.release.wait()
        if "fail" in text:
            raise WorkerFault("broken", "out of order")
        return Reply(number)


class Fresh(Counting):
    cacheable = False


@pytest.fixture(autouse=True)
def kinds(monkeypatch):
    for name, cls in (("counting", Counting), ("fresh", Fresh)):
        monkeypatch.setitem(KINDS.built_in, name, Kind(name, f"{__name__}:{cls.__name__}"))
    monkeypatch.setattr(Counting, "calls", 0)


def caching(**changes: Any) -> CachingPool:
    Counting.release = asyncio.Event()
    workers = tuple(
        WorkerSpec(name=name, kind=kind, description="for tests", max_concurrency=64)
        for name, kind in (("a", "counting"), ("b", "counting"), ("fresh", "fresh"))
    )
    return CachingPool(open_live_pool(Pool(name="p", workers=workers)), **changes)


def ask(pool: CachingPool, text: str, worker: str = "a", visible: tuple[Visible, ...] = ()):
    return pool.call(Action(worker, {"text": text}), visible)


def seen(value: object, worker: str = "a", step: int = 1) -> tuple[Visible, ...]:
    return (Visible(step, worker, Observation(Status.OK, value)),)


def test_an_equal_call_is_not_made_twice():
    async def twice():
        pool = caching()
        return await ask(pool, "x"), await ask(pool, "x"), pool.hits

    first, second, hits = asyncio.run(twice())
    assert (first.value, second.value, hits, Counting.calls) == (1, 1, 1, 1)
    assert second.ok and second.latency_s == 0.0


def test_what_must_be_asked_anew_is():
    async def twice():
        pool = caching()
        return [await ask(pool, "x", "fresh") for _ in range(2)], pool.hits

    assert [each.value for each in asyncio.run(twice())[0]] == [1, 2]


def test_the_key_is_worker_arguments_and_what_the_call_may_see():
    failed = (Visible(1, "a", Observation.failure(Status.TIMEOUT, "timeout", "too late")),)
    views = [(), seen("1"), seen(1), seen(1, worker="b"), seen([1]), seen({"a": 1}), seen(None), failed]

    async def each_twice():
        pool = caching()
        calls = [("x", "a", view) for view in views] + [("y", "a", ()), ("x", "b", ())]
        values = [[(await ask(pool, *call)).value for call in calls] for _ in range(2)]
        return values, pool.hits, len(calls)

    (first, second), hits, count = asyncio.run(each_twice())
    assert first == list(range(1, count + 1)) and second == first and hits == count


def test_a_call_under_way_is_shared():
    async def together():
        pool = caching()
        calls = [asyncio.create_task(ask(pool, "wait")) for _ in range(20)]
        await asyncio.sleep(0.01)
        Counting.release.set()
        return await asyncio.gather(*calls), pool.hits

    found, hits = asyncio.run(together())
    assert {each.value for each in found} == {1} and (Counting.calls, hits) == (1, 19)


def test_a_failure_is_neither_kept_nor_shared():
    async def together():
        pool = caching()
        calls = [asyncio.create_task(ask(pool, "wait and fail")) for _ in range(3)]
        await asyncio.sleep(0.01)
        Counting.release.set()
        found = await asyncio.gather(*calls)
        return [*found, await ask(pool, "wait and fail")], pool.hits

    found, hits = asyncio.run(together())
    assert [each.error.code for each in found] == ["broken"] * 4 and (Counting.calls, hits) == (4, 0)


def test_a_malformed_call_is_told_as_without_a_cache():
    async def calls():
        pool = caching()
        return [await pool.call(Action("a", {})), await pool.call(Action("nobody", {}))]

    assert [each.error.code for each in asyncio.run(calls())] == ["bad_arguments", "unknown_worker"]


def test_who_waits_for_a_call_that_was_cancelled_makes_its_own():
    async def cancelled():
        pool = caching()
        first = asyncio.create_task(ask(pool, "wait"))
        second = asyncio.create_task(ask(pool, "wait"))
        await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.sleep(0.01)
        Counting.release.set()
        return await second, first.cancelled()

    found, was_cancelled = asyncio.run(cancelled())
    assert found.value == 2 and was_cancelled


def test_a_waiting_call_that_is_cancelled_leaves_the_other_alone():
    async def cancelled():
        pool = caching()
        first = asyncio.create_task(ask(pool, "wait"))
        second = asyncio.create_task(ask(pool, "wait"))
        await asyncio.sleep(0.01)
        second.cancel()
        await asyncio.sleep(0.01)
        Counting.release.set()
        return await first, second.cancelled()

    found, was_cancelled = asyncio.run(cancelled())
    assert found.value == 1 and was_cancelled and Counting.calls == 1


def test_calls_that_are_cancelled_together_all_end():
    async def cancelled():
        pool = caching()
        calls = [asyncio.create_task(ask(pool, "wait")) for _ in range(3)]
        await asyncio.sleep(0.01)
        for each in calls:
            each.cancel()
        await asyncio.wait(calls, timeout=1)
        return [each.done() and each.cancelled() for each in calls]

    assert asyncio.run(cancelled()) == [True] * 3 and Counting.calls == 1


def test_the_oldest_entry_makes_room():
    async def three():
        pool = caching(max_entries=2)
        for text in ("x", "y", "z"):
            await ask(pool, text)
        return [(await ask(pool, text)).value for text in ("z", "y", "x")], pool.hits

    assert asyncio.run(three()) == ([3, 2, 4], 2)


def test_a_caching_pool_is_the_same_pool_to_everybody_else():
    async def both():
        pool = caching()
        started = []
        for _ in range(2):
            await pool.call(Action("a", {"text": "x"}), on_start=lambda: started.append(1))
        return pool.hash == pool.pool.hash, len(started)

    assert asyncio.run(both()) == (True, 2)


@pytest.mark.parametrize(("changes", "is_repeatable"), [({"temperature": 0}, True), ({}, False)])
def test_a_job_pays_once_for_equal_calls_of_a_greedy_model(changes, is_repeatable):
    spec = WorkerSpec(name="m", kind="chat", description="A model.", config={"model": "m", **changes})
    pool = CachingPool(open_live_pool(Pool(name="p", workers=(spec,))))
    assert pool.cache.records(pool.workers["m"]) == is_repeatable
