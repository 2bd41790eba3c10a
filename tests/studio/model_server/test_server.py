"""A served pool in a process of its own, as official clients use it: streaming and not, many at once, one that
goes away, and what is refused."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import httpx
import openai
import pytest
import uvicorn
from openai import AsyncOpenAI, OpenAI
from typer.testing import CliRunner

from orchestrator.errors import OrchestratorError
from pool_registry.errors import PoolError
from studio.__main__ import app
from studio.access.accounts import Tokens
from studio.access.body_limit import CONVERSATION
from studio.model_server import server_record
from tests.studio.support.edge_home import home, model
from tests.studio.support.edge_model import TOKENS_IN, TOKENS_OUT
from tests.studio.support.served import PRICE_CALL, ended_row, free_port, opened, serving
from trainer.tasks import find_task

pytestmark = pytest.mark.medium

__all__ = ["home", "model"]

MODEL = "podium-edge"
ASK = {"model": MODEL, "messages": [{"role": "user", "content": "say hello"}]}
REFERENCE = "sk-of-the-tests-4711"


@pytest.fixture(scope="module")
def url(home: Path) -> Iterator[str]:
    with serving(home, "--pool", "edge", "--orchestrator", "direct:agent") as running:
        yield running


@pytest.fixture(scope="module")
def client(url: str) -> OpenAI:
    return OpenAI(base_url=f"{url}/v1", api_key="none is needed", max_retries=0, timeout=120)


def test_the_model_is_listed(client):
    assert [each.id for each in client.models.list()] == [MODEL]
    assert client.models.retrieve(MODEL).owned_by == "podium"
    with pytest.raises(openai.NotFoundError, match=MODEL):
        client.models.retrieve("gpt-9")


def test_an_answer_with_the_usage_of_all_workers_and_its_trace(client, home):
    raw = client.chat.completions.with_raw_response.create(**ASK)
    trace, done = raw.headers["x-podium-trace"], raw.parse()
    assert done.choices[0].message.content == "hello" and done.choices[0].finish_reason == "stop"
    assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (TOKENS_IN, TOKENS_OUT)
    assert done.usage.total_tokens == TOKENS_IN + TOKENS_OUT and done.usage.cost == PRICE_CALL
    with opened(home) as store:
        row = ended_row(store, trace)
        assert (row.answer, row.state, row.pool, row.orchestrator) == ("hello", "answered", "edge", "direct:agent")
        assert row.query == "say hello"


def test_a_stream_tells_the_steps_as_reasoning_and_then_the_answer(client):
    stream = client.chat.completions.create(**ASK, stream=True, stream_options={"include_usage": True})
    chunks = list(stream)
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    kinds = [
        "reasoning" if hasattr(each, "reasoning_content") else "content"
        for each in deltas
        if each.content or hasattr(each, "reasoning_content")
    ]
    assert kinds == ["reasoning"] * 3 + ["content"]
    reasoning = "".join(getattr(each, "reasoning_content", "") for each in deltas)
    assert "Round 1: 1 agent\nStep 1 agent: say hello\nStep 1 agent OK in " in reasoning
    assert "".join(each.content or "" for each in deltas) == "hello"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage.total_tokens == TOKENS_IN + TOKENS_OUT and len({chunk.id for chunk in chunks}) == 1


def test_progress_arrives_while_the_answer_is_not_there_yet(client):
    asked = {**ASK, "messages": [{"role": "user", "content": "wait 1.5"}]}
    began, seen = time.monotonic(), {}
    for chunk in client.chat.completions.create(**asked, stream=True):
        for name in ("reasoning_content", "content"):
            if getattr(chunk.choices[0].delta, name, None):
                seen.setdefault(name, time.monotonic() - began)
    assert seen["content"] - seen["reasoning_content"] > 1.0


def test_the_responses_api_whole_and_streamed(client):
    whole = client.responses.create(model=MODEL, input="say hello")
    assert whole.output_text == "hello" and whole.status == "completed"
    assert (whole.usage.input_tokens, whole.usage.output_tokens) == (TOKENS_IN, TOKENS_OUT)
    events = list(client.responses.create(model=MODEL, input="say hello", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events]
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    assert kinds.index("response.reasoning_summary_text.done") < kinds.index("response.output_text.delta")
    last = events[-1].response
    assert last.output_text == "hello" and [item.type for item in last.output] == ["reasoning", "message"]
    assert "Step 1 agent OK" in last.output[0].summary[0].text
    with client.responses.stream(model=MODEL, input="say hello") as stream:  # the SDK's own accumulator
        assert stream.get_final_response().output_text == "hello"


def test_earlier_turns_reach_the_agent_as_context(client, model):
    talk = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is 1 + 1?"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "say three"},
    ]
    assert client.chat.completions.create(model=MODEL, messages=talk).choices[0].message.content == "three"
    assert "[system] Be brief.\n[user] What is 1 + 1?\n[assistant] 2\n\nNow:\nsay three" in model.started[-1]


@pytest.fixture(scope="module")
def langchain_openai() -> ModuleType:
    """LangChain's client, imported without garbage collections: pytest rewrites its modules, and where a collection
    runs code in the middle of that CPython 3.11 gives up with "AST constructor recursion depth mismatch"."""
    gc.disable()
    try:
        return import_module("langchain_openai")
    finally:
        gc.enable()


def test_langchain_talks_to_it(url, langchain_openai):
    chat = langchain_openai.ChatOpenAI(base_url=f"{url}/v1", api_key="none", model=MODEL, max_retries=0, timeout=120)
    answer = chat.invoke([("system", "Be brief."), ("user", "say hello")])
    assert answer.content == "hello" and answer.usage_metadata["total_tokens"] == TOKENS_IN + TOKENS_OUT
    assert "".join(part.content for part in chat.stream("say hello again")) == "hello again"
    over = langchain_openai.ChatOpenAI(
        base_url=f"{url}/v1", api_key="none", model=MODEL, use_responses_api=True, timeout=120
    )
    assert over.invoke("say hello").text == "hello"


def test_fifty_at_once_and_the_one_that_goes_away_is_cancelled(url, home, model):
    """The lost one streams; its worker's call is cut off, its trace says so, the others get their answers."""

    async def ask(client: AsyncOpenAI, number: int) -> str | None:
        asked = [{"role": "user", "content": f"say {number}" if number % 2 else f"wait 0.{number:02}"}]
        if number % 3:
            done = await client.chat.completions.create(model=MODEL, messages=asked)
            return done.choices[0].message.content
        stream = await client.chat.completions.create(model=MODEL, messages=asked, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    async def leave() -> str:
        asked = {**ASK, "messages": [{"role": "user", "content": "wait 100"}], "stream": True}
        async with (
            httpx.AsyncClient(timeout=120) as plain,
            plain.stream("POST", f"{url}/v1/chat/completions", json=asked) as answer,
        ):
            async for line in answer.aiter_lines():
                if "Step 1" in line:  # is said before its request is sent
                    await asyncio.to_thread(_until, lambda: "wait 100" in model.started)
                    break
        return answer.headers["x-podium-trace"]

    async def main() -> tuple[list[str | None], str]:
        async with AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=120) as client:
            answers, lost = asyncio.gather(*(ask(client, k) for k in range(50))), asyncio.create_task(leave())
            return await answers, await lost

    answers, lost = asyncio.run(main())
    assert answers == [str(k) if k % 2 else f"0.{k:02}" for k in range(50)]
    with opened(home) as store:
        assert ended_row(store, lost).state == "stopped"
    _until(lambda: "wait 100" in model.hung_up)


