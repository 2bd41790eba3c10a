"""The served pool as an agent that speaks A2A, in both versions of the protocol, over a real socket."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from studio.housekeeping.forgetting import Sender, forget
from tests.studio.support.edge_home import home, model
from tests.studio.support.served import ended_row, opened, serving

pytestmark = pytest.mark.medium

__all__ = ["home", "model"]

OFFER = ("--pool", "edge", "--orchestrator", "direct:agent")
NAMES = {
    "0.3": ("message/send", "message/stream", "tasks/get", "tasks/cancel", "tasks/resubscribe"),
    "1.0": ("SendMessage", "SendStreamingMessage", "GetTask", "CancelTask", "SubscribeToTask"),
}


class Client:
    """Speaks one version of A2A. Results come without the name or the kind that they have in it."""

    def __init__(self, url: str, version: str) -> None:
        self.url, self.version = url, version
        self.send, self.stream, self.get, self.cancel, self.follow = NAMES[version]

    def post(self, method: str, params: Any, **more: Any) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params, **more}
        response = httpx.post(f"{self.url}/a2a", json=body, timeout=120)
        document = response.json()
        assert response.status_code == 200 and document["jsonrpc"] == "2.0" and document["id"] == 7
        return document

    def ask(self, text: str, context: str | None = None, **more: Any) -> dict[str, Any]:
        result = self.post(self.send, self.message(text, context, **more))["result"]
        return result["task"] if self.version == "1.0" else self.check_kind(result, "task")

    def message(self, text: str, context: str | None = None, **more: Any) -> dict[str, Any]:
        part, role = ({"kind": "text"}, "user") if self.version == "0.3" else ({}, "ROLE_USER")
        placed = {"contextId": context} if context else {}
        return {"message": {"messageId": "m", "role": role, "parts": [{**part, "text": text}], **placed}, **more}

    def check_kind(self, document: dict[str, Any], kind: str) -> dict[str, Any]:
        assert document["kind"] == kind
        return document

    def read_stream(self, method: str, params: Any) -> list[dict[str, Any]]:
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        with httpx.stream("POST", f"{self.url}/a2a", json=body, timeout=120) as response:
            return [json.loads(line[6:])["result"] for line in response.iter_lines() if line.startswith("data: ")]

    def state(self, name: str) -> str:
        return name if self.version == "0.3" else f"TASK_STATE_{name.upper()}"


@pytest.fixture(scope="module")
def url(home) -> Iterator[str]:
    with serving(home, *OFFER) as running:
        yield running


@pytest.fixture(params=list(NAMES))
def client(url, request) -> Client:
    return Client(url, request.param)


def test_the_card_is_read_without_a_token_and_says_where_and_how(client):
    card = httpx.get(f"{client.url}/.well-known/agent-card.json").json()
    assert card["url"] == f"{client.url}/a2a" and card["preferredTransport"] == "JSONRPC"
    assert {place["protocolVersion"] for place in card["supportedInterfaces"]} == set(NAMES)
    assert "security" not in card


def test_a_message_is_a_task_with_the_answer_and_its_trace(client, home):
    task = client.ask("say hello")
    assert task["status"]["state"] == client.state("completed")
    (artifact,) = task["artifacts"]
    assert [part["text"] for part in artifact["parts"]] == ["hello"]
    assert artifact["metadata"]["podium"]["trace"] == task["id"]
    with opened(home) as store:
        assert ended_row(store, task["id"]).state == "answered"
    again = client.post(client.get, {"id": task["id"]})["result"]
    assert {**again, "kind": "task"} == {**task, "kind": "task"}


def test_a_stream_shows_the_task_its_steps_and_the_answer_before_the_end(client):
    results = client.read_stream(client.stream, client.message("say hello"))
    if client.version == "0.3":
        assert [result["kind"] for result in results[:2]] == ["task", "status-update"]
        assert results[-2]["kind"] == "artifact-update" and results[-2]["artifact"]["parts"][0]["text"] == "hello"
        assert [result.get("final") for result in results if "final" in result][-2:] == [False, True]
        updates = [result for result in results if result["kind"] == "status-update"]
    else:
        assert list(results[0]) == ["task"] and list(results[-2]) == ["artifactUpdate"]
        updates = [result["statusUpdate"] for result in results if "statusUpdate" in result]
    sentences = [update["status"].get("message", {"parts": [{"text": ""}]})["parts"][0]["text"] for update in updates]
    assert any("Step 1 agent OK" in sentence for sentence in sentences)
    assert updates[-1]["status"]["state"] == client.state("completed")
    identity = results[0]["id"] if client.version == "0.3" else results[0]["task"]["id"]
    assert len(client.read_stream(client.follow, {"id": identity})) == len(results)


def test_messages_of_a_context_are_a_conversation(client, model):
    first = client.ask("say seven")
    client.ask("say eight", first["contextId"])
    assert "[user] say seven\n[assistant] seven\n\nNow:\nsay eight" in model.started[-1]
    other = client.ask("say nine")
    assert other["contextId"] != first["contextId"] and "seven" not in model.started[-1]


def test_a_run_that_is_deleted_takes_its_task_along(client, home, model):
    begin = datetime.now(UTC)
    task = client.ask("say secret")
    with opened(home) as store:
        ended_row(store, task["id"])
        forget(store, Sender(since=begin))
    assert client.post(client.get, {"id": task["id"]})["error"]["code"] == -32001
    client.ask("say on", task["contextId"])
    assert "secret" not in model.started[-1]


def test_a_client_may_leave_at_once_look_again_and_cancel(client, model):
    leave = {"blocking": False} if client.version == "0.3" else {"returnImmediately": True}
    question = f"wait 9{list(NAMES).index(client.version)}"
    task = client.ask(question, configuration=leave)
    assert task["status"]["state"] == client.state("working") and "artifacts" not in task
    deadline = time.monotonic() + 60
    while question not in model.started:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    canceled = client.post(client.cancel, {"id": task["id"]})["result"]
    assert canceled["status"]["state"] == client.state("canceled")
    refused = client.post(client.cancel, {"id": task["id"]})["error"]
    assert refused["code"] == -32002 and "cannot be canceled" in refused["message"]


@pytest.mark.parametrize(
    ("params", "code", "sentence"),
    [
        ({}, -32602, "message: "),
        ({"message": {"parts": []}}, -32602, "message.parts"),
        ({"message": {"parts": [{"text": " "}]}}, -32602, "the message has no text"),
        ({"message": {"parts": [{"url": "https://example.com/a.pdf"}]}}, -32005, "part 1 is neither text nor data"),
        ({"message": {"parts": [{"text": "say a"}], "taskId": "t"}}, -32004, "leave out taskId and send contextId"),
        ({"message": {"parts": [{"text": "say a"}]}, "metadata": {"podium": {"max_cost": -1}}}, -32602, "max_cost"),
    ],
)
def test_what_cannot_be_asked_is_named(client, params, code, sentence):
    error = client.post(client.send, params)["error"]
    assert error["code"] == code and sentence in error["message"] and "pydantic" not in error["message"]


def test_what_is_no_request_of_this_protocol_is_named(client):
    assert client.post("tasks/list", {})["error"]["code"] == -32601
    assert client.post(client.get, {"id": "strange"})["error"]["code"] == -32001
    long = json.dumps({"id": "x" * 1001, "method": client.get}).encode()
    for body, code in ((b"{", -32700), (b"[]", -32600), (b'{"method": 1}', -32600), (long, -32600)):
        document = httpx.post(f"{client.url}/a2a", content=body).json()
        assert document["error"]["code"] == code and document["id"] is None


def test_parts_of_data_are_read_and_limits_hold(client, model):
    parts = [{"text": "say it"}, {"data": {"item": "tea"}}]
    client.post(client.send, {"message": {"parts": parts}})
    assert model.started[-1].endswith('{"item": "tea"}')
    task = client.ask("wait 60", metadata={"podium": {"deadline_s": 0.3}})
    assert task["status"]["state"] == client.state("failed")
    assert task["id"] in task["status"]["message"]["parts"][0]["text"]


def test_tokens_are_needed_beyond_the_card_and_tasks_belong_to_their_owner(home):
    from studio.access.accounts import Tokens

    with opened(home) as store:
        tokens = [Tokens(store.engine).add(name) for name in ("ann", "bob")]
    with serving(home, *OFFER) as url:
        card = httpx.get(f"{url}/.well-known/agent-card.json").json()
        assert card["security"] == [{"bearer": []}] and card["securityRequirements"]
        ask = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": Client(url, "1.0").message("say hi")}
        assert httpx.post(f"{url}/a2a", json=ask).status_code == 401
        ann, bob = ({"authorization": f"Bearer {token}"} for token in tokens)
        task = httpx.post(f"{url}/a2a", json=ask, headers=ann, timeout=120).json()["result"]["task"]
        look = {**ask, "method": "GetTask", "params": {"id": task["id"]}}
        assert httpx.post(f"{url}/a2a", json=look, headers=ann).json()["result"] == task
        assert httpx.post(f"{url}/a2a", json=look, headers=bob).json()["error"]["code"] == -32001
    with opened(home) as store:
        for name in ("ann", "bob"):
            Tokens(store.engine).remove(name)


def test_a_plan_that_waits_for_a_person_wants_input_and_ends_as_decided(home):
    with serving(home, *OFFER, "--mode", "review") as url:
        for decision, end in (("approve", "completed"), ("reject", "rejected")):
            client = Client(url, "0.3")
            task = client.ask("say yes")
            assert task["status"]["state"] == "input-required"
            assert f"/v1/approvals/{task['id']}" in task["status"]["message"]["parts"][0]["text"]
            httpx.post(f"{url}/v1/approvals/{task['id']}", json={"decision": decision}, timeout=120).raise_for_status()
            shown = client.post(client.get, {"id": task["id"]})["result"]
            assert shown["status"]["state"] == end
            assert (shown.get("artifacts", [{}])[0].get("name") == "answer") == (decision == "approve")
