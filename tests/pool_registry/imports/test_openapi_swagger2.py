"""Swagger 2.0 documents: their arguments arrive as they say, and what they cannot say is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pool_registry.errors import InvalidPool
from pool_registry.imports import Offer
from pool_registry.imports.openapi import operations
from tests.pool_registry.support.recorder import call

TEXTS = {"type": "array", "items": {"type": "string"}}
PET = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {"id": {"readOnly": True}, "name": {"type": "string"}},
}


def read(parameters: list[Any], address: str = "http://api.example.com/v1", **more: Any) -> Offer:
    scheme, _, rest = address.partition("://")
    host, _, base = rest.partition("/")
    document = {
        "swagger": "2.0",
        "schemes": [scheme],
        "host": host,
        "basePath": f"/{base}",
        "paths": {"/x/{p}" if "path" in json.dumps(parameters) else "/x": {"post": {"parameters": parameters}}},
        "definitions": {"Pet": PET},
        "parameters": {"Shared": {"name": "c", "in": "query", "type": "string"}},
        **more,
    }
    [offer] = operations.list_operations(json.dumps(document))
    return offer


@pytest.mark.parametrize(
    ("parameter", "value", "target"),
    [
        ({"in": "query", "type": "integer"}, 3, "/x?c=3"),
        ({"in": "query", **TEXTS}, ["a", "b"], "/x?c=a,b"),
        ({"in": "query", **TEXTS, "collectionFormat": "csv"}, ["a", "b"], "/x?c=a,b"),
        ({"in": "query", **TEXTS, "collectionFormat": "multi"}, ["a", "b"], "/x?c=a&c=b"),
        ({"in": "query", **TEXTS, "collectionFormat": "ssv"}, ["a", "b"], "/x?c=a%20b"),
        ({"in": "query", **TEXTS, "collectionFormat": "pipes"}, ["a", "b"], "/x?c=a%7Cb"),
        ({"$ref": "#/parameters/Shared"}, "a", "/x?c=a"),
    ],
)
def test_queries(recorder, parameter, value, target):
    offer = read([parameter if "$ref" in parameter else {"name": "c", **parameter}], f"{recorder.address}/v1")
    assert call(offer, {"c": value}).ok, offer.problem
    assert recorder.targets[-1] == f"/v1{target}"


def test_paths_and_headers_divide_lists_by_commas(recorder):
    path = {"name": "p", "in": "path", "required": True, **TEXTS}
    offer = read([path, {"name": "X-C", "in": "header", **TEXTS}], recorder.address)
    assert call(offer, {"p": ["a", "b"], "X-C": ["c", "d"]}).ok
    assert recorder.targets[-1] == "/x/a,b" and recorder.headers[-1]["x-c"] == "c,d"


def test_a_body_without_what_only_answers_have(recorder):
    body = {"name": "any", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Pet"}}
    offer = read([body], recorder.address, consumes=["application/xml", "application/json"])
    assert offer.spec.config["parameters"]["required"] == ["name"] and call(offer, {"name": "a"}).ok
    assert recorder.bodies[-1] == b'{"name": "a"}'


def test_a_discriminator_chooses_among_definitions():
    cat = {"allOf": [{"$ref": "#/definitions/Pet"}, {"properties": {"lives": {"type": "integer"}}}]}
    body = {"name": "any", "in": "body", "schema": {"$ref": "#/definitions/Pet"}}
    offer = read([body], definitions={"Pet": {**PET, "discriminator": "name"}, "Cat": cat})
    [pet, chosen] = offer.spec.config["parameters"]["properties"]["body"]["oneOf"]
    assert pet["properties"]["name"]["enum"] == ["Pet"] and chosen["properties"]["name"]["enum"] == ["Cat"]
    assert "lives" in chosen["properties"]


@pytest.mark.parametrize(
    ("more", "value", "sent"),
    [
        ({"type": "string"}, "a b", b"c=a+b"),
        (TEXTS, ["a", "b"], b"c=a,b"),
        ({**TEXTS, "collectionFormat": "multi"}, ["a", "b"], b"c=a&c=b"),
    ],
)
def test_fields_of_a_form(recorder, more, value, sent):
    assert call(read([{"name": "c", "in": "formData", **more}], recorder.address), {"c": value}).ok
    assert recorder.bodies[-1] == sent


def test_a_file_makes_a_form_of_parts(recorder, tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    fields = [
        {"name": "f", "in": "formData", "type": "file", "required": True},
        {"name": "c", "in": "formData", **TEXTS},
    ]
    offer = read(fields, recorder.address)
    spec = offer.spec.model_copy(update={"config": {**offer.spec.config, "files": str(tmp_path)}})
    assert spec.config["parameters"]["required"] == ["f"] and call(Offer(spec), {"f": "a.txt", "c": ["x", "y"]}).ok
    assert b'name="f"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nhello\r\n' in recorder.bodies[-1]
    assert b'name="c"\r\n\r\nx,y\r\n' in recorder.bodies[-1]


@pytest.mark.parametrize(
    "parameter",
    [
        {"in": "query", **TEXTS, "collectionFormat": "tsv"},
        {"in": "header", **TEXTS, "collectionFormat": "pipes"},
        {"in": "query", "type": "array", "items": TEXTS},
    ],
)
def test_lists_that_openapi_has_no_rule_for_are_refused(parameter):
    assert "cannot be sent: " in read([{"name": "c", **parameter}]).problem


def test_servers_keys_and_answers(monkeypatch):
    keys = {"k": {"type": "apiKey", "in": "header", "name": "X-Key"}, "b": {"type": "basic"}}
    document = {
        "swagger": "2.0",
        "host": "api.example.com",
        "basePath": "/v2",
        "securityDefinitions": keys,
        "security": [{"b": []}],
        "definitions": {"Pet": PET},
        "paths": {"/a": {"get": {"responses": {"200": {"description": "", "schema": {"$ref": "#/definitions/Pet"}}}}}},
    }
    [offer] = operations.list_operations(json.dumps(document), api_key="env:K", source="http://x.example.com/doc.json")
    config = offer.spec.config
    assert config["base_url"] == "http://api.example.com/v2" and config["auth"] == {"kind": "basic"}
    assert set(config["returns"]["properties"]) == {"id", "name"}
    [offer] = operations.list_operations(json.dumps({**document, "security": [{"k": []}]}), api_key="env:K")
    assert offer.spec.config["base_url"] == "https://api.example.com/v2"
    assert offer.spec.config["auth"] == {"kind": "header", "name": "X-Key"}


@pytest.mark.parametrize("document", [{"swagger": "1.2", "paths": {}}, {"swagger": 2.0}])
def test_other_documents_of_swagger_are_refused(document):
    with pytest.raises(InvalidPool, match="convert it to OpenAPI 3"):
        operations.list_operations(json.dumps(document))


WORDS = st.sampled_from(
    ["post", "parameters", "name", "in", "body", "formData", "query", "type", "array", "file", "items", "schema",
     "$ref", "#/definitions/Pet", "collectionFormat", "tsv", "consumes", "responses", "200"]
)  # fmt: skip
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TREES, TREES, st.dictionaries(st.sampled_from(["host", "schemes", "consumes", "securityDefinitions"]), TREES))
def test_any_tree_is_offers_or_a_reason(operation, parameters, more):
    item = {"post": operation, "put": {"parameters": parameters}, "get": {"parameters": [parameters]}}
    document = {"swagger": "2.0", "paths": {"/a": item, "/b": operation}, "definitions": {"Pet": PET}, **more}
    try:
        operations.list_operations(json.dumps(document), base_url="https://example.com")
    except InvalidPool as error:
        assert error.problems