def test_a_client_that_waits_for_a_whole_answer_and_is_killed_is_cancelled(url, home, model):
    code = (
        "import sys, openai\n"
        "client = openai.OpenAI(base_url=sys.argv[1], api_key='none', max_retries=0)\n"
        "client.chat.completions.create(model=sys.argv[2], messages=[{'role': 'user', 'content': 'wait 99'}])"
    )
    lost = subprocess.Popen([sys.executable, "-c", code, f"{url}/v1", MODEL])
    _until(lambda: "wait 99" in model.started)
    lost.send_signal(signal.SIGKILL)
    lost.wait()
    _until(lambda: "wait 99" in model.hung_up)
    with opened(home) as store:
        _until(lambda: any(row.state == "stopped" and row.query == "wait 99" for row in _rows(store)))


def test_limits_of_the_request_end_its_episode(client):
    asked = {**ASK, "messages": [{"role": "user", "content": "wait 60"}]}
    with pytest.raises(openai.InternalServerError) as late:
        client.chat.completions.create(**asked, extra_body={"podium": {"deadline_s": 0.3}})
    assert late.value.status_code == 504 and late.value.code == "deadline" and "0.3 s" in str(late.value)
    assert late.value.response.headers["x-podium-trace"] and late.value.response.headers["x-should-retry"] == "false"
    with pytest.raises(openai.APIError, match=r"0\.3 s"):
        list(client.chat.completions.create(**asked, stream=True, extra_body={"podium": {"deadline_s": 0.3}}))
    events = list(
        client.responses.create(model=MODEL, input="wait 60", stream=True, extra_body={"podium": {"deadline_s": 0.3}})
    )
    assert events[-1].type == "response.failed" and "deadline" in events[-1].response.error.message


@pytest.mark.parametrize("route", ["chat/completions", "responses"])
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "invalid_json"),
        (b"[" * 100_000, 400, "invalid_json"),
        (b"[]", 400, "invalid_json"),
        (b'{"model": "podium-edge"}', 400, "invalid_value"),
        ({"model": "gpt-9"}, 404, "model_not_found"),
        ({"tools": {"type": "function"}}, 400, "invalid_value"),
        (b" " * (CONVERSATION.size + 1), 413, "request_too_large"),
    ],
    ids=["half", "deep", "list", "nothing asked", "another model", "tools", "large"],
)
def test_what_is_wrong_is_told_in_the_apis_own_format(url, route, body, status, code):
    if isinstance(body, dict):
        asked = ASK if route == "chat/completions" else {"model": MODEL, "input": "say hello"}
        body = json.dumps({**asked, **body}).encode()
    answer = httpx.post(f"{url}/v1/{route}", content=body, timeout=60)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["code"] == code and error["type"] == "invalid_request_error" and len(error["message"]) > 10


