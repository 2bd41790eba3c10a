"""Plans of a served model that wait for a person: the error that says so, the routes, and the MCP tools."""

from __future__ import annotations

import asyncio
import json

import pytest
from fastapi.testclient import TestClient

from orchestrator.traces.store import open_store
from pool_registry.deployment_mode import DeploymentMode
from pool_registry.storage.data_folder import find_home
from studio.access.accounts import Tokens
from studio.model_server.apis.mcp import create_mcp_server
from studio.model_server.app import create_model_app
from studio.model_server.service import ServedModel, Service
from tests.studio.support.edge_home import home, model

__all__ = ["home", "model"]

pytestmark = pytest.mark.medium
QUERY = "say hello"
CHAT = {"model": "m", "messages": [{"role": "user", "content": QUERY}]}


@pytest.fixture(scope="module", autouse=True)
def reviewed(home) -> None:
    store = open_store(find_home(str(home)))
    pool = store.pools.latest("edge").pool
    store.pools.save(pool.model_copy(update={"name": "reviewed", "mode": DeploymentMode(name="review")}))
    store.close()


@pytest.fixture(scope="module")
def client(home):
    model = ServedModel("reviewed", "direct:agent", "m")
    with TestClient(
        create_model_app(open_store(find_home(str(home))), model, loopback=True), base_url="http://127.0.0.1"
    ) as it:
        yield it


def ask(client, **more) -> dict:
    response = client.post("/v1/chat/completions", json={**CHAT, **more})
    assert response.status_code == 409 and response.headers["x-should-retry"] == "false"
    error = response.json()["error"]
    assert error["code"] == "requires_approval" and response.headers["x-podium-trace"] == error["approval"]["id"]
    return error["approval"]


