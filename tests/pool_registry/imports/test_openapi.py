"""OpenAPI documents become workers, and their calls reach a real service as the document says."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time

import pytest
import stamina
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pool_registry.actions import Action, Observation, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import InvalidPool, WorkerFault
from pool_registry.imports import Offer
from pool_registry.imports.openapi import document as document_module
from pool_registry.imports.openapi import operations
from pool_registry.kinds import load_config, open_worker
from pool_registry.pool import Pool
from pool_registry.schemas.result_outline import format_fields
from pool_registry.worker import NAME_PATTERN
from tests.pool_registry.support.openapi_service import KEY, make_app, served
from tests.trust.trials import count_trials


@pytest.fixture(scope="module")
def app():
    return make_app()


@pytest.fixture(scope="module")
def address(app):
    with served(app) as found:
        yield found


@pytest.fixture(scope="module")
def document(address):
    return asyncio.run(operations.fetch(f"{address}/v1/openapi.json"))


@pytest.fixture(autouse=True)
def quick_retries():
    with stamina.set_testing(True, attempts=10, cap=True):
        yield


@pytest.fixture
def shop(address, document, monkeypatch):
    monkeypatch.setenv("PODIUM_SHOP_KEY", KEY)
    found = operations.list_operations(document, source=f"{address}/v1/openapi.json", api_key="env:PODIUM_SHOP_KEY")
    return {offer.spec.name: offer for offer in found}


def call(offer: Offer, **arguments: object) -> Observation:
    assert not offer.problem, offer.problem

    async def once() -> Observation:
        async with live_pool(Pool(name="p", workers=(offer.spec,))) as pool:
            return await pool.call(Action(offer.spec.name, arguments))

    return asyncio.run(once())


def named(shop: dict[str, Offer], word: str) -> Offer:
    return next(offer for name, offer in shop.items() if word in name)


def paths(**operation: object) -> dict:
    return {"openapi": "3.1.0", "paths": {"/a": {"get": operation}}, "servers": [{"url": "https://api.example.com"}]}


def one(document: dict, **settings: str) -> Offer:
    [offer] = operations.list_operations(json.dumps(document), **settings)
    return offer


def test_operations_are_named_described_and_ready(shop):
    assert {"get_item", "place-order"} <= shop.keys() and not any(offer.problem for offer in shop.values())
    assert shop["get_item"].spec.description == "Look up one item"
    assert "Places an order" in shop["place-order"].spec.description
    schema = shop["place-order"].spec.config["parameters"]
    assert schema["required"] == ["item", "amount"] and set(schema["properties"]) == {"dry", "item", "amount", "note"}
    assert shop["get_item"].spec.config["parameters"]["properties"]["tags"]["description"] == "Only these tags."


def test_every_argument_arrives_where_the_document_says(shop):
    seen = call(shop["get_item"], item_id="a b", tags=["x", "y&z"], deep=True, session="s1", **{"x-trace": "t1"})
    assert seen.value == {
        "id": "a b", "tags": ["x", "y&z"], "deep": True, "trace": "t1", "session": "s1", "raw": "/v1/items/a%20b",
    }  # fmt: skip
    assert call(shop["place-order"], item="tea", amount=2, dry=True).value == {"item": "tea", "amount": 2, "dry": True}
    form = named(shop, "forms")
    assert call(form, word="na", times=3).value == "nanana"


def test_a_schema_that_refers_to_itself_is_kept_and_checked(shop):
    tree = named(shop, "trees")
    leaf = {"name": "leaf"}
    assert call(tree, body={"name": "root", "children": [leaf, {"name": "b", "children": [leaf]}]}).value == 4
    refused = call(tree, body={"name": "root", "children": [{"name": 3}]})
    assert refused.status is Status.PARSE_ERR and "body.children.0.name" in refused.error.message


def test_answers_of_every_kind_become_values(shop):
    by_word = {
        word: next(offer for name, offer in shop.items() if word in name) for word in ("remove", "picture", "text")
    }
    assert call(by_word["remove"], item_id="a").value is None
    assert call(by_word["picture"]).value == "(not text: image/png, 6 bytes)"
    assert call(by_word["text"]).value == "grüße"


def test_a_refusal_carries_the_services_own_words(shop):
    refused = call(named(shop, "refuses"))
    assert (refused.status, refused.error.code) == (Status.EXEC_ERR, "bad_request")
    assert "that item is sold out" in refused.error.message


@pytest.mark.parametrize("value", ["..", ".", ""])
def test_a_path_argument_cannot_leave_the_operation(shop, value):
    seen = call(shop["get_item"], item_id=value)
    assert seen.status is Status.PARSE_ERR and "of the path must not be" in seen.error.message


@pytest.mark.parametrize("value", ["../../admin", "a/b", "%2e%2e", "a?deep=true", "a#b", "{x}", "ü"])
def test_a_path_argument_stays_one_part_of_the_path(shop, value):
    seen = call(shop["get_item"], item_id=value)
    raw = (seen.value or {}).get("raw", "/v1/items/") if seen.ok else "/v1/items/"
    assert raw.startswith("/v1/items/") and raw.count("/") == 3 and not (seen.ok and seen.value["deep"])
    if seen.ok:
        assert seen.value["id"] == value


def test_a_header_argument_cannot_start_another_header(shop):
    seen = call(shop["get_item"], item_id="a", **{"x-trace": "a\r\nx-admin: yes"})
    assert seen.status is Status.PARSE_ERR and "one line" in seen.error.message


def test_keys_go_where_the_scheme_says_and_into_no_error(shop, monkeypatch):
    header = named(shop, "by_header")
    assert call(header).value == "let in"
    assert call(named(shop, "by_bearer")).value == "let in"
    monkeypatch.setenv("PODIUM_SHOP_KEY", f"shop:{KEY}")
    assert call(named(shop, "by_basic")).value == "let in"
    monkeypatch.setenv("PODIUM_SHOP_KEY", "another-planted-key")
    refused = call(header)
    assert refused.error.code == "auth" and "another-planted-key" not in json.dumps(dataclasses.asdict(refused))
    monkeypatch.delenv("PODIUM_SHOP_KEY")
    assert "export PODIUM_SHOP_KEY" in call(header).error.message


def test_only_what_may_be_repeated_is_repeated(shop, app):
    by_method = {o.spec.config["method"]: o for name, o in shop.items() if "breaks" in name}
    for method, times in (("POST", 1), ("PUT", 3)):
        app.state.calls.clear()
        assert call(by_method[method]).error.code == "server_error"
        assert len(app.state.calls) == times


def test_an_operation_that_needs_a_key_says_so(document, address):
    found = operations.list_operations(document, base_url=f"{address}/v1")
    closed = [offer for offer in found if "secret" in offer.spec.config.get("path", "by_") or offer.problem]
    assert {offer.problem for offer in closed} == {"it needs a key; give a reference to it, such as env:NAME"}
    assert len(closed) == 3 and len(found) > 8


def test_check_tells_whether_the_service_is_there(shop, address):
    async def check(offer: Offer) -> str:
        async with live_pool(Pool(name="p", workers=(offer.spec,))) as pool:
            return await pool.workers[offer.spec.name].worker.check()

    assert "is there; no operation of it was called" in asyncio.run(check(shop["get_item"]))
    gone = {**shop["get_item"].spec.config, "base_url": "http://127.0.0.1:9"}
    with pytest.raises(WorkerFault, match="cannot be reached"):
        asyncio.run(check(Offer(shop["get_item"].spec.model_copy(update={"config": gone}))))


def test_openapi_30_keywords_become_json_schema():
    schema = {
        "type": "object",
        "nullable": True,
        "properties": {
            "low": {"type": "integer", "minimum": 3, "exclusiveMinimum": True, "nullable": True},
            "kind": {"type": "string", "enum": ["a"], "nullable": True, "example": "a"},
            "example": {"type": "string"},
            "made": {"type": "string", "readOnly": True},
        },
        "required": ["low", "made"],
    }
    body = {"content": {"application/json": {"schema": schema}}, "required": True}
    document = paths(requestBody=body)
    document["openapi"] = "3.0.3"
    recorded = one(document).spec.config["parameters"]["properties"]["body"]
    assert recorded["type"] == ["object", "null"] and recorded["required"] == ["low"]
    assert recorded["properties"] == {
        "low": {"type": ["integer", "null"], "exclusiveMinimum": 3},
        "kind": {"type": ["string", "null"], "enum": ["a", None]},
        "example": {"type": "string"},
    }


def test_the_fields_of_what_an_operation_returns_are_recorded():
    owner = {"type": "object", "properties": {"name": {"type": "string"}, "friend": {"$ref": "#/components/schemas/O"}}}
    item = {
        "allOf": [
            {"properties": {"id": {"type": "integer"}}},
            {"properties": {"o": {"$ref": "#/components/schemas/O"}}},
        ]
    }
    document = paths(
        responses={
            "404": {"content": {"application/json": {"schema": {"properties": {"error": {}}}}}},
            "200": {"content": {"application/json": {"schema": {"type": "array", "items": item}}}},
        }
    )
    offer = one(document | {"components": {"schemas": {"O": owner}}})
    returns = offer.spec.config["returns"]
    assert returns["type"] == "array" and returns["items"]["properties"]["id"] == {"type": "integer"}
    assert returns["items"]["properties"]["o"]["properties"]["name"] == {"type": "string"}
    assert format_fields(returns) == "[{id, o: {name, friend}}]"
    worker = open_worker(offer.spec)
    assert worker.returns == returns


@pytest.mark.parametrize(
    "responses", [None, [], {"200": 3}, {"200": {"$ref": "#/nowhere"}}, {"200": {"content": {"text/html": {}}}}]
)
def test_responses_that_say_nothing_keep_no_operation_out(responses):
    offer = one(paths(responses=responses))
    assert not offer.problem and "returns" not in offer.spec.config


@pytest.mark.parametrize(
    ("style", "explode", "value", "query"),
    [
        ("form", None, [1, 2], "q=1&q=2"),
        ("form", False, [1, 2], "q=1,2"),
        ("pipeDelimited", False, ["a", "b"], "q=a%7Cb"),
        ("spaceDelimited", False, ["a", "b"], "q=a%20b"),
        ("deepObject", True, {"a": 1, "b": "x y"}, "q%5Ba%5D=1&q%5Bb%5D=x%20y"),
        ("form", True, {"a": True}, "a=true"),
        ("form", False, {"a": 1, "b": 2}, "q=a,1,b,2"),
    ],
)
def test_styles_of_parameters(style, explode, value, query):
    from pool_registry.workers.openapi import request

    parameter = {"name": "q", "in": "query", "style": style, "schema": {}}
    offer = one(paths(parameters=[parameter if explode is None else {**parameter, "explode": explode}]))
    url, _, _ = request(load_config(offer.spec), {"q": value})
    assert url == f"https://api.example.com/a?{query}"


@pytest.mark.parametrize(
    ("operation", "sentence"),
    [
        ({"parameters": [{"name": "q", "in": "query", "schema": {"$ref": "other.yaml#/Q"}}]}, "bundle both"),
        ({"parameters": [{"name": "q", "in": "query", "schema": {"$ref": "#/nowhere"}}]}, "not in the document"),
        ({"parameters": [{"name": "q", "in": "nowhere"}]}, "parameter q"),
        ({"parameters": [{"name": "q", "in": "path", "required": True}]}, "its path has no {q}"),
        ({"parameters": [{"name": "q", "in": "query", "style": "odd"}]}, "'odd' is not supported"),
        ({"parameters": [{"name": "Host", "in": "header"}]}, "cannot be set"),
        ({"requestBody": {"content": {"multipart/form-data": {}}}}, "multipart/form-data"),
        ({"security": [{"a": [], "b": []}]}, "more than one key"),
        ({"security": [{"unknown": []}]}, "not described"),
        ({"security": 3}, "security"),
    ],
)
def test_an_operation_that_cannot_be_called_is_offered_with_the_reason(operation, sentence):
    assert sentence in one(paths(**operation)).problem


def test_a_request_that_must_be_signed_is_never_sent_with_a_plain_key():
    scheme = {"type": "apiKey", "in": "header", "name": "Authorization", "x-amazon-apigateway-authtype": "awsSigv4"}
    document = paths(security=[{"sigv4": []}]) | {"components": {"securitySchemes": {"sigv4": scheme}}}
    assert "wants every request signed (AWS)" in one(document, api_key="env:K").problem


def _branch(parts: int) -> dict[str, object]:
    fields = {f"f{n}": {"type": "string"} for n in range(parts)}
    return {"type": "object", "description": "a lot", "properties": fields}


def _deep(levels: int) -> dict[str, object]:
    rule: dict[str, object] = {"type": "string"}
    for _ in range(levels):
        rule = {"type": "array", "items": rule}
    return rule


@pytest.mark.parametrize(
    ("rule", "recorded", "note"),
    [
        ({"type": "strange"}, {}, 'the type "strange" is not known'),
        ({"type": "Float", "required": True}, {"type": "number"}, "the type Float was read as number"),
        ({"type": "integer", "divisibleBy": 5, "format": None}, {"type": "integer", "multipleOf": 5}, "another draft"),
        (_branch(6_000), {"type": "object", "description": "a lot"}, "too large"),
        (_deep(70), {"type": "array"}, "too large"),
        ({"$dynamicRef": "#node"}, {}, "$dynamicRef #node is left out"),
    ],
    ids=["type", "float", "draft", "large", "deep", "dynamic"],
)
@pytest.mark.parametrize("place", ["query", "body"])
def test_one_odd_rule_does_not_lose_its_operation(place, rule, recorded, note):
    fine = {"type": "integer"}
    if place == "query":
        named = {"q": rule, "fine": fine}
        operation = {"parameters": [{"name": n, "in": "query", "schema": schema} for n, schema in named.items()]}
    else:
        body = {"type": "object", "properties": {"q": rule, "fine": fine}}
        operation = {"requestBody": {"content": {"application/json": {"schema": body}}}}
    offer = one({**paths(**operation), "openapi": "3.1.0"})
    assert not offer.problem, offer.problem
    properties = offer.spec.config["parameters"]["properties"]
    assert properties == {"q": recorded, "fine": fine}
    assert note in " ".join(offer.spec.config["mended"])
    open_worker(offer.spec)


def test_words_that_are_none_cost_no_operation():
    parameter = {"name": "q", "in": "query", "description": ["a"], "required": "true", "schema": {"type": "string"}}
    offer = one(paths(summary=3, description=None, parameters=[parameter]))
    assert not offer.problem and offer.spec.config["parameters"]["required"] == ["q"]
    assert not one({**paths(), "openapi": 3.1}).problem


@pytest.mark.parametrize(
    ("document", "settings", "sentence"),
    [
        ({"servers": [{"url": "/v2"}]}, {}, "give the base URL"),
        ({"servers": [{"url": "http://localhost:1/v1"}]}, {"source": "https://example.com/api.json"}, "elsewhere"),
        ({"servers": [{"url": "http://169.254.169.254/latest"}]}, {}, "cannot be used"),
        ({"servers": [{"url": "http://{host}/"}]}, {}, "without a value"),
    ],
)
def test_a_server_that_cannot_be_used_is_told(document, settings, sentence):
    assert sentence in one({**paths(), **document}, **settings).problem


def test_servers_with_variables_and_without_a_host():
    server = {
        "url": "https://{region}.example.com/{base}",
        "variables": {"region": {"default": "eu"}, "base": {"default": "v3"}},
    }
    assert one({**paths(), "servers": [server]}).spec.config["base_url"] == "https://eu.example.com/v3"
    relative = one({**paths(), "servers": [{"url": "../v4"}]}, source="https://example.com/docs/api.json")
    assert relative.spec.config["base_url"] == "https://example.com/v4"
    assert one(paths(), base_url="https://own.example.com/").spec.config["base_url"] == "https://own.example.com"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "neither JSON nor YAML"),
        ("just words", "neither JSON nor YAML"),
        ('{"openapi": ', "not valid JSON"),
        ("a: [", "not valid YAML"),
        ("a: !!int x", "not valid"),
        ("swagger: '2.0'", "convert it to OpenAPI 3"),
        ("openapi: 3.1.0", "no `paths`"),
        ("openapi: 3.1.0\npaths: {}", "no operation"),
        ("openapi: 4.0.0\npaths: {}", "must be 3.0.x or 3.1.x"),
        ("[" * 200_000, "not valid JSON"),
        ("a: " + "[" * 500, "nested more than"),
        ("a: " + "[" * 200_000, "nested more than|nesting depth"),  # libyaml from 0.2.6 on stops at 1,000 itself
        ("\n".join(["a0: &a0 x", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10))]), "parts"),
        (b"\xff\xfe\x00", "no UTF-8"),
        ('{"openapi": "3.1.0", "paths": {}, "x": 1e999999, "y": %s}' % ("9" * 5000), "not valid"),
    ],
    ids=range(15),
)  # fmt: skip
def test_what_is_no_document_is_refused_with_the_reason(text, sentence):
    with pytest.raises(InvalidPool, match=sentence):
        operations.list_operations(text)


LARGE_YAML = {
    "block": "- a\n" * 500_000,
    "flow": "  [" + "1, " * 500_000 + "]",
    "names": "".join(f" k{k}: a\n" for k in range(500_000)),
    "lists as names": " ? [a, b]\n : a\n" * 170_000,
    "far more": "- a\n" * 3_900_000,
}


@pytest.mark.medium
@pytest.mark.parametrize("name", LARGE_YAML)
def test_large_yaml_is_refused_while_it_is_read(name, monkeypatch):
    monkeypatch.setattr(yaml, "load", lambda *_, **__: pytest.fail("its values were built before they were counted"))
    text = f"openapi: 3.1.0\npaths: {{}}\nx:\n{LARGE_YAML[name]}\n"
    start = time.thread_time()
    with pytest.raises(InvalidPool, match="more than 500,000 parts; cut it down"):
        operations.list_operations(text)
    assert time.thread_time() - start < 2.5  # half a second to a second; building them took nine
    count_trials()


def test_yaml_of_as_many_parts_as_allowed_is_read(monkeypatch):
    monkeypatch.setattr(document_module, "MAX_NODES", 20)
    text = "openapi: 3.1.0\npaths: {}\nx: &x {a: 1, b: [2, 3]}\ny: {<<: *x, c: 1}\nz: [PLACE]"
    places = [text.replace("PLACE", ", ".join("1" * count)) for count in (4, 5)]
    with pytest.raises(InvalidPool, match="no operation"):
        operations.list_operations(places[0])
    with pytest.raises(InvalidPool, match="parts"):
        operations.list_operations(places[1])


WIDE = f"a: &a {{{', '.join(f'k{k}: 1' for k in range(5000))}}}\n"
# A few lines of YAML that ask for minutes: keys that are merged again and again, numbers to the base of 60.
SMALL_YAML = {
    "merged": f"{WIDE}x:\n" + "- {<<: *a}\n" * 5000,
    "merged in a list": f"{WIDE}x: {{<<: [{', '.join(['*a'] * 5000)}]}}",
    "merged twice each": "a0: &a0 {x: 1}\n"
    + "".join(f"a{k}: &a{k} {{<<: [*a{k - 1}, *a{k - 1}]}}\n" for k in range(1, 40)),
    "base 60": "x: 1" + ":1" * 1_000_000,
    "base 60 by its tag": "x: !!int '1" + ":1" * 1_000_000 + "'",
    "base 60, a fraction": "x: 1" + ":1" * 1_000_000 + ".5",
}  # fmt: skip


@pytest.mark.parametrize("name", SMALL_YAML)
def test_small_yaml_that_asks_for_much_is_refused_at_once(name):
    start = time.thread_time()
    with pytest.raises(InvalidPool, match=r"more than 500,000 parts|a number of more than 400 characters"):
        operations.list_operations(f"openapi: 3.1.0\npaths: {{}}\n{SMALL_YAML[name]}\n")
    assert time.thread_time() - start < 2
    count_trials()


def test_anchors_and_merged_keys_are_read():
    text = "openapi: 3.1.0\nx: &x {description: d}\npaths: {/p: {get: {operationId: o, <<: *x}}}\nservers: [{url: 'https://a.example'}]"
    [offer] = operations.list_operations(text)
    assert offer.spec.description.startswith("d")


def test_wrong_settings_are_told_by_field(document):
    with pytest.raises(InvalidPool) as told:
        operations.list_operations(document, base_url="ftp://x", api_key="sk-plain", key_header="a b")
    assert [field for field, _ in told.value.problems] == ["base_url", "api_key", "key_header"]


def test_a_private_server_needs_the_switch():
    with pytest.raises(InvalidPool, match="allow_private"):
        one(paths(), base_url="http://10.0.0.5/v1")
    assert "allow_private" in one({**paths(), "servers": [{"url": "http://10.0.0.5/v1"}]}).problem
    [offer] = operations.list_operations(json.dumps(paths()), base_url="http://10.0.0.5/v1", allow_private=True)
    assert load_config(offer.spec).policy.private


def test_tangled_references_are_refused_and_not_followed_for_ever():
    schemas = {f"S{n}": {"anyOf": [{"$ref": f"#/components/schemas/S{n + 1}"}] * 2} for n in range(16)}
    schemas["S16"] = {"type": "string"}
    wide = one({**paths(parameters=[{"name": "q", "in": "query", "schema": {"$ref": "#/components/schemas/S0"}}]),
                "components": {"schemas": schemas}})  # fmt: skip
    assert "parts" in wide.problem
    long = {f"S{n}": {"items": {"$ref": f"#/components/schemas/S{n + 1}"}} for n in range(3000)}
    deep = one({**paths(parameters=[{"name": "q", "in": "query", "schema": {"$ref": "#/components/schemas/S0"}}]),
                "components": {"schemas": {**long, "S3000": {}}}})  # fmt: skip
    assert "deep" in deep.problem


WORDS = st.sampled_from(
    ["paths", "/a/{b}", "get", "post", "parameters", "name", "in", "query", "path", "schema", "$ref", "#/paths", "#",
     "#/components/schemas/A", "components", "schemas", "A", "type", "object", "properties", "required", "allOf", "b",
     "requestBody", "content", "application/json", "servers", "url", "security", "securitySchemes", "apiKey", "style",
     "nullable", "exclusiveMinimum", "enum", "items", "$defs", "readOnly", "operationId", "description", "variables",
     "oneOf", "anyOf", "discriminator", "propertyName", "mapping", "encoding", "contentType", "headers", "format",
     "binary", "multipart/form-data", "image/*", "text/csv", "string", "array", "additionalProperties",
     "unevaluatedProperties"]
)  # fmt: skip
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=5), inner, max_size=5),
    max_leaves=30,
)


def offered_or_refused(text: str | bytes) -> None:
    """Offers with valid names, every ready one with a configuration that opens; or InvalidPool."""
    import re

    try:
        found = operations.list_operations(text, base_url="https://example.com")
    except InvalidPool:
        return
    names = [offer.spec.name for offer in found]
    assert len(set(names)) == len(names) and all(re.match(NAME_PATTERN, name) for name in names)
    for offer in found:
        if not offer.problem:
            load_config(offer.spec)
            json.dumps(offer.spec.config, allow_nan=False)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_text_is_offers_or_a_reason(text):
    offered_or_refused(text)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    st.dictionaries(st.sampled_from(["/a", "/a/{b}"]) | st.text(max_size=4), TREES, max_size=2) | TREES,
    st.dictionaries(WORDS, TREES, max_size=3),
    TREES,
    st.sampled_from(["3.0.3", "3.1.0"]),
    st.booleans(),
)
def test_any_tree_is_offers_or_a_reason(items, schemas, operation, version, as_yaml):
    if isinstance(items, dict):
        items = {
            **items,
            "/x/{b}": {
                "get": operation,
                "post": {"requestBody": operation, "parameters": [operation], "responses": operation},
            },
        }
    root = {"openapi": version, "paths": items, "components": {"schemas": schemas}}
    offered_or_refused(yaml.safe_dump(root) if as_yaml else json.dumps(root))
