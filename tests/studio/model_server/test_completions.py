"""The older completions API: prompts as questions, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from studio.model_server.apis.completions import MAX_PROMPTS, CompletionRequest
from studio.model_server.app import create_model_app
from studio.model_server.errors import ApiError
from studio.model_server.service import ServedModel
from tests.studio.support.edge_home import home, model
from tests.studio.support.edge_model import TOKENS_IN, TOKENS_OUT
from tests.studio.support.replayed_clients import read_documents

__all__ = ["home", "model"]

MODEL = "podium-edge"


@pytest.fixture(scope="module")
def client(home: Path) -> Iterator[TestClient]:
    app = create_model_app(open_store(find_home(home)), ServedModel("edge", "direct:agent"), loopback=True)
    with TestClient(app, base_url="http://127.0.0.1") as running:
        yield running


@pytest.mark.medium
def test_a_prompt_is_answered_with_usage_and_trace(client):
    answer = client.post("/v1/completions", json={"model": MODEL, "prompt": "say hello"})
    document = answer.json()
    assert document["object"] == "text_completion" and document["id"] == f"cmpl-{answer.headers['x-podium-trace']}"
    assert [(one["index"], one["text"], one["finish_reason"]) for one in document["choices"]] == [(0, "hello", "stop")]
    assert document["usage"]["total_tokens"] == TOKENS_IN + TOKENS_OUT
    verdict = client.post(f"/v1/verdicts/{document['id']}", json={"right": True})
    assert verdict.status_code in (200, 409), "the id names the trace"


@pytest.mark.medium
def test_each_prompt_of_a_list_has_a_choice_and_a_trace_of_its_own(client):
    prompts = ["say one", "say two", "say three"]
    document = client.post("/v1/completions", json={"model": MODEL, "prompt": prompts}).json()
    assert [(one["index"], one["text"]) for one in document["choices"]] == [(0, "one"), (1, "two"), (2, "three")]
    assert len({one["podium"]["trace"] for one in document["choices"]}) == 3
    assert document["usage"]["total_tokens"] == 3 * (TOKENS_IN + TOKENS_OUT)


@pytest.mark.medium
def test_a_stream_holds_each_text_its_end_and_the_usage(client):
    asked = {
        "model": MODEL,
        "prompt": ["say one", "say two"],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    answer = client.post("/v1/completions", json=asked)
    chunks = read_documents(answer)
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert [(one["index"], one["text"], one["finish_reason"]) for one in choices] == [
        (0, "one", None), (0, "", "stop"), (1, "two", None), (1, "", "stop"),
    ]  # fmt: skip
    assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["total_tokens"] == 2 * (TOKENS_IN + TOKENS_OUT)
    assert answer.text.endswith("data: [DONE]\n\n") and len({chunk["id"] for chunk in chunks}) == 1


@pytest.mark.medium
def test_echo_stop_and_max_tokens_are_kept_and_others_reported(client):
    asked = {"model": MODEL, "prompt": "say one END two", "stop": "END", "echo": True, "best_of": 3, "suffix": "x"}
    answer = client.post("/v1/completions", json={**asked, "tools": [{"type": "function"}]})
    choice = answer.json()["choices"][0]
    assert choice["text"] == "say one END twoone " and set(choice["podium"]["ignored"]) == {
        "best_of",
        "suffix",
        "tools",
    }
    cut = client.post("/v1/completions", json={"model": MODEL, "prompt": "say " + "word " * 50, "max_tokens": 5})
    assert cut.json()["choices"][0]["finish_reason"] == "length"


@pytest.mark.medium
def test_a_prompt_without_an_answer_fails_the_request_with_the_reason(client):
    asked = {"model": MODEL, "prompt": ["say one", "wait 30"], "podium": {"deadline_s": 0.3}}
    answer = client.post("/v1/completions", json=asked)
    assert answer.status_code >= 400 and answer.json()["error"]["message"]
    streamed = client.post("/v1/completions", json={**asked, "stream": True})
    assert "error" in read_documents(streamed)[-1]


@pytest.mark.parametrize(
    ("prompt", "sentence"),
    [
        ("", "no text that could be answered"),
        ("  \n", "no text that could be answered"),
        ([], "empty list"),
        ([1, 2, 3], "numbers of tokens are not read"),
        ([["say one"]], "numbers of tokens are not read"),
        (["say one", ""], r"prompt\[1\] has no text"),
        (["x"] * (MAX_PROMPTS + 1), f"{MAX_PROMPTS} can be answered"),
    ],
)
def test_prompts_that_cannot_be_answered_are_refused_in_words(prompt, sentence):
    with pytest.raises(ApiError, match=sentence):
        CompletionRequest(model=MODEL, prompt=prompt).episode_requests()


@pytest.mark.medium
def test_a_request_without_a_prompt_names_the_field(client):
    answer = client.post("/v1/completions", json={"model": MODEL})
    assert answer.status_code == 400 and answer.json()["error"]["message"] == "prompt: this is missing"
