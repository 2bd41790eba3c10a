"""A collection of Postman becomes workers that send its requests, as a server records them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pool_registry.errors import InvalidPool
from pool_registry.imports import Offer
from pool_registry.pasted.base import ImportSettings
from pool_registry.pasted.table import recognise
from tests.pool_registry.support.recorder import Recorder, call, record_requests

KEY = "sk-abcdefghijklmnopqrstuvwxyz123456"
SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
JSON = {"raw": {"language": "json"}}


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    with record_requests() as running:
        yield running


def make_collection(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"info": {"name": "Shop", "schema": SCHEMA}, "item": [{"name": "Folder", "item": list(items)}], **more}


def ask(name: str, url: Any, **request: Any) -> dict[str, Any]:
    return {"name": name, "request": {"method": "GET", "url": url, **request}}


def read(collection: dict[str, Any], **settings: Any) -> list[Offer]:
    return list(recognise(json.dumps(collection), ImportSettings(**settings)).recognition.offers)


def send(recorder: Recorder, item: dict[str, Any], arguments: dict[str, Any], **more: Any) -> tuple[str, str]:
    """The target and the body of the request that a call sends."""
    collection = make_collection(item, **({"variable": [{"key": "base", "value": recorder.address}]} | more))
    [offer] = read(collection, private=True)
    assert call(offer, arguments).ok
    return recorder.targets[-1], recorder.bodies[-1].decode()


@pytest.mark.parametrize(
    ("item", "arguments", "target", "body"),
    [
        (ask("Order", "{{base}}/orders/:id?lines=1"), {"id": "17"}, "/orders/17?lines=1", ""),
        (
            ask("Order", {"raw": "{{base}}/orders?a=1&b=2", "query": [
                {"key": "a", "value": "1"}, {"key": "b", "value": "2", "disabled": True}
            ]}),
            {"a": 5},
            "/orders?a=5",
            "",
        ),
        (
            ask("New", "{{base}}/orders", method="POST", body={
                "mode": "raw", "raw": '{"item": "tea", "who": "{{customer}}"}', "options": JSON
            }),
            {"customer": "Ada"},
            "/orders",
            '{"item":"tea","who":"Ada"}',
        ),
        (
            ask("Login", "{{base}}/login", method="POST", body={
                "mode": "urlencoded", "urlencoded": [{"key": "user", "value": "a b"}]
            }),
            {},
            "/login",
            "user=a%20b",
        ),
        (
            ask("Find", "{{base}}/graphql", method="POST", body={
                "mode": "graphql", "graphql": {"query": "{x}", "variables": '{"n": 3}'}
            }),
            {},
            "/graphql",
            '{"query":"{x}","variables":{"n":3}}',
        ),
    ],
)  # fmt: skip
def test_a_request_is_sent_as_postman_sends_it(
    recorder: Recorder, item: dict[str, Any], arguments: dict[str, Any], target: str, body: str
):
    sent_target, sent_body = send(recorder, item, arguments)
    assert sent_target == target
    assert (json.loads(sent_body) == json.loads(body)) if body.startswith("{") else (sent_body == body)


def test_names_and_descriptions_are_the_collections():
    item = ask("Get an order", "https://shop.example.com/orders/:id", description="One order by its number.")
    [offer] = read(make_collection(item))
    assert offer.spec.name == "get_an_order"
    assert offer.spec.description.startswith("Get an order. One order by its number. Sends GET to shop.example.com")


@pytest.mark.parametrize(
    ("auth", "settings", "headers"),
    [
        ({"type": "bearer", "bearer": [{"key": "token", "value": "{{api}}"}]}, {}, {"Authorization": "Bearer env:api"}),
        (
            {"type": "bearer", "bearer": [{"key": "token", "value": KEY}]},
            {"key": "env:MINE"},
            {"Authorization": "Bearer env:MINE"},
        ),
        (
            {"type": "apikey", "apikey": [{"key": "key", "value": "X-Key"}, {"key": "value", "value": KEY}]},
            {},
            {"X-Key": "env:SHOP_EXAMPLE_COM_X_KEY"},
        ),
        (
            {"type": "apikey", "apikey": [{"key": "key", "value": "X-Key"}]},
            {"key": "env:MINE"},
            {"X-Key": "env:MINE"},
        ),
        (
            {"type": "basic", "basic": {"username": "ada", "password": "{{pass}}"}},
            {},
            {"Authorization": "Basic env:basic_auth"},
        ),
        ({"type": "oauth2"}, {"key": "env:MINE"}, {"Authorization": "Bearer env:MINE"}),
        ({"type": "noauth"}, {}, {}),
    ],
)
def test_keys_become_references_in_the_place_where_the_collection_has_them(
    auth: dict[str, Any], settings: dict[str, Any], headers: dict[str, str]
):
    [offer] = read(make_collection(ask("Stock", "https://shop.example.com/stock"), auth=auth), **settings)
    assert not offer.problem and offer.spec.config["headers"] == headers and KEY not in repr(offer)


def test_an_address_without_a_server_takes_the_one_that_a_person_names():
    collection = make_collection(ask("Stock", "{{base-url}}/stock"))
    assert "name the server" in read(collection)[0].problem
    [offer] = read(collection, server="https://b.example.com/v2/")
    assert offer.spec.config["url"] == "https://b.example.com/v2/stock"


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        (ask("Up", "https://a.example.com", method="POST", body={"mode": "formdata"}), "multipart form"),
        (ask("Up", "https://a.example.com", method="POST", body={"mode": "file"}), "of the kind file"),
        (ask("In", "https://a.example.com", auth={"type": "awsv4"}), "signs in by awsv4"),
        (ask("No", ""), "no address"),
    ],
)
def test_what_cannot_be_sent_just_so_is_offered_with_the_reason(item: dict[str, Any], problem: str):
    assert problem in read(make_collection(item))[0].problem


def test_variables_within_variables_end_and_a_type_is_not_written_twice():
    many = [{"key": f"v{k}", "value": f"{{{{v{k + 1}}}}}" * 60} for k in range(8)] + [
        {"key": "v8", "value": "x" * 1900}
    ]
    body = {"mode": "raw", "raw": '{"a": "{{v0}}"}', "options": JSON}
    item = ask(
        "Deep",
        "https://a.example.com",
        method="POST",
        body=body,
        header=[{"key": "content-type", "value": "application/json"}],
    )
    [offer] = read(make_collection(item, variable=many))
    assert not offer.problem and list(offer.spec.config["headers"]) == ["content-type"]
    assert len(json.dumps(offer.spec.config)) < 200_000


def test_an_empty_collection_says_so():
    with pytest.raises(InvalidPool, match="holds no request"):
        read({"info": {"schema": SCHEMA}, "item": []})
