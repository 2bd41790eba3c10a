"""Limits of one request: obeyed by the served run, kept in its trace, and refused in the API's own form."""

from __future__ import annotations

import asyncio

import pytest
from fastapi.testclient import TestClient
from mcp.client.client import Client

from orchestrator.traces.store import Store, open_store
from pool_registry.pool import rename_pool
from pool_registry.storage.data_folder import find_home
from studio.episode_documents.trace import build_limits_document
from studio.model_server.apis.mcp import create_mcp_server
from studio.model_server.app import create_model_app
from studio.model_server.service import ServedModel, Service
from tests.studio.support.edge_home import home, model
from tests.studio.support.served import PRICE_CALL

__all__ = ["home", "model"]

pytestmark = pytest.mark.medium
CHAT = {"model": "m", "messages": [{"role": "user", "content": "say hello"}]}
TOOL = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture(scope="module")
def store(home) -> Store:
    return open_store(find_home(str(home)))


@pytest.fixture(scope="module", autouse=True)
def two(store) -> None:
    """A pool with two agents."""
    pool = store.pools.latest("edge").pool
    store.pools.save(rename_pool(pool, "two").with_worker(pool.workers[0].model_copy(update={"name": "other"})))


@pytest.fixture(scope="module")
def client(store):
    app = create_model_app(store, ServedModel("two", "fan_out", "m"), loopback=True)
    with TestClient(app, base_url="http://127.0.0.1") as it:
        yield it


@pytest.mark.parametrize(
    ("podium", "param", "sentence"),
    [
        (
            {"without_workers": ["agnet"]},
            "podium.without_workers",
            "has no worker 'agnet'; the nearest names are: agent",
        ),
        ({"seen_by": {"agent": ["nobody"]}}, "podium.seen_by", "has no worker 'nobody'"),
        ({"max_cost": -0.5}, "podium.max_cost", "above 0"),
        ({"seen_by": ["agent"]}, "podium.seen_by", "must be an object"),
        ({"without_worker": ["agent"]}, "podium.without_worker", "no such setting"),
    ],
)
def test_limits_that_cannot_be_kept_are_a_400_before_anything_runs(client, model, podium, param, sentence):
    before = len(model.started)
    for path, body in (("chat/completions", CHAT), ("responses", {"model": "m", "input": "say hello"})):
        response = client.post(f"/v1/{path}", json={**body, "podium": podium})
        error = response.json()["error"]
        assert (response.status_code, error["type"], error["param"]) == (400, "invalid_request_error", param), error
        assert error["code"] == "invalid_value" and sentence in error["message"]
    assert len(model.started) == before


def test_banning_every_worker_is_refused(client, store):
    names = [spec.name for spec in store.pools.latest("two").pool.workers]
    response = client.post("/v1/chat/completions", json={**CHAT, "podium": {"without_workers": names}})
    assert response.status_code == 400 and "no worker of pool 'two' is left" in response.json()["error"]["message"]


def test_a_served_run_keeps_the_limits_of_its_request(client, store):
    podium = {"without_workers": ["agent"], "max_cost": 5, "seen_by": {"1": ["other"]}}
    response = client.post("/v1/chat/completions", json={**CHAT, "podium": podium, "tools": [TOOL]})
    assert response.status_code == 200, response.text
    store.traces.flush()
    episode = store.traces.episode(response.headers["x-podium-trace"])
    assert {run.step.worker for run in episode.steps.values()} == {"other"}
    document = build_limits_document(store, episode)
    assert document["broken"] == [] and document["without_workers"] == ("agent",)
    assert document["seen_by"] == {"$1": ("other",)} and episode.started.limits["max_cost"] == 5


def test_who_orchestrates_alone_cannot_be_banned(store):
    app = create_model_app(store, ServedModel("two", "direct:agent", "m"), loopback=True)
    with TestClient(app, base_url="http://127.0.0.1") as it:
        response = it.post("/v1/chat/completions", json={**CHAT, "podium": {"without_workers": ["agent"]}})
    error = response.json()["error"]
    assert response.status_code == 400 and error["param"] == "podium.without_workers"
    assert "direct:agent needs more: pool 'two' has no agent 'agent'; it has: other" in error["message"]


def test_a_call_that_might_pass_the_cap_of_a_request_is_not_made(store, model):
    before = len(model.started)
    app = create_model_app(store, ServedModel("edge", "direct:agent", "m"), loopback=True)
    with TestClient(app, base_url="http://127.0.0.1") as it:
        it.post("/v1/chat/completions", json={**CHAT, "podium": {"max_cost": PRICE_CALL / 2}})
        assert len(model.started) == before
        assert it.post("/v1/chat/completions", json={**CHAT, "podium": {"max_cost": 10}}).status_code == 200
        assert len(model.started) == before + 1


def test_mcp_takes_the_limits_of_a_question(store):
    async def ask(**limits: object) -> tuple[bool, str]:
        service = Service(store, ServedModel("two", "fan_out", "m"))
        try:
            async with Client(create_mcp_server(lambda: service)) as client:
                reply = await client.call_tool("ask", {"query": "say hello", **limits})
                return reply.is_error, str(reply.structured_content or reply.content[0].text)
        finally:
            await service.close()

    refused, sentence = asyncio.run(ask(without_workers=["agnet"]))
    assert refused and "has no worker 'agnet'" in sentence
    refused, sentence = asyncio.run(ask(max_cost=-1))
    assert refused and "give an amount above $0" in sentence
    refused, answer = asyncio.run(ask(without_workers=["agent"], max_cost=5, seen_by={"other": []}))
    assert not refused and "hello" in answer
