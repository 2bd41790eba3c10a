"""Schemas with words that grammars lack: held in other words, and told again in words where that is not possible."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from tests.studio.model_server.test_answer_form import ask, endpoint, home, local, model

__all__ = ["endpoint", "home", "local", "model"]

KINDS = {"kind": {"enum": ["card", "cash"]}}
WHOLE = {"type": "integer"}
HELD: dict[str, dict[str, Any]] = {
    "not": {"properties": {"a": {"enum": ["x", "y"], "not": {"const": "x"}}}, "required": ["a"]},
    "not a text": {
        "properties": {"a": {"type": "string", "maxLength": 3, "not": {"enum": ["", "n/a"]}}}, "required": ["a"],
    },
    "not a number": {"properties": {"a": {"type": "integer", "minimum": 0, "not": {"const": 0}}}, "required": ["a"]},
    "if": {
        "properties": {**KINDS, "n": WHOLE}, "required": ["kind"], "additionalProperties": False,
        "if": {"properties": {"kind": {"const": "cash"}}}, "then": {"required": ["n"]},
        "else": {"not": {"required": ["n"]}},
    },
    "patternProperties": {"patternProperties": {"^x": WHOLE}, "additionalProperties": False, "minProperties": 1},
    "propertyNames": {"propertyNames": {"pattern": "^x"}, "minProperties": 1, "additionalProperties": WHOLE},
    "contains": {
        "properties": {
            "a": {"type": "array", "items": {"enum": ["p", "q"]}, "contains": {"const": "q"}, "maxItems": 3}
        },
        "required": ["a"],
    },
    "dependentRequired": {
        "properties": {"a": WHOLE, "b": WHOLE}, "required": ["a"], "dependentRequired": {"a": ["b"]},
        "additionalProperties": False,
    },
    "dependencies": {
        "$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": WHOLE, "b": WHOLE},
        "required": ["a"], "dependencies": {"a": ["b"]}, "additionalProperties": False,
    },
    "unevaluatedProperties": {"properties": {"a": WHOLE}, "required": ["a"], "unevaluatedProperties": False},
    "oneOf": {
        "oneOf": [{"properties": {"a": WHOLE}, "required": ["a"]}, {"properties": {"b": WHOLE}, "required": ["b"]}]
    },
    "$dynamicRef": {
        "properties": {"a": {"$dynamicRef": "#word"}}, "required": ["a"],
        "$defs": {"word": {"$dynamicAnchor": "word", "type": "string", "maxLength": 4}},
    },
}  # fmt: skip
TAGS = {"type": "array", "uniqueItems": True}
UNIQUE = {"type": "object", "properties": {"a": TAGS | {"minItems": 2}}, "required": ["a"]}


@pytest.mark.medium
@pytest.mark.parametrize("word", HELD)
def test_a_local_model_is_held_to_a_word_that_its_grammar_lacks(local, word):
    """The model knows nothing: what it writes fits by construction alone."""
    schema = {"type": "object", **HELD[word]}
    answer = ask(local, "Tell me about it.", schema)
    assert answer.status_code == 200, answer.text
    jsonschema_rs.validate(schema, json.loads(answer.json()["choices"][0]["message"]["content"]))


def test_an_entry_that_stands_twice_where_each_stands_once_is_dropped(endpoint, model, monkeypatch):
    monkeypatch.setattr(model, "write_schema", lambda _: '{"a": [3, 1, 3, true], "b": [2, 2]}')
    schema = {"type": "object", "properties": {"a": TAGS | {"minItems": 3}, "b": TAGS}}
    answer = ask(endpoint, "say three", schema)
    assert answer.json()["choices"][0]["message"]["content"] == '{"a": [3, 1, true], "b": [2]}'


def test_what_cannot_be_held_is_told_in_words_until_it_fits(endpoint, model, monkeypatch):
    replies = iter(['{"a": [3, 3]}', '{"a": [4, 4]}', '{"a": [3, 4]}'])
    monkeypatch.setattr(model, "write_schema", lambda _: next(replies))
    answer = ask(endpoint, "say three and four", UNIQUE)
    assert answer.json()["choices"][0]["message"]["content"] == '{"a": [3, 4]}'
    instruction = model.bodies[-1]["messages"][-1]["content"]
    assert "Your try: " in instruction and "It did not fit: a: no entry may stand in this list twice" in instruction


def test_after_a_few_tries_the_error_names_what_no_model_can_be_held_to(endpoint, model, monkeypatch):
    monkeypatch.setattr(model, "write_schema", lambda _: '{"a": [3, 3]}')
    before = len(model.bodies)
    answer = ask(endpoint, "say three twice", UNIQUE)
    assert answer.status_code == 422 and len(model.bodies) - before <= 6
    message = answer.json()["error"]["message"]
    assert "a: no entry may stand in this list twice. A model can be told of `uniqueItems` in this schema" in message
