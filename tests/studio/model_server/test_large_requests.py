"""Requests of very many pieces: each is answered or refused at once, and no other client waits for it."""

from __future__ import annotations

import gc
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from studio.access import body_limit
from studio.access.body_limit import CONVERSATION
from studio.model_server import request
from studio.model_server.client_tools import choose_worker_name
from studio.model_server.conversation import MAX_PIECES, ConversationMessage, read_question
from studio.model_server.errors import ApiError
from studio.model_server.request import MAX_TOOLS, ChatRequest, ResponsesRequest
from tests.studio.support.edge_home import home, model
from tests.studio.support.sent_body import read_body
from tests.studio.support.served import serving

__all__ = ["home", "model"]

MANY = 50_000
LONGEST_S = 1.0  # of holding up the others; it was 39 s
WORD = {"role": "user", "content": "a"}
TOOL = {"type": "function", "function": {"name": "t"}}
BODIES = {
    "messages": {"messages": [WORD] * MANY},
    "as many as allowed": {"messages": [WORD] * MAX_PIECES},
    "no question": {"messages": [{"role": "assistant", "content": " "}] * MAX_PIECES},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}] * MANY}]},
    "kinds of parts": {"messages": [{"role": "user", "content": [{"type": f"t{k}"} for k in range(MAX_PIECES - 1)]}]},
    "calls": {"messages": [{"role": "assistant", "tool_calls": [TOOL] * MANY}]},
    "tools": {"messages": [WORD], "tools": [TOOL] * 10_000},
    "allowed tools": {
        "messages": [WORD],
        "tools": [{"type": "function", "function": {"name": f"t{k}"}} for k in range(MAX_TOOLS)],
        "tool_choice": {"type": "allowed_tools", "tools": [{"name": f"t{k % MAX_TOOLS}"} for k in range(MANY)]},
    },
    "unknown parameters": {"messages": [WORD], **{f"p{k}": 1 for k in range(500_000)}},
    "empty lists": {"messages": [WORD], "x": [[]] * 2_000_000},
}


@pytest.fixture
def _only_its_own_garbage() -> Iterator[None]:
    """Let the garbage collector look at nothing that thousands of tests before have left in this process."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def _in_this_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what the server leaves to threads in the one whose time is taken."""

    async def run(work: Callable[..., object], *arguments: object) -> object:
        return work(*arguments)

    monkeypatch.setattr(request, "run_in_threadpool", run)
    monkeypatch.setattr(body_limit, "run_in_threadpool", run)


@pytest.mark.usefixtures("_only_its_own_garbage", "_in_this_thread")
@pytest.mark.parametrize("name", BODIES)
def test_a_request_of_many_pieces_is_read_or_refused_at_once(name):
    body = json.dumps({"model": "m", **BODIES[name]}).encode()
    start = time.thread_time()  # servers of other tests have threads in this process, too
    try:
        read_body(body)
    except ApiError as error:
        assert error.status in (400, 413) and str(error)
    assert time.thread_time() - start < LONGEST_S


@pytest.mark.parametrize("count", [MAX_PIECES, MAX_PIECES + 1])
@pytest.mark.parametrize(("kind", "field"), [(ChatRequest, "messages"), (ResponsesRequest, "input")])
def test_more_messages_than_can_be_read_are_refused_in_words(kind, field, count):
    body = json.dumps({"model": "m", field: [WORD] * count}).encode()
    if count == MAX_PIECES:
        assert read_body(body, kind).question == "a"
        return
    with pytest.raises(ApiError, match=r"10,001 messages and parts .* 10,000 can be read") as caught:
        read_body(body, kind)
    assert (caught.value.status, caught.value.param, caught.value.code) == (413, field, "request_too_large")


def test_a_conversation_that_grew_response_by_response_is_refused_too():
    earlier = [ConversationMessage("user", "a")] * MAX_PIECES
    with pytest.raises(ApiError, match="10,001 messages"):
        ResponsesRequest(model="m", input="b").episode_request(earlier)


def test_commas_and_brackets_in_a_text_are_no_values():
    text = ',[{"' * (CONVERSATION.marks // 2)
    assert read_body(json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()).query == text


def test_tools_of_one_name_get_names_of_their_own():
    names: set[str] = set()
    for _ in range(2 * MAX_TOOLS):
        names.add(choose_worker_name("t", names))
    assert len(names) == 2 * MAX_TOOLS


def test_the_message_to_answer_is_found_in_a_long_conversation():
    talk = [ConversationMessage("user", "the question"), *[ConversationMessage("assistant", "so")] * 400_000]
    start = time.process_time()
    assert read_question(talk, "messages").text == "the question"
    assert time.thread_time() - start < LONGEST_S


@pytest.fixture(scope="module")
def url(home: Path) -> Iterator[str]:
    with serving(home, "--pool", "edge", "--orchestrator", "direct:agent") as running:
        yield running


@pytest.mark.medium
@pytest.mark.parametrize("name", ["messages", "as many as allowed", "parts", "tools", "unknown parameters"])
def test_no_other_client_waits_for_a_request_of_many_pieces(url, name):
    body = json.dumps({"model": "podium-edge", **BODIES[name]}).encode()
    replies: list[httpx.Response] = []

    def post() -> None:
        replies.append(httpx.post(f"{url}/v1/chat/completions", content=body, timeout=120))

    sender = threading.Thread(target=post)
    waits = []
    with httpx.Client() as client:
        sender.start()
        while sender.is_alive():
            start = time.perf_counter()
            assert client.get(f"{url}/health", timeout=120).status_code == 200
            waits.append(time.perf_counter() - start)
            time.sleep(0.01)
    assert replies[0].status_code in (200, 413), replies[0].text[:300]
    assert max(waits) < LONGEST_S, f"another client waited {max(waits):.1f} s"
