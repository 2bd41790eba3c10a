"""Argument schemas as people have them become schemas that can be used, and what was changed is said."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pool_registry.schemas.argument_schema import schema_problem
from pool_registry.schemas.mend_schema import MendedSchema, mend_schema
from pool_registry.schemas.type_names import read_type_name


def mend_argument(rule: object, **more: object) -> tuple[object, tuple[str, ...]]:
    mended = mend_schema({"type": "object", "properties": {"a": rule}, **more})
    assert not mended.problem
    properties = mended.schema["properties"]
    assert isinstance(properties, dict)
    return properties["a"], mended.notes


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("Dict", {"type": "object"}),
        ("FLOAT", {"type": "number"}),
        ("String", {"type": "string"}),
        ("int", {"type": "integer"}),
        ("tuple", {"type": "array"}),
        ("Any", {}),
        ("list[str]", {"type": "array", "items": {"type": "string"}}),
        ("List[Dict[str, int]]", {"type": "array", "items": {"type": "object"}}),
        ("ArrayList", {"type": "array"}),
        ("string[]", {"type": "array", "items": {"type": "string"}}),
        ("Optional[int]", {"type": ["integer", "null"]}),
        ("str | None", {"type": ["string", "null"]}),
        ("Union[int, str]", {"type": ["integer", "string"]}),
        ("int or float", {"type": ["integer", "number"]}),
        ("bool?", {"type": ["boolean", "null"]}),
        ("Optional[list[float]]", {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}]}),
        ("ticker", None),
        ("", None),
    ],
)
def test_types_are_read_by_any_name(name, rule):
    assert read_type_name(name) == rule


@pytest.mark.parametrize(
    ("rule", "mended", "note"),
    [
        ({"type": ["String", "None"]}, {"type": ["string", "null"]}, "None was read as null"),
        ({"type": {"type": "int"}}, {"type": "integer"}, "int was read as integer"),
        ({"type": [{"type": "int"}, "str"]}, {"type": ["integer", "string"]}, "int was read"),
        ("float", {"type": "number"}, "float was read as number"),
        (None, {}, ""),
        ({"type": "int", "minLength": "5", "maximum": "9.5"}, {"type": "integer", "minLength": 5, "maximum": 9.5}, ""),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}, ""),
        ({"type": "integer", "divisibleBy": 2}, None, None),
        ({"type": "STRING", "nullable": True}, {"type": ["string", "null"]}, ""),
        ({"items": [{"type": "int"}]}, {"prefixItems": [{"type": "integer"}]}, "int was read"),
        ({"enum": None}, {}, "enum, which was null, is left out"),
        ({"enum": "one", "type": "str"}, {"enum": ["one"], "type": "string"}, ""),
        ({"pattern": "("}, {}, 'pattern "(" is left out'),
        ({"$ref": "#/nowhere"}, {}, "which is not there"),
        ({"description": 3, "type": "str"}, {"description": "3", "type": "string"}, ""),
        ({"additionalProperties": "false", "type": "dict"}, {"additionalProperties": False, "type": "object"}, ""),
        ({"type": "dict", "properties": [{"name": "x", "type": "int"}]}, None, "by the names in it"),
    ],
)
def test_a_part_is_translated_or_left_out_with_a_note(rule, mended, note):
    read, notes = mend_argument(rule)
    if mended is not None:
        assert read == mended
    elif note is not None:
        assert read == {"type": "object", "properties": {"x": {"type": "integer"}}}
    else:
        assert read == rule and not notes  # a keyword that the validator does not know restricts nothing
    assert not note or any(note in line for line in notes), notes


def test_fields_that_say_themselves_that_they_are_required_are():
    schema = {"type": "object", "properties": {"a": {"type": "str", "required": True}, "b": {"required": False}}}
    assert mend_schema(schema).schema["required"] == ["a"]


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        {"type": "object", "properties": None},
        {"type": "Dict"},
        {"properties": {"a": {}}},
        {"a": "string", "b": {"type": "int"}},
        [{"name": "a", "type": "int"}],
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": {"type": "string"}}}}},
        {"$schema": "http://example.com/own", "type": "object"},
        {"$schema": "http://json-schema.org/draft-03/schema#", "type": "object", "extends": {"type": "object"}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "allOf": [{"$ref": "#"}]},
    ],
)
def test_every_way_to_write_arguments_is_read(schema):
    mended = mend_schema(schema)
    assert not mended.problem and not schema_problem(mended.schema)
    assert "http" not in " ".join(mended.notes) or "not known" in mended.notes[0]


@pytest.mark.parametrize("schema", [3, "x", [], {"type": "string"}, {"type": "list"}, [1]])
def test_what_describes_no_object_says_so(schema):
    assert "an object with named fields" in mend_schema(schema).problem


def test_a_large_branch_is_cut_and_the_rest_stays():
    many = {f"f{n}": {"type": "string", "description": "x" * 60} for n in range(3_000)}
    schema = {
        "type": "object",
        "required": ["q"],
        "properties": {"q": {"type": "string"}, "filter": {"type": "object", "properties": many}},
    }
    mended = mend_schema(schema)
    assert mended.schema["properties"] == {"q": {"type": "string"}, "filter": {"type": "object"}}
    assert mended.notes == ("filter: its schema is too large, or cannot be checked, and was cut",)


def test_many_large_branches_are_cut_until_the_rest_fits_optional_ones_first():
    branch = {"type": "object", "properties": {f"f{n}": {"type": "string", "title": "y" * 90} for n in range(300)}}
    schema = {"type": "object", "required": ["kept"], "properties": dict.fromkeys(("kept", "a", "b", "c"), branch)}
    mended = mend_schema(schema)
    assert mended.schema["properties"]["kept"] == branch  # type: ignore[index]
    assert not schema_problem(mended.schema) and mended.notes


def test_long_descriptions_are_shortened_before_anything_is_lost():
    rule = {"type": "string", "description": "z" * 60_000}
    mended = mend_schema({"type": "object", "properties": {"a": rule, "b": rule}})
    assert all(len(rule["description"]) == 300 for rule in mended.schema["properties"].values())  # type: ignore[attr-defined]
    assert mended.notes == ("the arguments: long descriptions are shortened",)


def test_a_usable_schema_stays_as_it_is():
    draft_4 = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "id": "x", "definitions": {}}
    assert mend_schema(draft_4) == MendedSchema(draft_4)


WORDS = st.sampled_from(
    (
        *("type", "properties", "required", "items", "enum", "$ref", "#", "#/properties/a", "a", "object", "string"),
        *("Dict", "float", "anyOf", "allOf", "pattern", "(", "$schema", "minimum", "description", "$defs", "not"),
    )
)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=25,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(WORDS, TREES, max_size=5) | TREES)
def test_whatever_comes_in_a_usable_schema_comes_out(schema):
    mended = mend_schema(schema)
    assert not schema_problem(mended.schema)
    assert isinstance(schema, dict | list) or mended.problem or schema is None
    assert not any(sign in json.dumps([mended.notes, mended.problem]) for sign in ("is not valid under", "Failed"))
