"""What official clients and the usual front ends send, replayed against the real application; every answer is checked
with the types of the official client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from studio.model_server.app import create_model_app
from studio.model_server.request import ChatRequest
from studio.model_server.service import ServedModel
from tests.studio.support.edge_home import home, model
from tests.studio.support.replayed_clients import ClientRequests, read_client_requests, read_documents, replay

pytestmark = pytest.mark.medium

__all__ = ["home", "model"]

PAGE = "http://localhost:3000"  # the origin of the client `browser`
RECORDED = read_client_requests()
EVENTS: TypeAdapter[object] = TypeAdapter(ResponseStreamEvent)


@pytest.fixture(scope="module")
def client(home: Path) -> Iterator[TestClient]:
    served = ServedModel("edge", "direct:agent")
    app = create_model_app(open_store(find_home(home)), served, loopback=True, origins=(PAGE,))
    with TestClient(app, base_url="http://127.0.0.1") as running:
        yield running


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda one: f"{one.client}-{one.feature}")
def test_a_clients_requests_are_answered_in_its_own_types(client, recorded: ClientRequests):
    answers = replay(client, recorded)
    for request, answer in zip(recorded.requests, answers, strict=True):
        assert answer.status_code == 200, answer.text
        for document in read_documents(answer):
            check_type(request["path"], request.get("body", {}), document)
    check_feature(recorded, [document for answer in answers for document in read_documents(answer)])


def test_every_client_has_the_usual_features():
    features = {(one.client, one.feature) for one in RECORDED}
    for name in ("openai-python", "openai-node", "langchain-openai", "pydantic-ai", "litellm", "open-webui"):
        assert {(name, "chat"), (name, "streaming"), (name, "tools")} <= features, name
    assert len(features) > 40


def find_recorded(client: str, feature: str) -> ClientRequests:
    return next(one for one in RECORDED if (one.client, one.feature) == (client, feature))


def check_type(path: str, body: dict, document: dict) -> None:
    """Fail unless the official client's types read the document."""
    if path == "/v1/chat/completions":
        kind = ChatCompletionChunk if body.get("stream") else ChatCompletion
        kind.model_validate(document, strict=True) if kind is ChatCompletion else kind.model_validate(document)
    elif path == "/v1/completions":
        check_completion(document)
    elif body.get("stream"):
        EVENTS.validate_python(document)
    elif path.startswith("/v1/responses"):
        Response.model_validate(document)


def check_completion(document: dict) -> None:
    """Fail unless the type of completions reads it; in chunks but the last the API has null for the reason to end."""
    choices = [{**choice, "finish_reason": choice["finish_reason"] or "stop"} for choice in document["choices"]]
    Completion.model_validate({**document, "choices": choices}, strict=True)


def check_feature(recorded: ClientRequests, documents: list[dict]) -> None:
    """Fail unless the answers hold what the feature is about."""
    text = json.dumps(documents)
    if "tool" in recorded.feature:
        assert "get_weather" in text and '"call_' in text
        if "choice" not in recorded.feature:
            assert "21 degrees in Paris" in text
    elif "structured" in recorded.feature:
        assert "word" in text and "count" in text
    elif recorded.feature not in ("models", "preflight"):
        assert "hello" in text or '\\"a\\": 1' in text


def test_the_episode_goes_on_where_the_clients_tool_was_called(client):
    """One trace holds the call of the client's tool and what came after."""
    recorded = find_recorded("openai-python", "tools")
    first, second = replay(client, recorded)
    assert first.headers["x-podium-trace"] == second.headers["x-podium-trace"]
    assert first.json()["choices"][0]["finish_reason"] == "tool_calls"
    usages = [one.json()["usage"]["total_tokens"] for one in (first, second)]
    assert usages[0] > 0 and usages[1] > 0, "each request has its own share of the usage"


def test_a_streamed_response_hands_calls_over_and_goes_on(client):
    function = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}
    asked = {"model": "podium-edge", "tools": [function], "stream": True}
    first = read_documents(client.post("/v1/responses", json={**asked, "input": 'call get_weather {"city": "Rome"}'}))
    done = next(event for event in first if event["type"] == "response.function_call_arguments.done")
    assert json.loads(done["arguments"]) == {"city": "Rome"} and done["name"] == "get_weather"
    response = first[-1]["response"]
    assert first[-1]["type"] == "response.completed"
    output = {"type": "function_call_output", "call_id": response["output"][-1]["call_id"], "output": "warm"}
    second = read_documents(
        client.post("/v1/responses", json={**asked, "input": [output], "previous_response_id": response["id"]})
    )
    for event in [*first, *second]:
        EVENTS.validate_python(event)
    assert second[-1]["response"]["output"][-1]["content"][0]["text"].endswith("warm")


def test_outputs_of_calls_that_nobody_waits_for_are_part_of_the_conversation(client, model):
    call = {"id": "call_gone_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "say it is warm"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_gone_1", "content": "21 degrees"},
    ]
    answer = client.post("/v1/chat/completions", json={"model": "podium-edge", "messages": messages})
    assert answer.json()["choices"][0]["message"]["content"] == "it is warm"
    assert "[tool] 21 degrees" in model.bodies[-1]["messages"][-1]["content"]


