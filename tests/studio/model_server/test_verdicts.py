"""Verdicts of clients on served answers, by the id of the completion or response."""

from __future__ import annotations

import json
import time

import pytest
from fastapi.testclient import TestClient

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from studio.access.accounts import Tokens
from studio.model_server.app import create_model_app
from studio.model_server.service import ServedModel
from tests.orchestrator.support.endpoint import Endpoint, endpoint, pool_of
from tests.studio.support.edge_home import home, model
from trainer.evaluation.judging import list_recorded_verdicts
from trainer.tasks.practice.traffic_record import change_traffic

__all__ = ["endpoint", "home", "model"]

pytestmark = pytest.mark.medium
CHAT = {"model": "m", "messages": [{"role": "user", "content": "say hello"}]}


@pytest.fixture
def store(home):
    store = open_store(find_home(str(home)))
    yield store
    store.close()


@pytest.fixture
def client(home):
    served = ServedModel("edge", "direct:agent", "m")
    app = create_model_app(open_store(find_home(str(home))), served, loopback=True)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


def test_a_completion_is_judged_by_its_id_and_the_verdict_can_be_changed(client, store):
    completion = client.post("/v1/chat/completions", json=CHAT).json()
    address, trace = f"/v1/verdicts/{completion['id']}", completion["podium"]["trace"]
    reply = client.post(address, json={"right": True}).json()
    assert reply == {
        "object": "verdict", "id": completion["id"], "trace": trace, "right": True, "expected": "hello", "retry": None,
    }  # fmt: skip
    assert store.traces.row(trace).correct is True
    assert client.post(address, json={"right": False}).json()["expected"] is None
    corrected = client.post(address, json={"answer": "good morning"}).json()
    assert (corrected["right"], corrected["expected"]) == (False, "good morning")
    assert store.traces.row(trace).correct is False
    assert list_recorded_verdicts(store.traces, "edge")[0].expected == "good morning"
    assert client.post(address, json={"answer": "Hello"}).json()["right"], "it is compared as a task's answer is"


def test_a_response_and_a_trace_are_judged_too(client):
    response = client.post("/v1/responses", json={"model": "m", "input": "say hello"}).json()
    assert client.post(f"/v1/verdicts/{response['id']}", json={"right": True}).json()["right"]
    trace = client.post("/v1/chat/completions", json=CHAT).headers["x-podium-trace"]
    assert client.post(f"/v1/verdicts/{trace}", json={"right": False}).json()["trace"] == trace


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "say right: true or false, or the right answer"),
        ({"right": True, "answer": "x"}, "not both"),
        ({"right": "perhaps"}, "right"),
        ({"verdict": 1}, "verdict"),
    ],
)
def test_a_verdict_that_says_nothing_is_refused_in_a_sentence(client, body, sentence):
    trace = client.post("/v1/chat/completions", json=CHAT).headers["x-podium-trace"]
    refused = client.post(f"/v1/verdicts/{trace}", json=body)
    assert refused.status_code == 400 and sentence in refused.json()["error"]["message"]


def test_only_who_asked_judges_an_answer(home, store):
    names = ("ada", "bob")
    ada, bob = ({"authorization": f"Bearer {Tokens(store.engine).add(name)}"} for name in names)
    try:
        served = ServedModel("edge", "direct:agent", "m")
        app = create_model_app(open_store(find_home(str(home))), served, loopback=True)
        with TestClient(app, base_url="http://127.0.0.1") as client:
            completion = client.post("/v1/chat/completions", json=CHAT, headers=ada).json()["id"]
            refused = client.post(f"/v1/verdicts/{completion}", json={"right": True}, headers=bob)
            assert refused.status_code == 404 and "of yours" in refused.json()["error"]["message"]
            nothing = client.post("/v1/verdicts/chatcmpl-000", json={"right": True}, headers=ada)
            assert nothing.status_code == 404
            assert client.post(f"/v1/verdicts/{completion}", json={"right": True}, headers=ada).status_code == 200
    finally:
        for name in names:
            Tokens(store.engine).remove(name)


def test_a_wrong_answer_is_tried_again_where_the_pool_may_learn_from_clients(home, store, endpoint, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(home))
    Endpoint.reply = staticmethod(
        lambda messages: json.dumps({"answer": "24" if "which is wrong" in messages[-1]["content"] else "12"})
    )
    pool = pool_of(endpoint, "boss", memory="rule", memory_retry=True).model_copy(update={"name": "tickets"})
    store.pools.save(pool)
    app = create_model_app(
        open_store(find_home(str(home))), ServedModel("tickets", "model:boss:plan", "m"), loopback=True
    )
    chat = {"model": "m", "messages": [{"role": "user", "content": "How much is a ticket for two?"}]}
    with TestClient(app, base_url="http://127.0.0.1") as client:
        traces = [client.post("/v1/chat/completions", json=chat).headers["x-podium-trace"] for _ in range(2)]
        assert client.post(f"/v1/verdicts/{traces[0]}", json={"answer": "24"}).json()["retry"] is None, "no consent"
        change_traffic("tickets", lambda record: record.model_copy(update={"clients": True}))
        retry = client.post(f"/v1/verdicts/{traces[1]}", json={"answer": "24"}).json()["retry"]
        deadline = time.monotonic() + 60
        while store.traces.episode(traces[1]).retried.state != "judged" and time.monotonic() < deadline:
            time.sleep(0.1)
    retried = store.traces.episode(traces[1]).retried
    assert (retried.episode, retried.correct) == (retry, True)
    assert store.traces.episode(retry).source == "served" and store.lessons.of_episode(traces[1]).retry == retry
