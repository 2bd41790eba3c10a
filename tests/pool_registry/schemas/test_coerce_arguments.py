"""Arguments whose types are right but for how they are written are read, and it is said how."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool_registry.actions import Action, Observation, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Limits, Pool
from pool_registry.schemas.coerce_arguments import coerce_arguments
from pool_registry.schemas.schema_check import SchemaCheck
from pool_registry.worker import WorkerSpec

SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "x": {"type": "number"},
        "b": {"type": "boolean"},
        "s": {"type": "string"},
        "o": {"type": "string", "default": None},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "list": {"type": "array", "items": {"$ref": "#/$defs/I"}},
        "inner": {"type": "object", "properties": {"k": {"type": "integer"}}},
    },
    "required": ["n"],
    "$defs": {"I": {"type": "integer"}},
}


@pytest.mark.parametrize(
    ("name", "written", "read"),
    [
        ("n", "5", 5),
        ("n", " -7 ", -7),
        ("x", "2.50", 2.5),
        ("x", "3", 3),
        ("x", "1e3", 1000.0),
        ("b", "true", True),
        ("b", "False", False),
        ("maybe", "4", 4),
        ("list", ["1", 2], [1, 2]),
        ("inner", {"k": "9"}, {"k": 9}),
    ],
)
def test_a_value_with_one_reading_is_read_and_said(name, written, read):
    coerced = coerce_arguments(SCHEMA, {name: written})
    assert coerced.arguments == {name: read} and type(coerced.arguments[name]) is type(read)
    assert len(coerced.notes) == 1 and coerced.notes[0].startswith(name) and "was read as" in coerced.notes[0]


@pytest.mark.parametrize(
    ("name", "written"),
    [("s", "5"), ("either", "5"), ("n", "5.5"), ("n", "five"), ("b", "yes"), ("b", "1"), ("x", "1,5"), ("x", "nan"),
     ("n", "٥"), ("unknown", "5"), ("n", True), ("s", 5), ("n", None)],
)  # fmt: skip
def test_nothing_is_guessed(name, written):
    coerced = coerce_arguments(SCHEMA, {name: written})
    assert coerced.arguments == {name: written} and not coerced.notes


def test_null_is_left_out_where_it_is_the_default():
    coerced = coerce_arguments(SCHEMA, {"n": 1, "o": None, "s": None})
    assert coerced.arguments == {"n": 1, "s": None}
    assert coerced.notes == ("o: null is its default and was left out",)


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "?"]), st.none() | st.text() | st.integers()))
def test_what_is_right_already_stays_right(arguments):
    check = SchemaCheck(SCHEMA)
    if check.accepts(arguments):
        coerced = coerce_arguments(SCHEMA, arguments)
        assert check.accepts(coerced.arguments)


UNITS = {"from_unit": "km", "to_unit": "m"}


def call(limits: Limits, **arguments: object) -> Observation:
    spec = WorkerSpec(name="to", kind="units", description="Converts.")

    async def once() -> Observation:
        async with live_pool(Pool(name="p", workers=(spec,), limits=limits)) as live:
            return await live.call(Action("to", arguments))

    return asyncio.run(once())


def test_a_call_goes_out_with_what_was_read_and_says_so():
    seen = call(Limits(), value="2", **UNITS)
    assert seen.ok and seen.notes == ('value: "2" was read as 2',)
    assert call(Limits(), value=2, **UNITS).notes == ()


def test_a_pool_can_refuse_arguments_of_another_type():
    seen = call(Limits(exact_arguments=True), value="2", **UNITS)
    assert seen.status is Status.PARSE_ERR and "value" in seen.error.message


def test_what_cannot_be_read_is_refused_as_it_was_written():
    seen = call(Limits(), value="two", **UNITS)
    assert seen.status is Status.PARSE_ERR and '"two"' in seen.error.message
