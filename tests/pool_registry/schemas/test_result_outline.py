"""What is kept of the schema of a result: the fields that a plan can quote."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool_registry.schemas.result_outline import FIELD_NAME, MAX_DEPTH, outline_result

KEYS = st.sampled_from(["type", "properties", "items", "allOf", "anyOf", "$ref", "a", "b-c", "$defs"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["object", "array", "#/a", "#/properties/a", "#"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=25,
)
PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}, "boss": {"$ref": "#/$defs/P"}}}


@pytest.mark.parametrize(
    ("schema", "outline"),
    [
        ({"type": "number", "minimum": 0}, {"type": "number"}),
        ({}, {}),
        ({"type": ["string", "null"]}, {}),
        (
            {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"a": {"type": "string"}}}]},
            {"type": "object", "properties": {"a": {"type": "string"}}},
        ),
        ({"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {"type": "string"}}),
        (
            {"properties": {"with space": {}, "$x": {}, "fine_1": {"type": "integer"}}},
            {"type": "object", "properties": {"fine_1": {"type": "integer"}}},
        ),
        (
            {
                "allOf": [{"properties": {"a": {"type": "string"}}}, {"$ref": "#/$defs/B"}],
                "$defs": {"B": {"properties": {"b": {"type": "number"}}}},
            },
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}}},
        ),
    ],
)
def test_fields_and_types_are_kept_and_rules_are_not(schema: dict[str, Any], outline: dict[str, Any]):
    assert outline_result(schema) == outline


def test_what_refers_to_itself_ends():
    schema = {"$ref": "#/$defs/P", "$defs": {"P": PERSON}}
    node, depth = outline_result(schema), 0
    while "properties" in node:
        assert node["properties"]["name"] == {"type": "string"}  # type: ignore[index,call-overload]
        node, depth = node["properties"]["boss"], depth + 1  # type: ignore[index,call-overload,assignment]
    assert depth == MAX_DEPTH


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"items": {"$ref": "#"}},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"properties": {f"f{k}": {"$ref": "#"} for k in range(500)}},
    ],
)
def test_a_schema_that_grows_without_end_is_left_early(schema: dict[str, Any]):
    assert len(str(outline_result(schema))) < 200_000


@given(JSON)
def test_any_value_gives_an_outline_with_names_that_plans_can_quote(schema: Any):
    waiting: list[tuple[Any, int]] = [(outline_result(schema), 0)]
    while waiting:
        node, depth = waiting.pop()
        assert isinstance(node, dict) and node.keys() <= {"type", "properties", "items"} and depth <= MAX_DEPTH
        assert all(FIELD_NAME.fullmatch(name) for name in node.get("properties", {}))
        waiting += [(part, depth + 1) for part in node.get("properties", {}).values()]
        waiting += [(node["items"], depth + 1)] if "items" in node else []
