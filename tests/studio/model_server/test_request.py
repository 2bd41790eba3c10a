"""What clients may send to a served model, and the query that an orchestrator gets of it."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from orchestrator.engine.events import StepEnded, StepStarted, TurnTaken
from orchestrator.plan import Step, Turn
from pool_registry.actions import Observation, Status
from pool_registry.pool import Limits
from studio.model_server.conversation import build_query, parse_input, parse_messages
from studio.model_server.errors import ApiError
from studio.model_server.progress import EpisodeProgress
from studio.model_server.request import (
    MAX_BODY_BYTES,
    ChatRequest,
    RequestLimits,
    ResponsesRequest,
    read_request,
    tighten_limits,
)

texts = st.text(min_size=1).filter(str.strip)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def sent(body: bytes, kind=ChatRequest, **headers: str):
    """What the server reads of a body that comes in two parts."""
    parts = [body[: len(body) // 2], body[len(body) // 2 :]]

    async def receive():
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    request = Request({"type": "http", "method": "POST", "headers": raw, "path": "/"}, receive)
    return asyncio.run(read_request(request, kind, "m")).episode_request()


def chat(**fields: object):
    return sent(json.dumps({"model": "m", "messages": [{"role": "user", "content": "q"}], **fields}).encode())


def refused(**fields: object) -> ApiError:
    with pytest.raises(ApiError) as caught:
        chat(**fields)
    return caught.value


@given(texts)
def test_one_message_is_the_query_unchanged(text):
    assert build_query(parse_messages([{"role": "user", "content": text}]), "messages") == text
    assert build_query(parse_input(text, None), "input") == text


@given(st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), texts), min_size=1), texts)
def test_earlier_turns_stand_labelled_and_in_order_before_the_question(earlier, last):
    messages = [{"role": role, "content": text} for role, text in earlier]
    query = build_query(parse_messages([*messages, {"role": "user", "content": last}]), "messages")
    assert query.endswith(f"\n\nNow:\n{last}")
    at = 0
    for role, text in earlier:
        at = query.index(f"[{role}] {text}", at) + len(text)


@given(st.binary(max_size=300) | anything.map(lambda value: json.dumps(value).encode()))
def test_any_body_is_a_request_or_an_api_error(body):
    for kind in (ChatRequest, ResponsesRequest):
        try:
            sent(body, kind)
        except ApiError as error:
            assert 400 <= error.status < 500 and error.document["error"]["message"]


@given(st.lists(anything, min_size=1, max_size=3), anything)
def test_any_messages_are_a_query_or_an_api_error(messages, content):
    for each in (messages, [{"role": "user", "content": content}]):
        try:
            assert chat(messages=each).query.strip()
        except ApiError as error:
            assert error.status == 400


def test_parts_of_text_are_joined_and_others_refused():
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert chat(messages=[{"role": "user", "content": parts}]).query == "one\ntwo"
    image = [{"type": "image_url", "image_url": {"url": "data:"}}]
    error = refused(messages=[{"role": "user", "content": image}])
    assert error.code == "unsupported_content" and "image_url" in str(error)
    assert error.param == "messages[0].content[0]"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"n": True}, "n"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"temperature": 0}, "temperature"),
        ({"seed": 7}, "seed"),
        ({"logprobs": True}, "logprobs"),
        ({"stop": ["\n"]}, "stop"),
        ({"store": True}, "store"),
        ({"frobnicate": 1}, "frobnicate"),
        ({"podium": {"max_rounds": 3}}, "podium.max_rounds"),
        ({"podium": {"deadline_s": 0}}, "podium.deadline_s"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": "  "}]}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"stream": "yes"}, "stream"),
    ],
)
def test_what_cannot_be_honoured_is_named(fields, param):
    error = refused(**fields)
    assert error.status == 400 and error.param == param, str(error)


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 1, "temperature": 1, "top_p": 1.0, "presence_penalty": 0, "frequency_penalty": 0.0},
        {"tools": [], "tool_choice": "auto", "stop": None, "seed": None, "logit_bias": {}},
        {"user": "u", "metadata": {"a": "b"}, "store": False, "response_format": {"type": "text"}},
    ],
)
def test_what_changes_nothing_is_accepted(fields):
    assert chat(**fields).query == "q"


def test_another_model_is_a_404_that_names_the_right_one():
    error = refused(model="gpt-9")
    assert error.status == 404 and error.code == "model_not_found" and "'m'" in str(error)


def test_a_large_body_is_refused_by_its_header_and_by_its_size():
    for headers in ({"content-length": str(MAX_BODY_BYTES + 1)}, {}):
        with pytest.raises(ApiError) as caught:
            sent(b" " * (MAX_BODY_BYTES + 1), **headers)
        assert caught.value.status == 413


def test_a_responses_request_carries_instructions_and_leaves_out_our_own_reasoning():
    items = [
        {"role": "user", "content": "first"},
        {"type": "reasoning", "id": "rs", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "one"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "second"}]},
    ]
    body = {"model": "m", "input": items, "instructions": "Be brief.", "reasoning": {"summary": "auto"}}
    wanted = sent(json.dumps(body).encode(), ResponsesRequest)
    assert wanted.query == ("Conversation so far:\n[system] Be brief.\n[user] first\n[assistant] one\n\nNow:\nsecond")
    for extra in ({"previous_response_id": "resp_1"}, {"reasoning": {"effort": "high"}}, {"background": True}):
        with pytest.raises(ApiError):
            sent(json.dumps({**body, **extra}).encode(), ResponsesRequest)


@given(
    st.builds(RequestLimits, max_tokens=st.none() | st.integers(1, 10**9), max_cost=st.none() | st.floats(1e-9, 1e9)),
    st.builds(RequestLimits, deadline_s=st.none() | st.floats(1e-3, 1e9), max_steps=st.none() | st.integers(1, 10**6)),
)
def test_limits_only_ever_tighten_the_pools(one, other):
    pool = Limits(max_cost=2.0)
    found = tighten_limits(pool, one, other)
    Limits.model_validate(found.model_dump())
    for name in RequestLimits.model_fields:
        asked = [value for each in (pool, one, other) if (value := getattr(each, name)) is not None]
        assert getattr(found, name) == min(asked)
    assert found.max_rounds == pool.max_rounds


def test_tokens_of_both_spellings_and_our_own_are_one_limit():
    wanted = chat(max_tokens=500, max_completion_tokens=300, podium={"max_tokens": 400, "deadline_s": 5})
    assert wanted.limits == RequestLimits(max_tokens=300, deadline_s=5)


def test_progress_says_how_steps_end_and_never_what_they_return():
    progress = EpisodeProgress()
    steps = (Step(1, "sql", {"query": "select 1"}), Step(2, "python", {"code": "x"}, (1,)))
    ok, failed = Observation(Status.OK, "the secret value", 0.5), Observation.failure(Status.TIMEOUT, "timeout", "late")
    events = [
        TurnTaken(1, Turn(steps), 0.1),
        StepStarted(1, 0.2, {"query": "select\n 1"}),
        StepEnded(1, ok, 0.7),
        StepEnded(2, failed, 0.8),
        TurnTaken(2, Turn(error="no JSON"), 0.9),
        TurnTaken(3, Turn(answer="42"), 1.0),
    ]
    lines = "".join(progress.describe(event) or "" for event in events)
    assert lines.splitlines() == [
        "Round 1: 1 sql, 2 python (sees 1)",
        "Step 1 sql: select 1",
        "Step 1 sql OK in 0.50 s",
        "Step 2 python TIMEOUT in 0.00 s: late",
        "Round 2 could not be used: no JSON",
        "Round 3: the answer",
    ]
    assert (progress.done, progress.total) == (2, 2)