def test_a_route_that_is_not_there_and_a_foreign_page_are_refused(url):
    missing = httpx.post(f"{url}/v1/embeddings", json={})
    assert missing.status_code == 404 and "/v1/embeddings" in missing.json()["error"]["message"]
    assert (
        httpx.post(f"{url}/v1/chat/completions", json=ASK, headers={"origin": "http://evil.example"}).status_code == 403
    )
    assert httpx.post(f"{url}/v1/chat/completions", json=ASK, headers={"host": "evil.example"}).status_code == 400


def test_a_token_is_needed_from_the_moment_there_is_one_and_names_the_trace(home, model):
    """On an address that others reach: whoever found it by another name needs the token all the same."""
    with serving(home, "--pool", "edge", "--orchestrator", "direct:agent", "--token", "env:SERVE_TEST", "--at-once",
                 "1", "--name", "mine", "--host", "0.0.0.0", SERVE_TEST=REFERENCE) as url:  # fmt: skip

        def client(key: str) -> OpenAI:
            return OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=120)

        asked = {"model": "mine", "messages": [{"role": "user", "content": "say hello"}]}
        with opened(home) as store:
            token = Tokens(store.engine).add("notebook")
            for key, name in ((REFERENCE, "env:SERVE_TEST"), (token, "notebook")):
                raw = client(key).chat.completions.with_raw_response.create(**asked)
                assert ended_row(store, raw.headers["x-podium-trace"]).user_name == name
            for key in ("wrong", token[:-1], "é" * 20):
                answer = httpx.get(f"{url}/v1/models", headers={"authorization": f"Bearer {key}".encode()})
                assert answer.status_code == 401 and answer.json()["error"]["code"] == "invalid_api_key"
            assert httpx.post(f"{url}/mcp", json={}, headers={"host": "studio.example"}).status_code == 401
            assert httpx.get(f"{url}/health").json() == {"status": "ok"}
            stream = client(token).chat.completions.create(
                model="mine", messages=[{"role": "user", "content": "wait 90"}], stream=True
            )
            next(iter(stream))
            with pytest.raises(openai.RateLimitError, match="1 requests"):
                client(token).chat.completions.create(**asked)
            stream.close()
            Tokens(store.engine).remove("notebook")
            with pytest.raises(openai.AuthenticationError):
                client(token).models.list()


def test_running_servers_are_on_record_and_stop_when_asked(home):
    from pool_registry.storage.data_folder import find_home

    place = find_home(home)
    with serving(home, "--pool", "edge", "--orchestrator", "direct:agent") as url:
        port = int(url.rpartition(":")[2])
        _until(lambda: any(one.port == port and one.state == "ready" for one in server_record.list_servers(place)))
        found = next(one for one in server_record.list_servers(place) if one.port == port)
        assert (found.pool, found.model, found.url) == ("edge", MODEL, f"{url}/v1")
        server_record.stop_server(place, port)
        _until(lambda: all(one.port != port for one in server_record.list_servers(place)))
    assert not (place.root / "serve" / f"{port}.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--pool", "nope"), "nope"),
        (("--orchestrator", "nope"), "nope"),
        (("--orchestrator", "oracle"), "oracle"),
        (("--token", "env:NOT_SET_ANYWHERE"), "NOT_SET_ANYWHERE"),
        (("--host", "0.0.0.0"), "tokens add"),
        (("--max-cost", "-1"), "--max-cost"),
    ],
)
def test_what_cannot_be_served_is_told_before_the_port_is_opened(tmp_path, monkeypatch, arguments, said):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))  # the command chooses it for its whole process
    monkeypatch.setattr(uvicorn.Server, "run", lambda _: pytest.fail("the port was opened"))
    command = ["serve", "--port", str(free_port()), "--home", str(tmp_path), *arguments]
    with pytest.raises((PoolError, OrchestratorError), match=said):
        CliRunner().invoke(app, command, catch_exceptions=False)


@pytest.mark.slow
def test_the_shipped_orchestrator_plans_and_answers_a_query_of_its_pool(tmp_path):
    task = find_task("itinerary", 3, "test", 0)
    with serving(tmp_path, "--pool", "starter", "--orchestrator", "starter-grpo") as url:
        client = OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=280)
        chunks = client.chat.completions.create(
            model="podium-starter", messages=[{"role": "user", "content": task.query}], stream=True
        )
        deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    reasoning = "".join(getattr(each, "reasoning_content", "") for each in deltas)
    assert reasoning.count(" OK in ") >= 3 and "(sees " in reasoning
    assert "".join(each.content or "" for each in deltas).endswith(f" in US: {task.expected}")


def _until(true, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.05)


def _rows(store):
    from orchestrator.traces.store import TraceFilter

    return store.traces.search(TraceFilter(pool="edge"))
