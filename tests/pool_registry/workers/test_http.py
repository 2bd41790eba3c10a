"""The http kind: templates are filled, arguments stay in their place, keys are references."""

from __future__ import annotations

import asyncio
import json

import pytest

from pool_registry.actions import Action, Observation, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import InvalidPool
from pool_registry.kinds import load_config
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from pool_registry.workers.http import request
from tests.pool_registry.support.openapi_service import KEY, make_app, served


@pytest.fixture(scope="module")
def address():
    with served(make_app()) as found:
        yield f"{found}/v1"


def spec(**config) -> WorkerSpec:
    return WorkerSpec(name="api", kind="http", description="d", config=config, timeout_s=10)


def call(worker: WorkerSpec, **arguments) -> Observation:
    async def once() -> Observation:
        async with live_pool(Pool(name="p", workers=(worker,))) as pool:
            return await pool.call(Action("api", arguments))

    return asyncio.run(once())


def test_placeholders_become_required_texts_and_fill_every_place(address):
    worker = spec(
        url=f"{address}/items/{{item}}?deep={{deep}}", headers={"X-Trace": "t-{trace}"}, query={"tags": "{tag}"}
    )
    seen = call(worker, item="a b", deep="true", trace="9", tag="x&y").value
    assert (seen["id"], seen["deep"], seen["trace"], seen["tags"]) == ("a b", True, "t-9", ["x&y"])
    assert call(worker, item="a").status is Status.PARSE_ERR


def test_a_body_takes_arguments_with_their_types_and_leaves_out_what_was_not_given(address):
    schema = {
        "type": "object",
        "properties": {"amount": {"type": "integer"}, "what": {"type": "string"}, "note": {"type": "string"}},
        "required": ["amount", "what"],
    }
    worker = spec(
        url=f"{address}/orders",
        method="POST",
        body={"item": "green {what}", "amount": "{amount}", "note": "{note}"},
        parameters=schema,
    )
    assert call(worker, amount=2, what="tea").value == {"item": "green tea", "amount": 2, "dry": False}
    _, _, body = request(load_config(worker), {"amount": 2, "what": "tea"})
    assert json.loads(body) == {"item": "green tea", "amount": 2}


def test_a_pointer_chooses_a_part_of_the_answer(address):
    assert call(spec(url=f"{address}/items/{{item}}", pointer="/id"), item="a").value == "a"
    refused = call(spec(url=f"{address}/items/{{item}}", pointer="/no/where"), item="a")
    assert (refused.error.code, "/no/where" in refused.error.message) == ("invalid_response", True)


def test_keys_come_from_references_and_no_argument_is_one(address, monkeypatch):
    monkeypatch.setenv("PODIUM_HTTP_KEY", KEY)
    assert call(spec(url=f"{address}/secret/header", headers={"X-Shop-Key": "env:PODIUM_HTTP_KEY"})).value == "let in"
    assert call(spec(url=f"{address}/secret/bearer", headers={"Authorization": "Bearer env:PODIUM_HTTP_KEY"})).ok
    seen = call(spec(url=f"{address}/items/a", headers={"X-Trace": "{trace}"}), trace="env:PODIUM_HTTP_KEY")
    assert seen.value["trace"] == "env:PODIUM_HTTP_KEY"
    monkeypatch.setenv("PODIUM_HTTP_KEY", "wrong-planted-key")
    refused = call(spec(url=f"{address}/secret/header", headers={"X-Shop-Key": "env:PODIUM_HTTP_KEY"}))
    assert refused.error.code == "auth" and "wrong-planted-key" not in refused.error.message


@pytest.mark.parametrize("item", ["..", ".", ""])
def test_arguments_cannot_lead_elsewhere(address, item):
    schema = {"type": "object", "properties": {"item": {"type": "string"}}}
    assert call(spec(url=f"{address}/items/{{item}}", parameters=schema), item=item).status is Status.PARSE_ERR


def test_a_line_break_cannot_start_a_header(address):
    worker = spec(url=f"{address}/items/a", headers={"X-Trace": "{trace}"})
    assert call(worker, trace="a\r\nx-admin: yes").status is Status.PARSE_ERR


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"url": "https://{host}/x"}, "url"),
        ({"url": "https://user:pass@example.com/"}, "url"),
        ({"url": "https://example.com/", "headers": {"Authorization": "Bearer sk-plain"}}, "headers"),
        ({"url": "https://example.com/", "headers": {"Host": "other"}}, "headers"),
        ({"url": "https://example.com/", "query": {"api_key": "sk-plain"}}, "query"),
        ({"url": "https://example.com/", "pointer": "no-slash"}, "pointer"),
        ({"url": "https://example.com/", "body": {}}, ""),
        ({"url": "https://example.com/{a}", "parameters": {"type": "object", "properties": {}}}, ""),
        ({"url": "https://example.com/", "parameters": {"type": "strange"}}, ""),
    ],
)
def test_a_wrong_description_is_refused_at_its_field(config, field):
    with pytest.raises(InvalidPool) as told:
        load_config(spec(**config))
    assert told.value.problems[0][0] == field


def test_only_get_and_head_may_be_cached_or_answered_from_before():
    async def cacheable(method: str) -> bool:
        async with live_pool(Pool(name="p", workers=(spec(url="https://example.com/", method=method),))) as pool:
            return pool.workers["api"].worker.cacheable

    methods = ("GET", "HEAD", "POST", "PUT", "DELETE")
    assert [method for method in methods if asyncio.run(cacheable(method))] == ["GET", "HEAD"]
