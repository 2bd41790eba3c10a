"""What a grammar has no word for is held to in other words, never more loosely than the schema says."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from llguidance import LLMatcher

from orchestrator.grammars.held_schema import hold_schema

NAMES = st.sampled_from(["a", "b", "kind"])
SCALARS = st.sampled_from([0, 1, 2, 7, 0.5, "x", "y", "xy", "x-]", "", True, False, None, [], {}])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])


def draw_rules(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.lists(NAMES, unique=True, min_size=1, max_size=2)
    forms = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES, "const": SCALARS, "enum": st.lists(SCALARS, min_size=1, max_size=4), "minimum": st.just(1),
            "maxLength": st.just(0), "minItems": st.just(2), "required": names, "not": inner, "if": inner,
            "properties": st.dictionaries(NAMES, inner, max_size=2), "then": inner, "else": inner,
            "dependentRequired": st.dictionaries(NAMES, names, max_size=2), "contains": inner, "items": inner,
            "dependentSchemas": st.dictionaries(NAMES, inner, max_size=2), "oneOf": forms, "anyOf": forms,
            "propertyNames": st.sampled_from([{"enum": ["a", "kind"]}, {"pattern": "^k"}]),
            "additionalProperties": inner, "unevaluatedProperties": st.just(False), "uniqueItems": st.booleans(),
        },
    )  # fmt: skip


SCHEMAS = st.recursive(st.booleans() | st.fixed_dictionaries({"type": TYPES}), draw_rules, max_leaves=8)


@given(schema=SCHEMAS, value=VALUES)
def test_what_the_held_schema_takes_the_original_takes(schema: Any, value: Any):
    assume(isinstance(schema, dict))
    held = hold_schema(schema)
    if not held.unheld and jsonschema_rs.is_valid(held.schema, value):
        assert jsonschema_rs.is_valid(schema, value), json.dumps(held.schema)


KIND = {"enum": ["card", "cash"]}
NUMBER = {"type": "integer"}


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"enum": ["a", "b"], "not": {"const": "a"}}, ["b"], ["a"]),
        ({"properties": {"a": NUMBER}, "not": {"required": ["a"]}}, [{}], [{"a": 1}]),
        ({"type": "string", "not": {"enum": ["", "n/a", "a-]"]}}, ["n", "a", "n/ab", "a-", "b\n"], ["", "n/a", "a-]"]),
        ({"type": "integer", "not": {"enum": [0, 7]}}, [-1, 3, 8], [0, 7]),
        ({"type": ["boolean", "string", "null"], "not": {"enum": [None, "x", True]}}, [False, "y"], [None, "x", True]),
        ({"not": {"anyOf": [{"type": "string"}, {"minimum": 5}]}}, [1], ["x", 6, True]),
        ({"type": "integer", "not": {"not": {"minimum": 5}}}, [5], [1]),
        ({"type": "integer", "not": {"allOf": [{"minimum": 3}, {"maximum": 5}]}}, [2, 6], [3, 5]),
        (
            {"properties": {"kind": KIND}, "required": ["kind"],
             "if": {"properties": {"kind": {"const": "card"}}}, "then": {"required": ["a"]}},
            [{"kind": "cash"}, {"kind": "card", "a": 1}], [{"kind": "card"}],
        ),
        ({"dependentRequired": {"a": ["b"]}}, [{}, {"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
        ({"dependencies": {"a": ["b"]}, "$schema": "http://json-schema.org/draft-07/schema#"}, [{}], [{"a": 1}]),
        ({"type": "array", "contains": {"const": 1}}, [[1, 2]], [[], [2]]),
        ({"items": [{"const": 1}], "additionalItems": False, "$schema": "http://json-schema.org/draft-07/schema#"},
         [[1]], [[2], [1, 1]]),
        ({"propertyNames": {"pattern": "^k"}, "additionalProperties": NUMBER}, [{"k": 1}], [{"a": 1}, {"k": "x"}]),
        ({"properties": {"a": NUMBER}, "unevaluatedProperties": False}, [{"a": 1}], [{"b": 1}]),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, [{"a": 1}, {"b": 1}], [{}, {"a": 1, "b": 1}]),
        ({"$dynamicRef": "#n", "$defs": {"n": {"$dynamicAnchor": "n", "type": "integer"}}}, [1], ["x"]),
    ],
)  # fmt: skip
def test_a_word_that_a_grammar_lacks_is_written_in_others(schema: dict[str, Any], right: list, wrong: list):
    held = hold_schema(schema)
    assert held.unheld == ()
    for value in right:
        assert jsonschema_rs.is_valid(held.schema, value), (held.schema, value)
    for value in wrong:
        assert not jsonschema_rs.is_valid(held.schema, value), (held.schema, value)
    assert not list_warnings(held.schema)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "array", "uniqueItems": True}, ("uniqueItems",)),
        ({"type": "string", "pattern": "^(?!x)a+$"}, ("pattern",)),
        ({"patternProperties": {"(?<=a)b": NUMBER}, "additionalProperties": False}, ("patternProperties",)),
        ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, ("oneOf",)),
        ({"not": {"pattern": "^a"}}, ("not",)),
        ({"contains": {"const": 1}, "maxContains": 1}, ("contains",)),
        ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, ("unevaluatedProperties",)),
    ],
)
def test_what_no_grammar_holds_is_named_and_left_out(schema: dict[str, Any], words: tuple[str, ...]):
    held = hold_schema(schema)
    assert held.unheld == words
    assert not list_warnings(held.schema)


def test_a_plain_schema_stays_as_it_is():
    schema = {"type": "object", "properties": {"a": {"anyOf": [NUMBER, {"type": "null"}]}}, "required": ["a"]}
    assert hold_schema(schema).schema == schema


def list_warnings(schema: object) -> list[str]:
    """What the grammar's compiler cannot do of a schema."""
    assert isinstance(schema, dict)
    text = json.dumps({**schema, "x-guidance": {"lenient": True}})
    failed, messages = LLMatcher.validate_grammar_with_warnings(
        LLMatcher.grammar_from_lark(f"%llguidance {{}}\nstart: %json {text}\n")
    )
    return list(messages) if failed or messages else []
