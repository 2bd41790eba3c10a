"""Entries in the form of bfcl-eval become pools, and what is planned on them goes to its checker in its own form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from bench.bfcl import (
    IRRELEVANCE,
    KIND,
    BenchmarkFunction,
    Entry,
    Outcome,
    draw_entries,
    judge,
    keep_row,
    make_entry,
    make_pool,
    name_error,
    run_entry,
)
from pool_registry.kinds import KINDS, add_kind

PERSON = {"type": "dict", "properties": {"name": {"type": "string"}, "age": {"type": "any"}}, "required": ["name"]}
FUNCTIONS = [
    {
        "name": "Bakery.orderBread",
        "description": "Order bread.",
        "parameters": {
            "type": "dict",
            "properties": {
                "loaves": {"type": "integer"},
                "weight": {"type": "float", "default": 0.5},
                "note": {"type": "string", "enum": ["sliced", "for $1"]},
                "customer": PERSON,
                "guests": {"type": "array", "items": PERSON},
            },
            "required": ["loaves"],
        },
    },
    {
        "name": "bakery.order_bread",
        "description": "Order bread from another bakery.",
        "parameters": {"type": "dict", "properties": {"type": {"type": "tuple"}}, "required": []},
    },
]
ANSWERS = [
    {
        "Bakery.orderBread": {
            "loaves": [2, "two"],
            "weight": ["", 0.5],
            "note": ["for $1"],
            "customer": [{"name": ["Ada"], "age": [36, ""]}],
            "guests": [[{"name": ["Bo", "B."], "age": [""]}]],
            "unknown": ["", 3],
        }
    },
    {"Bakery.orderBread": {"loaves": [5], "note": ["whole"]}},
    {"bakery.order_bread": {"type": [""]}},
]


@pytest.fixture(autouse=True)
def _benchmark_kind() -> Iterator[None]:
    add_kind(KIND, BenchmarkFunction)
    yield
    del KINDS.built_in[KIND]


def write_entry(category: str, answers: list[Any]) -> Entry:
    row = {"id": "0", "question": [[{"role": "user", "content": "Two loaves, please."}]], "function": FUNCTIONS}
    return make_entry(category, row, answers)


def run(name: str, entry: Entry) -> Outcome:
    return asyncio.run(run_entry(name, entry, lambda functions, calls, answers, category: "judged"))


def test_functions_become_workers_with_json_schemas():
    first, second = make_pool(write_entry("parallel", ANSWERS)).workers
    assert (first.name, second.name) == ("bakery_order_bread", "bakery_order_bread_2")
    schema = first.config["parameters"]
    person = {"type": "object", "properties": {"name": {"type": "string"}, "age": {}}, "required": ["name"]}
    assert schema["type"] == "object" and schema["required"] == ["loaves"]
    assert schema["properties"]["weight"] == {"type": "number", "default": 0.5}
    assert schema["properties"]["customer"] == person and schema["properties"]["guests"]["items"] == person
    assert second.config["parameters"]["properties"] == {"type": {"type": "array"}}, "a parameter called type is none"


def test_planned_calls_have_the_names_and_values_of_the_package():
    outcome = run("oracle", write_entry("parallel", ANSWERS))
    assert outcome.problem == "judged" and outcome.readable
    assert outcome.calls == [
        {
            "Bakery.orderBread": {
                "loaves": 2,
                "weight": 0.5,
                "note": "for $1",
                "customer": {"name": "Ada", "age": 36},
                "guests": [{"name": "Bo"}],
            }
        },
        {"Bakery.orderBread": {"loaves": 5, "note": "whole"}},  # its schema has no such note: planned, and not made
        {"bakery.order_bread": {}},
    ]


def test_nothing_may_be_called_where_no_function_fits():
    entry = write_entry(IRRELEVANCE, [])
    assert run("oracle", entry).problem == ""
    random = run("random_plan", entry)
    assert random.calls and random.problem == "called something"


def test_an_error_is_named_where_one_call_was_compared():
    compared = [{f"Model Result Index {k}": {"sub_error_type": "value_error:string"}} for k in range(2)]
    verdict = {"error_type": "parallel_function_checker_no_order:cannot_find_match", "error": ["No match.", *compared]}
    assert name_error(verdict) == "cannot_find_match"
    assert name_error({**verdict, "error": verdict["error"][:2]}) == "value_error:string"
    assert name_error({"error_type": "multiple_function_checker:wrong_count", "error": ["Two."]}) == "wrong_count"


def test_an_orchestrator_that_fails_is_not_right_to_call_nothing():
    parameters = {"type": "dict", "properties": {"size": {"type": "integer", "enum": ["S"]}}, "required": ["size"]}
    function = {"name": "order", "description": "Order a shirt.", "parameters": parameters}
    outcome = run("random_plan", Entry("0", IRRELEVANCE, "What is a shirt?", (function,)))
    assert not outcome.calls and outcome.problem == "failed"


@pytest.mark.parametrize(("count", "problem"), [(0, "called nothing"), (2, "too few calls"), (4, "too many calls")])
def test_a_wrong_number_of_calls_is_said_in_words(count, problem):
    entry = write_entry("parallel", ANSWERS)
    assert judge(entry, [{}] * count, lambda *_: "wrong_count") == problem


def test_more_tasks_contain_the_fewer():
    entries = [Entry(str(k), "multiple", "", ()) for k in range(20)]
    assert draw_entries(entries, 12, seed=1)[:5] == draw_entries(entries, 5, seed=1) != entries[:5]


def test_a_row_takes_the_place_of_its_like(tmp_path):
    path = tmp_path / "bfcl.json"
    for category, right in (("multiple", 0.1), ("parallel", 0.2), ("multiple", 0.3)):
        keep_row(path, {"orchestrator": "oracle", "category": category, "right": right})
    rows = json.loads(path.read_text())["rows"]
    assert [(row["category"], row["right"]) for row in rows] == [("parallel", 0.2), ("multiple", 0.3)]
