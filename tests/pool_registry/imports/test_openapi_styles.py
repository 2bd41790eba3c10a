"""What requests look like on the wire: each style of OpenAPI 3 against a server that records what it receives.

The expected texts are written by hand from the tables of OpenAPI 3.0.4 and 3.1.1 and from RFC 6570; nested deepObject
is as qs and Stripe write it.
"""

from __future__ import annotations

from typing import Any

import pytest

from pool_registry.actions import Status
from pool_registry.kinds import load_config
from pool_registry.worker import WorkerSpec
from pool_registry.workers.openapi import request
from tests.pool_registry.support.recorder import call, read_offer

COLORS = ["blue", "black"]
RGB = {"R": 100, "G": 200}
TEXTS = {"type": "array", "items": {"type": "string"}}
NUMBERS = {"type": "object", "properties": {"R": {"type": "integer"}, "G": {"type": "integer"}}}
ROWS = {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}}}}


def parameter(at: str, rule: dict[str, Any], schema: Any = None) -> dict[str, Any]:
    about = rule if "content" in rule else {"schema": {} if schema is None else schema, **rule}
    return {"parameters": [{"name": "c", "in": at, "required": at == "path", **about}]}


def form(encoding: dict[str, Any] | None, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    media = {"schema": {"type": "object", "properties": properties, **more}}
    content = {"application/x-www-form-urlencoded": media | ({"encoding": encoding} if encoding is not None else {})}
    return {"requestBody": {"content": content}}


@pytest.mark.parametrize(
    ("rule", "value", "target"),
    [
        ({}, "blue", "/x/blue"),
        ({}, "a/b?c d", "/x/a%2Fb%3Fc%20d"),
        ({}, COLORS, "/x/blue,black"),
        ({}, ["a,b", "c"], "/x/a%2Cb,c"),
        ({}, RGB, "/x/R,100,G,200"),
        ({"explode": True}, COLORS, "/x/blue,black"),
        ({"explode": True}, RGB, "/x/R=100,G=200"),
        ({"style": "label"}, "blue", "/x/.blue"),
        ({"style": "label"}, COLORS, "/x/.blue,black"),
        ({"style": "label"}, RGB, "/x/.R,100,G,200"),
        ({"style": "label", "explode": True}, COLORS, "/x/.blue.black"),
        ({"style": "label", "explode": True}, RGB, "/x/.R=100.G=200"),
        ({"style": "matrix"}, "blue", "/x/;c=blue"),
        ({"style": "matrix"}, COLORS, "/x/;c=blue,black"),
        ({"style": "matrix"}, RGB, "/x/;c=R,100,G,200"),
        ({"style": "matrix", "explode": True}, COLORS, "/x/;c=blue;c=black"),
        ({"style": "matrix", "explode": True}, RGB, "/x/;R=100;G=200"),
        ({"content": {"application/json": {}}}, {"a": 1}, "/x/%7B%22a%22%3A%201%7D"),
    ],
)
def test_path_styles(recorder, rule, value, target):
    assert call(read_offer("/x/{c}", "get", parameter("path", rule), recorder.address), {"c": value}).ok
    assert recorder.targets[-1] == target


@pytest.mark.parametrize(
    ("rule", "value", "query"),
    [
        ({}, "a&b=c", "?c=a%26b%3Dc"),
        ({}, "", "?c="),
        ({}, True, "?c=true"),
        ({}, None, ""),
        ({}, [], ""),
        ({}, COLORS, "?c=blue&c=black"),
        ({}, RGB, "?R=100&G=200"),
        ({"explode": False}, COLORS, "?c=blue,black"),
        ({"explode": False}, ["a,b", "c"], "?c=a%2Cb,c"),
        ({"explode": False}, RGB, "?c=R,100,G,200"),
        ({"style": "spaceDelimited", "explode": False}, COLORS, "?c=blue%20black"),
        ({"style": "spaceDelimited", "explode": False}, RGB, "?c=R%20100%20G%20200"),
        ({"style": "spaceDelimited", "explode": True}, COLORS, "?c=blue&c=black"),
        ({"style": "pipeDelimited"}, COLORS, "?c=blue%7Cblack"),
        ({"style": "pipeDelimited"}, RGB, "?c=R%7C100%7CG%7C200"),
        ({"style": "deepObject", "explode": True}, RGB, "?c%5BR%5D=100&c%5BG%5D=200"),
        ({"style": "deepObject"}, {"price": {"gte": 10}}, "?c%5Bprice%5D%5Bgte%5D=10"),
        ({"style": "deepObject"}, {"tags": COLORS}, "?c%5Btags%5D%5B0%5D=blue&c%5Btags%5D%5B1%5D=black"),
        ({"style": "deepObject"}, COLORS, "?c%5B0%5D=blue&c%5B1%5D=black"),
        ({"style": "deepObject"}, 5, "?c=5"),
        ({"allowReserved": True}, "a/b:c?d", "?c=a/b:c?d"),
        ({"allowReserved": True}, "a&b#c+d", "?c=a%26b%23c%2Bd"),
        ({"content": {"application/json": {}}}, {"a": [1]}, "?c=%7B%22a%22%3A%20%5B1%5D%7D"),
    ],
)
def test_query_styles(recorder, rule, value, query):
    assert call(read_offer("/x", "get", parameter("query", rule), recorder.address), {"c": value}).ok
    assert recorder.targets[-1] == f"/x{query}"


@pytest.mark.parametrize(
    ("at", "rule", "value", "header"),
    [
        ("header", {}, "a b", "a b"),
        ("header", {}, [1, 2], "1,2"),
        ("header", {}, RGB, "R,100,G,200"),
        ("header", {"explode": True}, RGB, "R=100,G=200"),
        ("header", {"content": {"application/json": {}}}, {"a": 1}, '{"a": 1}'),
        ("cookie", {}, "a b", "c=a%20b"),
        ("cookie", {"explode": False}, COLORS, "c=blue,black"),
        ("cookie", {"explode": False}, RGB, "c=R,100,G,200"),
    ],
)
def test_styles_of_headers_and_cookies(recorder, at, rule, value, header):
    assert call(read_offer("/x", "get", parameter(at, rule), recorder.address), {"c": value}).ok
    assert recorder.headers[-1]["c" if at == "header" else "cookie"] == header


@pytest.mark.parametrize(
    ("encoding", "value", "body"),
    [
        (None, "a b&c", "c=a+b%26c"),
        (None, [1, 2], "c=1&c=2"),
        (None, {"a": 1}, "c=%7B%22a%22%3A+1%7D"),  # an object is JSON where nothing else is said
        (None, [{"a": 1}], "c=%7B%22a%22%3A+1%7D"),
        (None, None, "c="),
        ({"style": "form", "explode": False}, [1, 2], "c=1,2"),
        ({"style": "form", "explode": True}, RGB, "R=100&G=200"),
        ({"explode": True}, [1, 2], "c=1&c=2"),
        ({"style": "spaceDelimited"}, COLORS, "c=blue%20black"),
        ({"style": "pipeDelimited"}, COLORS, "c=blue%7Cblack"),
        ({"style": "deepObject", "explode": True}, {"order_id": "67"}, "c%5Border_id%5D=67"),
        ({"style": "deepObject", "explode": True}, COLORS, "c%5B0%5D=blue&c%5B1%5D=black"),
        ({"style": "deepObject"}, [{"price": {"id": "p"}}], "c%5B0%5D%5Bprice%5D%5Bid%5D=p"),
        ({"allowReserved": True}, "a/b c&d", "c=a/b+c%26d"),
        ({"contentType": "application/json"}, "a", "c=%22a%22"),
        ({"contentType": "text/plain"}, "a", "c=a"),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_forms_are_written_as_their_encoding_says(recorder, encoding, value, body, whole):
    described = form(None if encoding is None else {"c": encoding}, {"c": {}}, additionalProperties=whole)
    offer = read_offer("/x", "post", described, recorder.address)
    assert call(offer, {"body": {"c": value}} if whole else {"c": value}).ok
    assert recorder.bodies[-1] == body.encode()
    assert recorder.headers[-1]["content-type"] == "application/x-www-form-urlencoded"


def test_json_by_another_name_is_sent_under_that_name(recorder):
    media = {"application/merge-patch+json": {"schema": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    assert call(read_offer("/x", "post", {"requestBody": {"content": media}}, recorder.address), {"a": "b"}).ok
    assert recorder.headers[-1]["content-type"] == "application/merge-patch+json"
    assert recorder.bodies[-1] == b'{"a": "b"}'


@pytest.mark.parametrize(
    ("operation", "sentence"),
    [
        (parameter("query", {"style": "simple"}), "the style 'simple' has no meaning there; use form or"),
        (parameter("header", {"style": "form"}), "the style 'form' has no meaning there; use simple"),
        (parameter("cookie", {"style": "deepObject"}), "the style 'deepObject' has no meaning there"),
        (parameter("query", {}, ROWS), "no rule for lists and objects within it"),
        (parameter("query", {"explode": False}, ROWS), "no rule for lists and objects within it"),
        (parameter("query", {}, {"type": "object", "properties": {"a": TEXTS}}), "no rule for lists and objects"),
        (parameter("header", {}, ROWS), "no rule for lists and objects within it"),
        (parameter("cookie", {}, TEXTS), "no rule for a list or an object that explodes"),
        (parameter("query", {"style": "pipeDelimited", "explode": True}, NUMBERS), "lists alone can be divided"),
        (parameter("query", {"content": {"application/xml": {}}}), "its content is application/xml"),
        (form({"c": {"contentType": "image/png"}}, {"c": {}}), "its content type is image/png"),
        (form({"c": {"style": "simple"}}, {"c": {}}), "the style 'simple' has no meaning there"),
        (form({"c": {"style": "form"}}, {"c": ROWS}), "no rule for lists and objects within it"),
        ({"requestBody": {"content": {"multipart/form-data": {}}}}, "it is multipart/form-data; only"),
        (
            {"requestBody": {"content": {"application/octet-stream": {"schema": ROWS}}}},
            "it is application/octet-stream; only",
        ),
        ({"requestBody": {"content": {"application/xml": {"schema": NUMBERS}}}}, "it is application/xml; its fields"),
        ({"requestBody": {"content": {"multipart/related": {}}}}, "it is multipart/related; of forms with parts"),
    ],
)
def test_what_no_rule_covers_is_refused_at_import(operation, sentence):
    problem = read_offer("/x", "post", operation).problem
    assert "cannot be sent: " in problem and sentence in problem


@pytest.mark.parametrize(
    ("at", "rule", "value", "sentence"),
    [
        ("query", {}, [[1], [2]], "a list or an object within it cannot be sent"),
        ("query", {"explode": False}, {"a": {"b": 1}}, "a list or an object within it cannot be sent"),
        ("query", {"style": "spaceDelimited"}, ["a b", "c"], "holds the character that divides"),
        ("query", {"style": "deepObject"}, {"a": {"b": []}, "d": 1}, "an empty list or object within an object"),
        ("query", {"style": "deepObject"}, {"a[b": 1}, "holds a bracket"),
        ("header", {"explode": True}, {"a=b": 1}, "holds the character that divides"),
        ("query", {"style": "pipeDelimited"}, ["a|b", "c"], "holds the character that divides"),
        ("header", {}, ["a,b", "c"], "holds the character that divides"),
        ("cookie", {}, COLORS, "a cookie takes no list or object"),
        ("path", {"style": "label", "explode": True}, ["a.b", "c"], "holds the character that divides"),
        ("path", {"style": "matrix"}, [], "must not be empty"),
        ("path", {"style": "label"}, ".", "must not be `.` or `..`"),
    ],
)
def test_a_value_that_cannot_be_written_is_refused_and_not_sent(recorder, at, rule, value, sentence):
    count = len(recorder.targets)
    path = "/x/{c}" if at == "path" else "/x"
    refused = call(read_offer(path, "get", parameter(at, rule), recorder.address), {"c": value})
    assert refused.status is Status.PARSE_ERR and refused.error is not None and sentence in refused.error.message
    assert len(recorder.targets) == count


def test_workers_of_older_pools_send_what_they_sent():
    places = [
        {"argument": "q", "at": "query", "wire": "q", "style": "form", "explode": True},
        {"argument": "n", "at": "body", "wire": "n"},
    ]
    parameters = {"type": "object", "properties": {"q": {}, "n": {}}}
    config = {"base_url": "https://api.example.com", "method": "POST", "path": "/x", "places": places, "body": "form"}
    spec = WorkerSpec(name="w", kind="openapi", description="old", config={**config, "parameters": parameters})
    url, headers, body = request(load_config(spec), {"q": [1, 2], "n": ["a b", 3]})
    assert url == "https://api.example.com/x?q=1&q=2" and body == b"n=a+b&n=3"
    assert headers["content-type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/charges?version=2", "/charges?version=2&q=tea"),
        ("/#action=List", "/?q=tea"),
        ("/?Action=List#v1", "/?Action=List&q=tea"),
        ("/shelf/{shelf}", "/shelf/3?q=tea"),
    ],
)
def test_odd_paths_are_sent_whole(recorder, path, target):
    """A query or a mark in the path, and a name in it that the document forgot to describe."""
    operation = {"parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}}]}
    seen = call(
        read_offer(path, "get", operation, recorder.address), {"q": "tea", **({"shelf": "3"} if "{" in path else {})}
    )
    assert seen.ok and recorder.targets[-1] == target
