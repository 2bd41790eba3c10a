"""Answers in words: named after the calls that were made, with declared units only, and no JSON that a person reads."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import StepEnded, StepStarted, TurnStarted, TurnTaken
from orchestrator.plan import Step, Turn
from orchestrator.presentation.present_answer import present_answer
from orchestrator.presentation.units import find_described_unit, split_unit
from orchestrator.presentation.values import write_lines, write_number
from orchestrator.quotes import references, substitute
from pool_registry.actions import JsonValue, Observation, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from tests.orchestrator.support.endpoint import agent

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


def function(name: str, description: str = "A function.") -> WorkerSpec:
    return WorkerSpec(name=name, kind="function", description=description, config={"target": "shop.py:f"})


POOL = Pool(
    name="shop",
    workers=(
        function("postage"),
        function("is_open"),
        function("get_stock"),
        function("walk", "How long a walk is in kilometers."),
        function("to_miles"),
        WorkerSpec(name="calculator", kind="calculator", description="Sums."),
        WorkerSpec(name="units", kind="units", description="Converts."),
        WorkerSpec(name="calendar", kind="calendar", description="Days."),
        agent("ada", "http://127.0.0.1:1"),
    ),
)  # fmt: skip
OSLO = {"city": "Oslo", "kg": 4}


def present(template: JsonValue, *calls: tuple[str, dict[str, Any], JsonValue]) -> str:
    """What a person reads for a plan of these calls, each with its arguments and output; None is a failed one."""
    steps = tuple(Step(k, worker, arguments) for k, (worker, arguments, _) in enumerate(calls, 1))
    episode = Episode("e")
    episode.apply(TurnStarted(1, 0.0))
    episode.apply(TurnTaken(1, Turn(steps, template), 0.1))
    for step, (_, arguments, value) in zip(steps, calls, strict=True):
        episode.apply(StepStarted(step.id, 0.2, arguments))
        failed = Observation.failure(Status.EXEC_ERR, "not_there", "there is no such town", 0.1)
        episode.apply(StepEnded(step.id, failed if value is None else Observation(Status.OK, value), 0.3))
    values = {k: value for k, (_, _, value) in enumerate(calls, 1) if value is not None}

    async def write() -> str:
        async with live_pool(POOL) as pool:
            return present_answer(episode, substitute(template, values), pool)

    return asyncio.run(write())


@pytest.mark.parametrize(
    ("template", "calls", "text"),
    [
        ("$1", [("calculator", {"expression": "1 / 3"}, 1 / 3)], "≈ 0.3333"),
        ("$1", [("get_stock", {"item": "rye loaf"}, 12)], "Get stock (rye loaf): 12"),
        ("$1", [("walk", {"to": "the lake"}, 12345.0)], "Walk (the lake): 12,345 km"),
        ("$1", [("is_open", {"day": "Sunday"}, False)], "Is open (Sunday): No"),
        ("$1", [("is_open", {"day": "Sunday"}, 1)], "Is open (Sunday): 1"),
        ("$1", [("calendar", {"request": "days from 2026-03-31 to 2026-12-25"}, 269)],
         "Days from 2026-03-31 to 2026-12-25: 269"),
        ("$1", [("units", {"value": 10, "from_unit": "kg", "to_unit": "pound"}, 22.046226218487757)], "≈ 22.05 pounds"),
        ("$1", [("to_miles", {"miles": 3}, 3)], "To miles (3): 3"),
        ("$1", [("postage", OSLO, {**OSLO, "euros": 19.9})], "Postage (Oslo, 4): 19.9 euros"),
        ("$1", [("postage", OSLO, '{"price": 19.9, "currency": "EUR"}')], "Postage (Oslo, 4): price: 19.9 EUR"),
        ("$1.price", [("postage", OSLO, {"price": 19.9})], "Postage (Oslo, 4), price: 19.9"),
        ("$1 and $2", [("postage", OSLO, {"days": 1}), ("get_stock", {}, ["rye", "spelt"])],
         "Postage (Oslo, 4): 1 day\nGet stock: rye, spelt"),
        ("It costs $1 euros.", [("calculator", {"expression": "x"}, 1234567.125)], "It costs 1,234,567.125 euros."),
        ("$1", [("get_stock", {}, [{"name": "rye", "left": 2}, {"name": "spelt", "left": 3}])],
         "Get stock:\n- rye: left: 2\n- spelt: left: 3"),
        ("$1", [("ada", {"instruction": "x"}, "The bakery opens at 7.")], "The bakery opens at 7."),
        ("$2", [("get_stock", {"item": "rye"}, 2), ("calculator", {"expression": "1"}, 1)], "1"),
        ("$1", [("calculator", {"expression": "1"}, 1), ("postage", {"city": "Atlantis"}, None)],
         "1\nNot answered: postage: there is no such town"),
        (True, [], "Yes"),
        ("Hello $$5", [], "Hello $5"),
    ],
)  # fmt: skip
def test_an_output_is_named_after_the_call_that_was_made(template, calls, text):
    assert present(template, *calls) == text


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (15499478, "", "15,499,478"), (100234, "", "100234"), (100234, "euros", "100,234 euros"), (112.0, "", "112"),
        (114.82939999999999, "feet", "114.8294 feet"), (-1.2412133791659035, "", "≈ -1.241"), (1, "days", "1 day"),
        (0.0003, "", "0.0003"), (1.5e-9, "", "1.5e-09"), (0.1 + 0.2, "", "0.3"), (float("nan"), "", "nan"),
    ],
)  # fmt: skip
def test_a_number_has_few_figures_and_says_where_it_is_rounded(number, unit, text):
    assert write_number(number, unit) == text


@settings(deadline=None)
@given(st.floats(-1e300, 1e300))
def test_a_rounded_number_is_close_and_the_others_are_exact(number):
    text = write_number(number)
    written = float(text.removeprefix("≈ ").replace(",", ""))
    assert written == pytest.approx(number, rel=6e-4 if text.startswith("≈") else 1e-9, abs=0)


def test_a_unit_is_read_only_where_somebody_declares_it():
    assert split_unit("distance_km") == ("distance", "km") and split_unit("deliveryDays") == ("delivery", "days")
    for name in ("price_per_kg", "sales_last_30_days", "birth_year", "capital"):
        assert split_unit(name)[1] == "", name
    assert find_described_unit("Distance in kilometers between two towns") == "km"
    assert find_described_unit("Price (EUR)") == "EUR"
    for text in ("Price in euros of a parcel of some kilograms", "How many days", "Price in euros per kg"):
        assert find_described_unit(text) == "", text


@settings(deadline=None)
@given(JSON)
def test_any_value_can_be_written(value):
    assert all(isinstance(line, str) for line in write_lines(value)) and write_lines(value)


@settings(deadline=None, max_examples=15)
@given(JSON.filter(lambda value: value is not None), JSON)
def test_any_output_and_any_answer_can_be_presented(value, answer):
    assert isinstance(present("$1", ("postage", {"x": answer}, value)), str)
    if references(answer) <= {1}:  # the engine refuses others
        assert isinstance(present(answer, ("postage", {}, value)), str)
