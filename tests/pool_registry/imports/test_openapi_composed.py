"""Schemas that a document composes: what `allOf` joins are arguments, and what only answers have asks for nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pool_registry.actions import Status
from pool_registry.imports import Offer
from pool_registry.imports.openapi.merge import merge_all_of
from pool_registry.schemas.schema_check import SchemaCheck
from tests.pool_registry.support.recorder import call, read_offer

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
REFERENCE = "#/components/schemas/"


def shape(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties} | ({"required": list(required)} if required else {})


def refer(name: str) -> dict[str, Any]:
    return {"$ref": REFERENCE + name}


def post(schema: Any, address: str = "https://api.example.com", required: Any = True, **schemas: Any) -> Offer:
    body = {"content": {"application/json": {"schema": schema}}} | ({} if required is None else {"required": required})
    offer = read_offer("/x", "post", {"requestBody": body}, address, **schemas)
    assert not offer.problem, offer.problem
    return offer


def rules_of(offer: Offer) -> dict[str, Any]:
    return offer.spec.config["parameters"]


BASE = shape(("id", "name"), id={"type": "integer", "readOnly": True}, name=TEXT)
NODE = shape(("id",), id={"type": "integer", "readOnly": True}, name=TEXT, parent={"allOf": [refer("Base")]})


@pytest.mark.parametrize(
    ("schema", "base", "names", "required"),
    [
        ({"allOf": [shape(("a",), a=TEXT), shape(("b",), b=NUMBER)]}, {}, ["a", "b"], ["a", "b"]),
        ({"allOf": [refer("Base"), shape(("b",), b=NUMBER)]}, BASE, ["name", "b"], ["name", "b"]),
        ({"allOf": [refer("Base"), {"required": ["id", "name"]}]}, BASE, ["name"], ["name"]),
        ({"allOf": [refer("Base"), shape(("price",), price=NUMBER)]}, NODE, ["name", "parent", "price"], ["price"]),
        ({"allOf": [{"allOf": [refer("Base"), shape(a=TEXT)]}, shape(b=TEXT)]}, NODE, ["name", "parent", "a", "b"], []),
        ({"allOf": [shape(("id",), id=TEXT), shape(id={"readOnly": True}, a=TEXT)]}, {}, ["a"], []),
        ({"allOf": [refer("Base")], "description": "d"}, BASE, ["name"], ["name"]),
        ({**shape(a=TEXT), "allOf": [{"required": ["a"]}, {"required": ["z"]}]}, {}, ["a", "z"], ["a", "z"]),
        ({"allOf": [shape(a=TEXT), {"properties": {"a": {"maxLength": 3}}}]}, {}, ["a"], []),
    ],
)
def test_what_is_joined_becomes_arguments(schema, base, names, required):
    rules = rules_of(post(schema, Base=base))
    assert sorted(rules["properties"]) == sorted(names) and sorted(rules.get("required", [])) == sorted(required)


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{**shape(a=TEXT), "additionalProperties": False}, shape(b=TEXT)]},
        {"allOf": [{**shape(a=TEXT), "additionalProperties": TEXT}, shape(b=NUMBER)]},
        {"allOf": [shape(a=TEXT), {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}]},
        {"allOf": [shape(a=TEXT), {"type": "string"}]},
    ],
)
def test_what_one_schema_cannot_say_stays_one_argument(schema):
    assert list(rules_of(post(schema))["properties"]) == ["body"]


def test_a_joined_body_arrives_whole(recorder):
    offer = post({"allOf": [refer("Base"), shape(("price",), price=NUMBER)]}, recorder.address, None, Base=NODE)
    assert call(offer, {"name": "a", "price": 2}).ok
    assert json.loads(recorder.bodies[-1]) == {"name": "a", "price": 2}
    assert call(offer, {"name": "a"}).status is Status.PARSE_ERR


@pytest.mark.parametrize(
    ("required", "arguments", "body"),
    [
        (None, {"a": "x"}, {"a": "x"}),
        (None, {}, None),
        (False, {"a": "x", "b": "y"}, {"a": "x", "b": "y"}),
        (False, {"b": "y"}, None),
        (False, {}, ""),
    ],
)
def test_an_optional_body_is_left_out_or_whole(recorder, required, arguments, body):
    offer = post(shape(("a",), a=TEXT, b=TEXT), recorder.address, required)
    count, reply = len(recorder.bodies), call(offer, arguments)
    if body is None:
        assert reply.status is Status.PARSE_ERR and len(recorder.bodies) == count
    else:
        assert reply.ok and recorder.bodies[-1] == (json.dumps(body).encode() if body else b"")


CAT, DOG = shape(("kind",), kind=TEXT, name=TEXT, lives=NUMBER), shape(("kind",), kind=TEXT, name=TEXT)
PETS = {"oneOf": [refer("Cat"), refer("Dog")], "discriminator": {"propertyName": "kind"}}
MAPPED = {"propertyName": "kind", "mapping": {"cat": REFERENCE + "Cat", "kitten": "Cat", "dog": "Dog"}}
LABELLED = {"Cat": shape(kind={"enum": ["c"]}), "Dog": shape(kind={"enum": ["d"]}, a={**TEXT, "readOnly": True})}
HEIRS = {
    "Pet": {**DOG, "discriminator": {"propertyName": "kind"}},
    "Cat": {"allOf": [refer("Pet"), shape(lives=NUMBER)]},
}
MAPPED_HEIRS = {**HEIRS, "Pet": {**DOG, "discriminator": MAPPED}, "Dog": {"allOf": [refer("Pet")]}}
HIDING = {**shape(id={"readOnly": True}), "oneOf": [{"required": ["id"]}, {"required": ["a"]}]}
EITHER = {"oneOf": [refer("Base"), shape(("code",), code=TEXT)], "discriminator": {"propertyName": "kind"}}


@pytest.mark.parametrize(
    ("schema", "schemas", "right", "wrong"),
    [
        (PETS, {"Cat": CAT, "Dog": DOG}, [{"kind": "Cat", "lives": 9}, {"kind": "Dog"}], [{"kind": "cat"}, {}]),
        (
            {**PETS, "discriminator": MAPPED},
            {"Cat": CAT, "Dog": DOG},
            [{"kind": "cat"}, {"kind": "kitten"}, {"kind": "dog"}],
            [{"kind": "Cat"}, {}],
        ),
        (refer("Pet"), HEIRS, [{"kind": "Cat", "lives": 9}, {"kind": "Pet"}], [{"kind": "Cat", "lives": "x"}, {}]),
        (refer("Pet"), MAPPED_HEIRS, [{"kind": "cat", "lives": 9}, {"kind": "dog"}], [{"kind": "cat", "lives": "x"}]),
        (PETS, LABELLED, [{"kind": "c"}, {"kind": "d"}], [{"kind": "Cat"}]),
        (EITHER, {"Base": NODE}, [{"code": "x"}, {"name": "a"}], [{"name": 3}]),
        ({"oneOf": [shape(("a",), a=TEXT), shape(("b",), b=TEXT)]}, {}, [{"a": "x"}], [{"a": "x", "b": "y"}, {}]),
        (HIDING, {}, [{"a": 1}, {}], ["a"]),
        ({"oneOf": [TEXT, {"type": "array", "items": BASE}]}, {}, ["a", [{"name": "a"}]], [[{}], 3]),
    ],
)  # fmt: skip
def test_variants_stay_apart(recorder, schema, schemas, right, wrong):
    offer = post(schema, recorder.address, **schemas)
    for value in right:
        assert call(offer, {"body": value}).ok, value
        assert json.loads(recorder.bodies[-1]) == value
    for value in wrong:
        assert call(offer, {"body": value}).status is Status.PARSE_ERR, value


@pytest.mark.parametrize(
    "rule",
    [
        {**TEXT, "readOnly": True},
        {"allOf": [refer("Base")], "readOnly": True},
        {"allOf": [{**TEXT, "readOnly": True}]},
        {"$ref": REFERENCE + "Stamp"},
        {"$ref": REFERENCE + "Base", "readOnly": True},
    ],
)
def test_what_only_answers_have_is_not_offered(rule):
    schema = shape(("made", "secret"), made=rule, secret={**TEXT, "writeOnly": True})
    rules = rules_of(post(schema, Base=BASE, Stamp={**TEXT, "readOnly": True}))
    assert (list(rules["properties"]), rules["required"]) == (["secret"], ["secret"])


KEYS = st.sampled_from(["a", "b", "c"])
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", ["string", "null"], ["number", "string"]]),
        "minimum": st.integers(-2, 2),
        "maxLength": st.integers(0, 2),
        "enum": st.lists(st.sampled_from(["x", 1, None]), min_size=1, max_size=2, unique=True),
    },
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", ["object", "null"]]),
            "properties": st.dictionaries(KEYS, inner, max_size=3),
            "required": st.lists(KEYS, max_size=2, unique=True),
            "additionalProperties": st.booleans() | inner,
            "patternProperties": st.dictionaries(st.just("^b"), inner, max_size=1),
            "unevaluatedProperties": st.booleans(),
            "minProperties": st.integers(0, 2),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=3),
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=1),
        },
    ),
    max_leaves=8,
)
VALUES = st.recursive(
    st.none() | st.sampled_from(["", "x", "xyz", 1, -3, 0.5]),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=5,
)


@settings(max_examples=400, deadline=None)
@given(st.lists(SCHEMAS, min_size=1, max_size=3), SCHEMAS, VALUES)
def test_a_merged_schema_takes_what_the_composed_one_took(parts, beside, value):
    schema = {**beside, "allOf": parts}
    assert SchemaCheck(merge_all_of(schema)).accepts(value) == SchemaCheck(schema).accepts(value)
