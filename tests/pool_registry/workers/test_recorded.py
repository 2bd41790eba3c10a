"""The worker of a data set: equal calls get the recorded answer, others fail or come back with a label."""

from __future__ import annotations

import asyncio

import pytest

from pool_registry.actions import Action, Observation
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

SCHEMA = {"type": "object", "properties": {"item": {"type": "string"}, "unit": {"default": "packet"}, "n": {}}}
REPLIES = [{"arguments": {"item": "tea", "n": 2}, "output": {"stock": 12}}]


def call(arguments: dict, echoes: bool = False) -> Observation:
    config = {"tool": "get.stock", "parameters": SCHEMA, "replies": REPLIES, "echoes": echoes}
    spec = WorkerSpec(name="stock", kind="recorded", description="Stock.", config=config)

    async def run() -> Observation:
        async with live_pool(Pool(name="shop", workers=(spec,))) as live:
            return await live.call(Action("stock", arguments))

    return asyncio.run(run())


@pytest.mark.parametrize(
    "arguments",
    [{"item": "tea", "n": 2}, {"item": " Tea", "n": 2.0, "unit": "packet"}, {"n": 2, "item": "tea", "unit": None}],
)
def test_an_equal_call_gets_the_recorded_answer(arguments):
    assert call(arguments).value == {"stock": 12}


def test_another_call_fails_and_says_which_ones_are_recorded():
    observation = call({"item": "oil"})
    assert observation.error.code == "not_recorded" and '{"item": "tea", "n": 2}' in observation.error.message


def test_where_calls_have_no_answers_another_call_comes_back_with_a_label():
    echo = call({"item": "oil", "unit": "packet", "n": None}, echoes=True)
    assert echo.value == 'recorded call get.stock {"item": "oil"}'
    assert call({"item": "tea", "n": 2}, echoes=True).value == {"stock": 12}
