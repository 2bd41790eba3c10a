"""The pace of calls, in simulated time: no minute has more than it may, nothing goes out while the peer asks to wait,
and nobody is overtaken."""

from __future__ import annotations

import asyncio
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool_registry.calls.call_pace import CallPace
from tests.orchestrator.support.simulated_loop import simulate


def admit(rate: float | None, arrivals: list[float], pauses: list[tuple[float, float]] = []) -> list[float]:  # noqa: B006
    """When each of the calls that arrive is admitted, in seconds; a pause is (when it is asked for, how long)."""

    async def run() -> list[float]:
        pace, loop = CallPace(rate), asyncio.get_running_loop()
        for at, seconds in pauses:
            loop.call_at(at, pace.pause, seconds)

        async def call(at: float) -> float:
            await asyncio.sleep(at)
            await pace.admit()
            return loop.time()

        return list(await asyncio.gather(*(call(at) for at in arrivals)))

    return simulate(run())


moments = st.lists(st.floats(0, 200).map(lambda value: round(value, 1)), min_size=1, max_size=60)


@given(st.integers(1, 20), moments)
def test_no_minute_has_more_calls_than_the_rate_and_none_is_later_than_it_must_be(rate, arrivals):
    admitted = sorted(admit(rate, arrivals))
    for place, at in enumerate(admitted):
        assert place - bisect_left(admitted, at - 60.0 + 1e-6) < rate
    expected: list[float] = []
    for at in sorted(arrivals):
        expected.append(max(at, expected[-rate] + 60.0) if len(expected) >= rate else at)
    assert admitted == pytest.approx(expected)


@given(st.one_of(st.none(), st.integers(1, 20)), moments, st.lists(st.tuples(st.floats(0, 200), st.floats(0.1, 60))))
def test_nothing_goes_out_while_the_peer_asks_to_wait(rate, arrivals, pauses):
    for at in admit(rate, arrivals, pauses):
        assert not any(asked < at < asked + seconds - 1e-6 for asked, seconds in pauses)


@given(st.integers(1, 5), moments)
def test_calls_are_admitted_in_the_order_in_which_they_came(rate, arrivals):
    admitted = admit(rate, sorted(set(arrivals)))
    assert admitted == sorted(admitted)


def test_less_than_one_a_minute_is_one_in_several():
    assert admit(0.5, [0, 0, 0]) == pytest.approx([0, 120, 240])


def test_a_call_that_is_given_up_while_it_waits_takes_nobodys_place():
    async def run() -> float:
        pace = CallPace(1)
        await pace.admit()
        waiting = asyncio.create_task(pace.admit())
        await asyncio.sleep(1)
        waiting.cancel()
        await pace.admit()
        return asyncio.get_running_loop().time()

    assert simulate(run()) == pytest.approx(60)