def test_a_strangers_outputs_do_not_reach_an_episode(client):
    recorded = find_recorded("openai-python", "tools")
    body = recorded.requests[0]["body"]
    call = client.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["tool_calls"][0]
    output = {"role": "tool", "tool_call_id": call["id"], "content": "21 degrees in Paris"}
    request = ChatRequest.model_validate({**body, "messages": [*body["messages"], output]}).episode_request()
    service = client.app.state.service
    assert client.portal.call(service._resume, request, "stranger") is None
    assert client.portal.call(service._resume, request, "") is not None


def test_settings_reach_the_agents_and_what_has_no_effect_is_named(client, model):
    asked = {"model": "podium-edge", "messages": [{"role": "user", "content": "say one END two"}]}
    answer = client.post(
        "/v1/chat/completions",
        json={**asked, "temperature": 0.1, "seed": 5, "reasoning_effort": "low", "stop": ["END"], "n": 3, "x_y": 1},
    )
    assert answer.json()["choices"][0]["message"]["content"] == "one "
    sent = model.bodies[-1]
    assert (sent["temperature"], sent["seed"], sent["reasoning_effort"]) == (0.1, 5, "low")
    assert answer.headers["x-podium-ignored"] == "n, x_y" and set(answer.json()["podium"]["ignored"]) == {"n", "x_y"}
    client.post("/v1/chat/completions", json=asked)
    assert "seed" not in model.bodies[-1] and model.bodies[-1]["temperature"] != 0.1


def test_max_tokens_limits_the_answer_and_max_total_tokens_everything(client):
    asked = {"model": "podium-edge", "messages": [{"role": "user", "content": "say " + "word " * 100}]}
    cut = client.post("/v1/chat/completions", json={**asked, "max_tokens": 5}).json()["choices"][0]
    assert cut["finish_reason"] == "length" and cut["message"]["content"] == ("word " * 100)[:20]
    spent = client.post("/v1/chat/completions", json={**asked, "max_total_tokens": 1})
    assert spent.status_code == 200 and spent.json()["choices"][0]["finish_reason"] in ("length", "stop")
    response = client.post(
        "/v1/responses", json={"model": "podium-edge", "input": "say aaaa bbbb", "max_output_tokens": 1}
    )
    document = response.json()
    assert document["status"] == "incomplete" and document["incomplete_details"] == {"reason": "max_output_tokens"}


def test_an_answer_that_cannot_be_brought_into_its_form_is_an_error(client):
    schema = {"type": "object", "properties": {"a": {"enum": []}, "b": {"type": "string"}}, "required": ["a", "b"]}
    asked = {
        "model": "podium-edge",
        "messages": [{"role": "user", "content": "say no"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    }
    answer = client.post("/v1/chat/completions", json=asked)
    assert answer.status_code == 422 and answer.json()["error"]["code"] == "invalid_answer"


def test_responses_are_kept_cancelled_and_forgotten(client):
    asked = {"model": "podium-edge", "input": "say hello"}
    kept = client.post("/v1/responses", json=asked).json()
    assert client.get(f"/v1/responses/{kept['id']}").json() == kept
    assert client.get(f"/v1/responses/{kept['id']}/input_items").json()["data"][0]["content"][0]["text"] == "say hello"
    assert client.delete(f"/v1/responses/{kept['id']}").json()["deleted"]
    lost = {**asked, "previous_response_id": kept["id"]}
    assert client.post("/v1/responses", json=lost).status_code == 404
    unkept = client.post("/v1/responses", json={**asked, "store": False}).json()
    assert client.get(f"/v1/responses/{unkept['id']}").status_code == 404
    assert client.get("/v1/responses/resp_..%2Fx").status_code == 404
    begun = client.post("/v1/responses", json={**asked, "input": "wait 60", "background": True}).json()
    assert begun["status"] == "in_progress", begun
    ended = client.post(f"/v1/responses/{begun['id']}/cancel").json()
    assert ended["status"] == "cancelled", ended


def test_what_the_orchestrator_cannot_take_is_answered_by_the_pools_fallback(home):
    """`starter-grpo` has learnt four kinds of query, and this is none of them."""
    app = create_model_app(open_store(find_home(home)), ServedModel("edge", "starter-grpo"), loopback=True)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        asked = {"model": "podium-edge", "messages": [{"role": "user", "content": "Hello!"}]}
        answer = client.post("/v1/chat/completions", json=asked)
        assert answer.status_code == 200 and answer.json()["choices"][0]["message"]["content"]
        assert "no task" in answer.json()["podium"]["fallback"]


def test_a_message_of_images_alone_is_answered_by_what_can_be_read(client, model):
    asked = len(model.bodies)
    image = {"type": "input_image", "image_url": "data:,"}
    answer = client.post(
        "/v1/responses", json={"model": "podium-edge", "input": [{"role": "user", "content": [image]}]}
    )
    assert answer.status_code == 200 and answer.headers["x-podium-ignored"] == "content.input_image"
    text = answer.json()["output"][-1]["content"][0]["text"]
    assert text.startswith("I read text only, and your message holds an image") and len(model.bodies) == asked
    chat = {"model": "podium-edge", "messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}
    answer = client.post("/v1/chat/completions", json=chat)
    assert "holds a recording" in answer.json()["choices"][0]["message"]["content"]
