"""What a check of a value against a schema may take, with schemas and values at their limits: the validator holds
Python's lock, so a server answers nobody meanwhile."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import pytest

from pool_registry.schemas.result_outline import outline_result
from pool_registry.schemas.schema_check import SchemaCheck
from pool_registry.schemas.schema_size import SchemaTooLarge
from tests.trust.trials import count_trials

MOST_S = 0.1
TRIES = 5


def describe(**words: Any) -> dict[str, Any]:
    return {"type": "object", **words}


def describe_x(**words: Any) -> dict[str, Any]:
    return describe(properties={"x": words})


def nest(levels: int, inner: Any, name: str) -> Any:
    for _ in range(levels):
        inner = {name: inner}
    return inner


FIGURES = {f"p{k}": k for k in range(2500)}
PATTERNS = {f"^a{k}": {"type": "integer"} for k in range(2500)}
NAMES = {f"n{k}": k for k in range(200_000)}
CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "a schema in itself, often": (
        describe(properties={f"p{k}": {"$ref": "#"} for k in range(3000)}),
        nest(90, {}, "p1"),
    ),
    "a wide schema in itself": (
        describe(properties={"a": {"$ref": "#"}, **{name: {"type": "integer"} for name in FIGURES}}),
        nest(95, FIGURES, "a"),
    ),
    "anchors of one name": (
        describe(
            properties={f"q{k}": {"$ref": "#a"} for k in range(1200)},
            **{"$defs": {f"p{k}": {"$anchor": "a"} for k in range(2000)}},
        ),
        {},
    ),
    "many identities": (
        describe(**{"$defs": {f"p{k}": {"$id": f"http://a/{k}", "$ref": "#/x/y"} for k in range(1500)}}),
        {},
    ),
    "long pointers": (describe(properties={f"q{k}": {"$ref": "#/$defs/" + "a/" * 20} for k in range(1200)}), {}),
    "figures": (describe_x(items={"type": "integer"}), {"x": [1] * 490_000}),
    "lists": (describe_x(items={"type": "array"}), {"x": [[k] for k in range(240_000)]}),
    "texts": (describe_x(items={"pattern": "^a"}), {"x": ["ab"] * 490_000}),
    "names": (describe(propertyNames={"pattern": "^n"}), NAMES),
    "objects without names": (describe_x(items={"patternProperties": PATTERNS}), {"x": [{} for _ in range(9000)]}),
    "patterns of names": (describe(patternProperties=PATTERNS), {f"a{k}": 1 for k in range(100_000)}),
    "names beside each other": (describe_x(allOf=[{"properties": {"q": {}}}] * 3000), {"x": NAMES}),
    "wide items": (
        describe_x(items={"properties": {name: {} for name in FIGURES}}),
        {"x": [{f"q{k}": 1 for k in range(50)} for _ in range(9000)]},
    ),
    "choices": (describe_x(items={"anyOf": [{"type": "integer"}] * 4000}), {"x": ["a"] * 2400}),
    "values to choose": (describe_x(items={"enum": [{"a": k} for k in range(5000)]}), {"x": [{"a": -1}] * 900}),
    "required names": (
        describe_x(items={"required": list(FIGURES)}),
        {"x": [dict.fromkeys(list(FIGURES)[1:])] * 190},
    ),
    "equal items": (describe_x(uniqueItems=True), {"x": [{"a": [k]} for k in range(100_000)]}),
    "equal items, often": (describe_x(allOf=[{"uniqueItems": True}] * 17), {"x": [{"a": [k]} for k in range(160_000)]}),
    "patterns that look around": (describe(allOf=[{"pattern": rf"\w{{1,{80 + k}}}(?=a)"} for k in range(20)]), {}),
    "patterns of letters": (describe(allOf=[{"pattern": rf"\w{k}"} for k in range(1700)]), {"a": 1}),
    "a long text": (describe_x(pattern="^[a-z]+$"), {"x": "a" * 9_000_000}),
}


def lead_on(word: str) -> dict[str, Any]:
    """What a tool returns: objects that lead to the next one ten thousand times each."""
    definitions = {f"d{k}": {word: [{"$ref": f"#/$defs/d{k + 1}"}] * 10_000} for k in range(500)}
    return {"$ref": "#/$defs/d0", "$defs": definitions}


RETURNS = {
    "choices": lead_on("anyOf"),
    "parts": lead_on("allOf"),
    "names": {"allOf": [{"properties": NAMES}] * 400},
    "a long reference": {"allOf": [{"$ref": "#/" + "a/" * 500_000}] * 400},
}


def take_least(work: Callable[[], object]) -> float:
    """The least seconds of this thread that the work takes in a few tries."""
    gc.collect()
    tries = []
    for _ in range(TRIES):
        start = time.thread_time()
        work()
        tries.append(time.thread_time() - start)
        if min(tries) < MOST_S:
            break
    return min(tries)


def check_once(schema: dict[str, Any]) -> SchemaCheck | None:
    try:
        return SchemaCheck(schema)
    except (SchemaTooLarge, ValueError):
        return None


@pytest.mark.medium
@pytest.mark.parametrize("name", CASES)
def test_a_check_ends_before_another_client_notices(name: str):
    schema, value = CASES[name]
    assert take_least(lambda: check_once(schema)) < MOST_S
    count_trials()
    check = check_once(schema)
    if check is None:
        return
    assert take_least(lambda: check.accepts(value)) < MOST_S
    count_trials()
    if not check.accepts(value):
        assert take_least(lambda: check.explain(value, "arguments")) < MOST_S
        count_trials()


@pytest.mark.parametrize("name", RETURNS)
def test_what_a_tool_returns_is_outlined_before_another_client_notices(name: str):
    assert take_least(lambda: outline_result(RETURNS[name])) < MOST_S
    count_trials()