def test_a_plan_that_waits_is_no_answer_but_an_error_with_the_plan(client):
    plan = ask(client)
    assert [(step["worker"], step["arguments"]) for step in plan["steps"]] == [("agent", {"instruction": QUERY})]
    assert plan["reasons"][0]["code"] == "review" and plan["id"] in [
        line["id"] for line in client.get("/v1/approvals").json()["data"]
    ]
    with client.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": True}) as stream:
        last = [json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: {")][-1]
    assert last["error"]["code"] == "requires_approval"
    failed = client.post("/v1/responses", json={"model": "m", "input": QUERY})
    assert failed.status_code == 409 and failed.json()["error"]["approval"]["status"] == "requires_approval"


def test_an_approved_plan_answers_and_cannot_be_decided_twice(client):
    plan = ask(client)
    result = client.post(f"/v1/approvals/{plan['id']}", json={"decision": "approve", "note": "fine"}).json()
    assert result["status"] == "answered" and result["answer"] == "hello"
    assert [line["kind"] for line in result["audit"]] == ["held", "approved"] and result["audit"][1]["text"] == "fine"
    assert client.get(f"/v1/approvals/{plan['id']}").json()["answer"] == result["answer"]
    again = client.post(f"/v1/approvals/{plan['id']}", json={"decision": "reject"})
    assert again.status_code == 409 and "has approved this plan already" in again.json()["error"]["message"]


def test_a_plan_is_edited_or_rejected(client):
    plan = ask(client)
    step = plan["steps"][0]
    edit = {
        "edit": "change",
        "step": 1,
        "worker": step["worker"],
        "access": [],
        "arguments": {"instruction": "say bye"},
    }
    wrong = client.post(f"/v1/approvals/{plan['id']}", json={"decision": "edit", "edits": [{**edit, "worker": "x"}]})
    assert wrong.status_code == 422 and "there is no worker" in wrong.json()["error"]["message"]
    assert client.post(f"/v1/approvals/{plan['id']}", json={"decision": "edit"}).status_code == 400
    edited = client.post(f"/v1/approvals/{plan['id']}", json={"decision": "edit", "edits": [edit]}).json()
    assert edited["answer"] == "bye" and edited["audit"][-1]["kind"] == "edited"
    rejected = client.post(f"/v1/approvals/{ask(client)['id']}", json={"decision": "reject", "note": "no"}).json()
    assert rejected["status"] == "rejected" and rejected["answer"] is None and rejected["reason"].endswith(": no")


WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}


def test_an_approved_run_goes_on_with_the_clients_own_tools(client):
    messages = [{"role": "user", "content": 'call get_weather {"city": "Rome"}'}]
    plan = ask(client, messages=messages, tools=[WEATHER])
    assert [step["worker"] for step in plan["steps"]] == ["get_weather"]
    called = client.post(f"/v1/approvals/{plan['id']}", json={"decision": "approve"}).json()
    assert called["status"] == "tool_calls" and called["id"] == plan["id"]
    [call] = called["tool_calls"]
    assert call["function"]["name"] == "get_weather" and json.loads(call["function"]["arguments"]) == {"city": "Rome"}
    output = {"role": "tool", "tool_call_id": call["id"], "content": "warm in Rome"}
    done = client.post(
        "/v1/chat/completions",
        json={**CHAT, "messages": [*messages, {"role": "assistant", "tool_calls": [call]}, output], "tools": [WEATHER]},
    )
    assert done.status_code == 200 and done.headers["x-podium-trace"] == plan["id"]
    assert done.json()["choices"][0]["message"]["content"].endswith("OK: warm in Rome")


def test_a_client_tightens_the_mode_and_never_loosens_it(home, client):
    assert ask(client, podium={"mode": "autonomous"})["status"] == "requires_approval"
    free = create_model_app(open_store(find_home(str(home))), ServedModel("edge", "direct:agent", "m"), loopback=True)
    strict = ServedModel("edge", "direct:agent", "m", mode="review")
    with TestClient(
        create_model_app(open_store(find_home(str(home))), strict, loopback=True), base_url="http://127.0.0.1"
    ) as other:
        ask(other)
    with TestClient(free, base_url="http://127.0.0.1") as other:
        assert other.post("/v1/chat/completions", json=CHAT).status_code == 200
        ask(other, podium={"mode": "review"})


def test_nobody_decides_about_the_plan_of_another_user(home):
    store = open_store(find_home(str(home)))
    tokens = {name: Tokens(store.engine).add(name) for name in ("ada", "bob")}
    try:
        app = create_model_app(store, ServedModel("reviewed", "direct:agent", "m"), loopback=True)
        with TestClient(app, base_url="http://127.0.0.1") as client:
            ada, bob = ({"authorization": f"Bearer {tokens[name]}"} for name in ("ada", "bob"))
            plan = client.post("/v1/chat/completions", json=CHAT, headers=ada).json()["error"]["approval"]
            address = f"/v1/approvals/{plan['id']}"
            assert client.post(address, json={"decision": "approve"}, headers=bob).status_code == 404
            assert plan["id"] not in [line["id"] for line in client.get("/v1/approvals", headers=bob).json()["data"]]
            done = client.post(address, json={"decision": "approve"}, headers=ada).json()
            assert done["audit"][-1]["by"] == "ada"
    finally:
        again = open_store(find_home(str(home)))
        for name in tokens:
            Tokens(again.engine).remove(name)
        again.close()


def call_tools(home, *calls, elicit=None):
    """The results of calls of an MCP server of the reviewed pool; a callable makes a call from the results so far."""
    from mcp.client.client import Client

    async def main() -> list:
        store = open_store(find_home(str(home)))
        service = Service(store, ServedModel("reviewed", "direct:agent", "m"))
        results: list = []
        try:
            server = create_mcp_server(lambda: service, holds_plans=True)
            async with Client(server, elicitation_callback=elicit, mode="legacy" if elicit else "auto") as client:
                for call in calls:
                    results.append(await client.call_tool(*(call(results) if callable(call) else call)))
        finally:
            await service.close()
            store.close()
        return results

    return asyncio.run(main())


def test_over_mcp_the_plan_is_returned_and_a_tool_decides(home):
    first, second = call_tools(
        home,
        ("ask", {"query": QUERY}),
        lambda results: ("decide", {"id": results[0].structured_content["trace"], "decision": "approve"}),
    )
    assert first.structured_content["status"] == "requires_approval" and first.structured_content["answer"] == ""
    assert first.structured_content["approval"]["steps"]
    assert second.structured_content["status"] == "answered" and second.structured_content["answer"]


def test_over_mcp_the_client_asks_its_own_person_where_it_can(home):
    from mcp_types import ElicitResult

    questions: list[str] = []

    async def elicit(context, parameters):
        questions.append(parameters.message)
        return ElicitResult(action="accept", content={"approve": True, "note": "by hand"})

    (result,) = call_tools(home, ("ask", {"query": QUERY}), elicit=elicit)
    assert not result.is_error, result.content
    assert len(questions) == 1 and QUERY in questions[0]
    assert result.structured_content["status"] == "answered"
