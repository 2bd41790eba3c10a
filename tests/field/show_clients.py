"""Cases of clients of a served pool: what their packages sent, sent again."""

from __future__ import annotations

from fastapi.testclient import TestClient

from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from studio.model_server.app import create_model_app
from studio.model_server.service import ServedModel
from tests.field.shows import Context, shows
from tests.orchestrator.presentation.test_present_answer import present
from tests.studio.support.replayed_clients import ClientRequests, read_client_requests, read_documents, replay

# As @ai-sdk/openai-compatible and @ai-sdk/openai write them.
VERCEL_CHAT = {
    "model": "podium-edge",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "say hello"}]},
    ],
}
VERCEL_RESPONSE = {
    "model": "podium-edge",
    "input": [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "say hello"}]},
    ],
    "store": True,
}


def get_client(request: Context) -> TestClient:
    client: TestClient = request.getfixturevalue("client")
    return client


def replay_all(request: Context, client: str, *features: str) -> None:
    """Send what a client sends for its features; every answer is one of success with something in it."""
    recorded = [one for one in read_client_requests() if one.client == client and one.feature in features]
    assert len(recorded) == len(features)
    for one in recorded:
        check_answers(get_client(request), one)


def check_answers(client: TestClient, recorded: ClientRequests) -> None:
    for answer in replay(client, recorded):
        assert answer.status_code == 200, (recorded.feature, answer.text)
        assert read_documents(answer)


@shows("OpenAI's and Vercel's JavaScript")
def _show_javascript(request: Context) -> None:
    replay_all(request, "openai-node", "chat", "streaming", "tools", "structured")
    served = get_client(request)
    plain = served.post("/v1/chat/completions", json=VERCEL_CHAT)
    assert plain.json()["choices"][0]["message"]["content"] == "hello"
    usage = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = read_documents(served.post("/v1/chat/completions", json={**VERCEL_CHAT, **usage}))
    deltas = [choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]]
    assert "".join(deltas) == "hello" and chunks[-1]["usage"]["total_tokens"]
    response = served.post("/v1/responses", json=VERCEL_RESPONSE)
    assert response.json()["output"][-1]["content"][0]["text"] == "hello"
    assert "response.completed" in served.post("/v1/responses", json={**VERCEL_RESPONSE, "stream": True}).text


@shows("LangChain")
def _show_langchain(request: Context) -> None:
    replay_all(request, "langchain-openai", "chat", "streaming", "tools", "tool-choice")


@shows("LiteLLM")
def _show_litellm(request: Context) -> None:
    replay_all(request, "litellm", "chat", "streaming", "tools", "json-object")


@shows("a tool that returns an object")
def _show_object(_: Context) -> None:
    text = present("$1", ("get_stock", {"item": "tea"}, {"item": "tea", "stock": 12}))
    assert "12" in text and "{" not in text, text


@shows("a browser client")
def _show_browser(request: Context) -> None:
    page, home = "http://localhost:3000", request.getfixturevalue("home")
    served = ServedModel("edge", "direct:agent")
    app = create_model_app(open_store(find_home(home)), served, loopback=True, origins=(page,))
    wish = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
    with TestClient(app, base_url="http://127.0.0.1") as client:
        asked = client.options("/v1/chat/completions", headers={"origin": page, **wish})
        assert asked.status_code == 200 and asked.headers["access-control-allow-origin"] == page
        sent = client.post("/v1/chat/completions", json=VERCEL_CHAT, headers={"origin": page})
        assert sent.status_code == 200 and sent.headers["access-control-allow-origin"] == page
