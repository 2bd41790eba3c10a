"""The a2a kind: messages and tasks of both versions of the protocol, over a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from pool_registry.actions import Action, Observation, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

Peer = tuple[str, list[dict[str, Any]], list[Any]]


@pytest.fixture
def peer() -> Iterator[Peer]:
    """An agent: its address, the requests that it got, and the results that it gives one after another."""
    requests: list[dict[str, Any]] = []
    results: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            requests.append({**body, "headers": {name.lower(): value for name, value in self.headers.items()}})
            raw = json.dumps({"jsonrpc": "2.0", "id": body["id"], **results.pop(0)}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/rpc", requests, results
    server.shutdown()
    server.server_close()


def ask(peer: Peer, *results: Any, **config: Any) -> Observation:
    peer[2][:] = results
    settings = {"url": peer[0], **config}
    worker = WorkerSpec(name="geo", kind="a2a", description="d", config=settings, timeout_s=20)

    async def call() -> Observation:
        async with live_pool(Pool(name="p", workers=(worker,))) as pool:
            return await pool.call(Action("geo", {"message": "Where is Oslo?"}))

    return asyncio.run(call())


def test_a_message_goes_out_and_its_answer_comes_back(peer):
    answer = {"kind": "message", "role": "agent", "messageId": "1", "parts": [{"kind": "text", "text": "In Norway."}]}
    assert ask(peer, {"result": answer}).value == "In Norway."
    [request] = peer[1]
    assert (request["method"], request["params"]["message"]["role"]) == ("message/send", "user")
    assert request["params"]["message"]["parts"] == [{"kind": "text", "text": "Where is Oslo?"}]


def test_a_task_is_asked_for_until_it_ends(peer):
    working = {"kind": "task", "id": "t1", "contextId": "c", "status": {"state": "working"}}
    parts = [{"kind": "text", "text": "Norway"}, {"kind": "file", "file": {"uri": "https://a.example.com/map.png"}}]
    done = {**working, "status": {"state": "completed"}, "artifacts": [{"artifactId": "a", "parts": parts}]}
    assert ask(peer, {"result": working}, {"result": done}).value == "Norway\n(a file: https://a.example.com/map.png)"
    assert [(row["method"], row["params"].get("id")) for row in peer[1]] == [
        ("message/send", None),
        ("tasks/get", "t1"),
    ]


def test_version_1_has_its_own_words(peer, monkeypatch):
    monkeypatch.setenv("GEO_KEY", "planted-4711")
    artifact = {"artifactId": "a", "parts": [{"data": {"country": "NO"}}]}
    task = {"id": "t", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [artifact]}
    assert ask(peer, {"result": {"task": task}}, version="1.0", api_key="env:GEO_KEY").value == {"country": "NO"}
    [request] = peer[1]
    assert (request["method"], request["params"]["message"]["role"]) == ("SendMessage", "ROLE_USER")
    assert request["headers"]["a2a-version"] == "1.0" and request["headers"]["authorization"] == "Bearer planted-4711"
    answer = {"message": {"role": "ROLE_AGENT", "messageId": "1", "parts": [{"text": "Norway"}]}}
    assert ask(peer, {"result": answer}, version="1.0").value == "Norway"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"error": {"code": -32601, "message": "Method not found"}}, "Method not found"),
        ({"result": {"id": "t", "status": {"state": "failed", "message": {"parts": [{"text": "no map"}]}}}}, "no map"),
        ({"result": {"id": "t", "status": {"state": "TASK_STATE_INPUT_REQUIRED"}}}, "input required"),
        ({"result": {}}, "neither a message nor a task"),
        ({"result": None}, "neither a message nor a task"),
    ],
)
def test_what_is_no_answer_fails_with_the_reason_and_is_not_sent_again(peer, answer, why):
    observation = ask(peer, answer)
    assert observation.status is Status.EXEC_ERR and observation.error is not None
    assert why in observation.error.message and len(peer[1]) == 1
