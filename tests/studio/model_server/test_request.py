"""What clients may send to a served model, and the query that an orchestrator gets of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.events import StepEnded, StepStarted, TurnTaken
from orchestrator.plan import Step, Turn, Vote
from pool_registry.actions import Observation, Status
from pool_registry.pool import Limits
from studio.access.body_limit import CONVERSATION
from studio.model_server.conversation import ConversationMessage, parse_input, parse_messages, read_question
from studio.model_server.errors import ApiError
from studio.model_server.progress import EpisodeProgress
from studio.model_server.request import (
    ChatRequest,
    RequestLimits,
    ResponsesRequest,
    read_form,
    read_tool_use,
    tighten_limits,
)
from tests.studio.support.sent_body import read_body

texts = st.text(min_size=1).filter(str.strip)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def chat(**fields: object):
    return read_body(json.dumps({"model": "m", "messages": [{"role": "user", "content": "q"}], **fields}).encode())


def refused(**fields: object) -> ApiError:
    with pytest.raises(ApiError) as caught:
        chat(**fields)
    return caught.value


@given(texts)
def test_one_message_is_the_query_unchanged(text):
    assert read_question(parse_messages([{"role": "user", "content": text}]), "messages").query == text
    assert read_question(parse_input(text, None), "input").query == text


@given(st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), texts), min_size=1), texts)
def test_earlier_turns_stand_labelled_and_in_order_before_the_question(earlier, last):
    messages = [{"role": role, "content": text} for role, text in earlier]
    query = read_question(parse_messages([*messages, {"role": "user", "content": last}]), "messages").query
    assert query.endswith(f"\n\nNow:\n{last}")
    at = 0
    for role, text in earlier:
        at = query.index(f"[{role}] {text}", at) + len(text)


@given(st.binary(max_size=300) | anything.map(lambda value: json.dumps(value).encode()))
def test_any_body_is_a_request_or_an_api_error(body):
    for kind in (ChatRequest, ResponsesRequest):
        try:
            read_body(body, kind)
        except ApiError as error:
            assert 400 <= error.status < 500 and error.document["error"]["message"]


@given(st.lists(anything, min_size=1, max_size=3), anything)
def test_any_messages_are_a_query_or_an_api_error(messages, content):
    for each in (messages, [{"role": "user", "content": content}]):
        try:
            assert chat(messages=each).query.strip()
        except ApiError as error:
            assert error.status == 400


def test_parts_of_text_are_joined_and_others_left_out_and_reported():
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert chat(messages=[{"role": "user", "content": parts}]).query == "one\ntwo"
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    request = chat(messages=[{"role": "user", "content": [*parts, image]}])
    assert request.query == "one\ntwo" and list(request.ignored) == ["content.image_url"] and not request.unread
    apart = [{"role": "user", "content": "what is it?"}, {"role": "user", "content": [image]}]
    assert chat(messages=apart).question == "what is it?" and not chat(messages=apart).unread
    later = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}, apart[1]]
    assert chat(messages=later).unread == "image_url"


WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": 3}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"seed": "x"}, "seed"),
        (
            {"tools": [WEATHER, {"type": "function"}], "tool_choice": {"type": "function", "function": {"name": "b"}}},
            "tool_choice",
        ),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": 3}}}}, "response_format"),
        ({"podium": {"max_rounds": 3}}, "podium.max_rounds"),
        ({"podium": {"deadline_s": 0}}, "podium.deadline_s"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": [{"role": "tool"}]}, "messages"),
        ({"messages": [{"role": "user", "content": "  "}]}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"stream": "yes"}, "stream"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(fields, param):
    error = refused(**fields)
    assert error.status == 400 and error.param == param, str(error)


def test_one_odd_tool_costs_no_request():
    odd = {"type": "dict", "properties": {"n": {"type": "float", "required": True}, "x": None}}
    functions = [{"name": "a", "parameters": odd}, {"name": "b", "parameters": "none"}, {"description": "no name"}]
    accepted = chat(tools=[{"type": "function", "function": function} for function in functions] + [WEATHER, 7])
    assert [tool.name for tool in accepted.tools.tools] == ["a", "weather"]
    assert accepted.tools.tools[0].parameters == {
        "type": "object",
        "required": ["n"],
        "properties": {"n": {"type": "number"}, "x": {}},
    }
    assert accepted.ignored.keys() == {"tools[0].parameters", "tools[1]", "tools[2]", "tools[4]"}
    assert "n: the type float was read as number" in accepted.ignored["tools[0].parameters"]


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 1, "presence_penalty": 0, "frequency_penalty": 0.0, "tool_choice": "none"},
        {"tools": [], "tool_choice": "auto", "stop": None, "seed": None, "logit_bias": {}},
        {"user": "u", "metadata": {"a": "b"}, "store": False, "response_format": {"type": "text"}},
    ],
)
def test_what_changes_nothing_is_accepted_without_a_word(fields):
    accepted = chat(**fields)
    assert accepted.query == "q" and not accepted.ignored and not accepted.settings and accepted.form is None


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"n": 2}, "n"),
        ({"n": True}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"frobnicate": 1}, "frobnicate"),
        ({"tools": [{"type": "web_search"}]}, "tools[0]"),
        ({"tools": [WEATHER, {"type": "function"}]}, "tools[1]"),
        ({"tools": ["weather", WEATHER]}, "tools[0]"),
        (
            {"tools": [{"type": "function", "function": {"name": "a", "parameters": {"type": 3}}}]},
            "tools[0].parameters",
        ),
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"response_format": {"type": "grammar"}}, "response_format"),
        ({"functions": [{"name": "f"}]}, "functions"),
    ],
)
def test_what_cannot_be_honoured_is_accepted_and_reported(fields, name):
    accepted = chat(**fields)
    assert accepted.query == "q" and list(accepted.ignored) == [name] and accepted.ignored[name]


def test_sampling_is_for_the_agents_and_the_rest_for_the_answer():
    accepted = chat(temperature=0.2, seed=7, top_p=0.5, reasoning_effort="low", stop="END", max_tokens=9)
    assert accepted.settings == {"temperature": 0.2, "seed": 7, "top_p": 0.5, "reasoning_effort": "low"}
    assert accepted.stop == ("END",) and accepted.max_answer_tokens == 9
    assert accepted.limits == RequestLimits(), "max_tokens limits the answer alone"
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    form = chat(response_format=schema).form
    assert form is not None and form.fit("7") == {"a": 7} == form.fit('so: ```json\n{"a": 7}\n```')
    with pytest.raises(ValueError, match="must be a whole number"):
        form.fit('{"a": "x"}')


def test_the_tool_choice_says_which_tools_may_and_must_be_called():
    other = {"type": "function", "function": {"name": "other"}}
    assert [tool.name for tool in chat(tools=[WEATHER, other]).tools.tools] == ["weather", "other"]
    assert chat(tools=[WEATHER], tool_choice="none").tools.tools == ()
    named = chat(tools=[WEATHER, other], tool_choice={"type": "function", "function": {"name": "other"}}).tools
    assert [tool.name for tool in named.tools] == ["other"] and named.demanded
    required = chat(tools=[WEATHER], tool_choice="required", parallel_tool_calls=False).tools
    assert required.demanded and not required.parallel
    assert not chat(tools=[WEATHER], parallel_tool_calls=True).tools.demanded


def test_calls_of_the_clients_tools_are_part_of_the_conversation():
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}
    messages = [
        {"role": "user", "content": "How warm is it?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "21 degrees"},
    ]
    accepted = chat(messages=messages)
    assert accepted.outputs == {"call_1": "21 degrees"} and accepted.question == "How warm is it?"
    assert accepted.query == (
        "Now:\nHow warm is it?\n\nDone for this so far:\n"
        '[assistant] called weather({"city": "Paris"})\n[tool] 21 degrees'
    )
    assert chat(messages=[*messages, {"role": "user", "content": "And Rome?"}]).outputs == {}


def test_another_model_is_a_404_that_names_the_right_one():
    error = refused(model="gpt-9")
    assert error.status == 404 and error.code == "model_not_found" and "'m'" in str(error)


def test_a_large_body_is_refused_by_its_header_and_by_its_size():
    for headers in ({"content-length": str(CONVERSATION.size + 1)}, {}):
        with pytest.raises(ApiError) as caught:
            read_body(b" " * (CONVERSATION.size + 1), **headers)
        assert caught.value.status == 413


def test_a_responses_request_carries_instructions_and_leaves_out_our_own_reasoning():
    items = [
        {"role": "user", "content": "first"},
        {"type": "reasoning", "id": "rs", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "one"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "second"}]},
    ]
    body = {"model": "m", "input": items, "instructions": "Be brief.", "reasoning": {"summary": "auto"}}
    wanted = read_body(json.dumps(body).encode(), ResponsesRequest)
    assert wanted.query == ("Conversation so far:\n[system] Be brief.\n[user] first\n[assistant] one\n\nNow:\nsecond")
    asked = {**body, "reasoning": {"effort": "high"}, "background": True, "max_output_tokens": 5, "store": False}
    wanted = read_body(json.dumps(asked).encode(), ResponsesRequest)
    assert wanted.settings == {"reasoning_effort": "high"} and wanted.background and not wanted.keep
    assert wanted.max_answer_tokens == 5 and wanted.limits == RequestLimits()


def test_a_responses_request_continues_an_earlier_conversation():
    output = {"type": "function_call_output", "call_id": "call_1", "output": "21 degrees"}
    earlier = [ConversationMessage("user", "How warm is it?"), ConversationMessage("assistant", "called weather({})")]
    body = ResponsesRequest.model_validate({"model": "m", "input": [output]})
    wanted = body.episode_request(earlier)
    assert wanted.outputs == {"call_1": "21 degrees"} and wanted.question == "How warm is it?"
    assert [message.role for message in wanted.messages] == ["user", "assistant", "tool"]


@given(
    st.builds(
        RequestLimits, max_total_tokens=st.none() | st.integers(1, 10**9), max_cost=st.none() | st.floats(1e-9, 1e9)
    ),
    st.builds(RequestLimits, deadline_s=st.none() | st.floats(1e-3, 1e9), max_steps=st.none() | st.integers(1, 10**6)),
)
def test_limits_only_ever_tighten_the_pools(one, other):
    pool = Limits(max_cost=2.0)
    found = tighten_limits(pool, one, other)
    Limits.model_validate(found.model_dump())
    for name in RequestLimits.model_fields:
        own = "max_tokens" if name == "max_total_tokens" else name
        asked = [getattr(pool, own), *(getattr(each, name) for each in (one, other))]
        assert getattr(found, own) == min((value for value in asked if value is not None), default=None)
    assert found.max_rounds == pool.max_rounds


def test_progress_says_when_the_model_has_planned_again():
    turn = Turn((Step(2, "price"),), repairs=("second_turns",))
    assert EpisodeProgress().describe(TurnTaken(2, turn, 0.1)) == "Round 2 is planned again: 2 price\n"


def test_progress_says_when_another_plan_takes_the_place_of_one_that_failed():
    vote = Vote(sampled=4, unreadable=0, failed=1, untried=0, votes=3, answers={"7": 3})
    turn = Turn((Step(2, "price"),), vote=vote)
    assert EpisodeProgress().describe(TurnTaken(2, turn, 0.1)) == "Round 2 takes another plan: 2 price\n"
    progress = EpisodeProgress()
    lines = [progress.describe(TurnTaken(number, turn, 0.1)) for number in (1, 2)]
    assert lines == ["Round 1: 2 price\n", "Round 2: 2 price\n"], "here every turn is voted on"


def test_progress_reports_other_words_as_tries_not_as_failures():
    progress = EpisodeProgress()
    rejected = Observation.failure(Status.EXEC_ERR, "function_raised", "KeyError: kilos")
    turn = Turn((Step(2, "price"), Step(3, "price")), trial=True)
    events = [TurnTaken(2, turn, 0.1), StepEnded(2, rejected, 0.2), StepEnded(3, Observation(Status.OK, 31, 0.5), 0.7)]
    lines = "".join(progress.describe(event) or "" for event in events)
    assert lines.splitlines() == [
        "Round 2 tries other words: 2 price, 3 price",
        "Step 2 price: not these words",
        "Step 3 price OK in 0.50 s",
    ]


def test_tokens_of_the_answer_and_of_everything_are_two_limits():
    wanted = chat(max_tokens=500, max_completion_tokens=300, podium={"max_total_tokens": 400, "deadline_s": 5})
    assert wanted.max_answer_tokens == 300
    assert wanted.limits == RequestLimits(max_total_tokens=400, deadline_s=5)
    assert chat(max_total_tokens=90, podium={"max_tokens": 100}).limits == RequestLimits(max_total_tokens=90)


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


def test_a_schema_that_asks_for_too_much_is_refused_of_an_answer_and_cut_of_a_tool():
    doubled = {f"L{n}": {"anyOf": [{"$ref": f"#/$defs/L{n + 1}"}] * 2} for n in range(30)}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/L0"}}, "$defs": {**doubled, "L30": {}}}
    form = {"type": "json_schema", "json_schema": {"name": "f", "schema": schema}}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    ignored: dict[str, str] = {}
    (cut,) = read_tool_use([tool], None, None, ignored).tools
    assert cut.parameters["properties"] == {"x": {}} and "x: its schema is too large" in ignored["tools[0].parameters"]
    with pytest.raises(ApiError, match="more than 20,000 parts when its references are expanded"):
        read_form(form, "response_format", {})
