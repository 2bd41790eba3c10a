"""The baselines that decide for themselves: what they ask whom, and what each agent gets to see."""

from __future__ import annotations

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.episode import StepRun
from orchestrator.errors import UnknownOrchestrator
from orchestrator.plan import Step
from orchestrator.policies.baselines.cascade import JudgedReply, judge_reply
from orchestrator.policies.registry import make_orchestrator
from pool_registry.actions import Observation, Status
from pool_registry.calls.live_pool import live_pool
from tests.orchestrator.support.endpoint import Endpoint, agent, asked, play, pool_of


def workers(episode) -> list[str]:
    return [run.step.worker for run in episode.steps.values()]


# react: one serial loop


CALLS = '<tool_call>\n{"name": "calc", "arguments": {"expression": "%s", "access": []}}\n</tool_call>'


def test_react_makes_one_call_a_turn_whatever_the_model_writes(endpoint):
    replies = iter([f"{CALLS % '6*7'}\n{CALLS % '1+1'}", CALLS % "$1-2".replace("$1", "42"), "It is 40."])
    episode = play("react:boss", endpoint, lambda _: next(replies))
    assert episode.answer == "It is 40."
    assert [len(done.steps) for done in episode.rounds] == [1, 1, 0]
    assert [run.observation.value for run in episode.steps.values()] == [42, 40]
    history = [message["content"] for message in Endpoint.bodies[1]["messages"]]
    assert "one call in each turn" in history[0] and "1+1" not in history[2], "it reads of no call that was not made"
    assert "Step 1 (calc) OK: 42" in history[3]


def test_react_in_plan_waits_for_the_output_before_it_answers(endpoint):
    plan = '{"steps": [{"worker": "calc", "instruction": "6*7", "access": []}], "answer": "$1"}'
    replies = iter([plan, '{"answer": "after all $1"}'])
    episode = play("react:boss:plan", endpoint, lambda _: next(replies))
    assert episode.answer == "after all 42" and len(episode.rounds) == 2
    assert episode.rounds[0].turn.text == plan.replace(', "answer": "$1"', "")


def test_react_keeps_errors_and_answers_as_they_are(endpoint):
    replies = iter(["", '{"answer": "none"}'])
    episode = play("react:boss:plan", endpoint, lambda _: next(replies) or "no turn at all")
    assert episode.rounds[0].turn.error and episode.answer == "none"


def test_react_speaks_the_endpoints_own_tool_calls_and_rules_to_local_models(endpoint):
    async def names() -> list[str]:
        local = agent("small", endpoint).model_copy(update={"kind": "local_model", "config": {"model": "starter:tiny"}})
        async with live_pool(pool_of(endpoint, "boss", local)) as live:
            return [make_orchestrator(name, live).name for name in ("react", "react:small", "react:small:tool_calls")]

    assert asyncio.run(names()) == ["react:boss:tool_calls", "react:small:plan", "react:small:tool_calls"]


# cascade: cheap first


def priced(endpoint, name: str, price: float):
    return agent(name, endpoint, price_out=price)


def test_a_cascade_asks_the_cheapest_first_and_stops_when_it_is_sure(endpoint):
    agents = [priced(endpoint, "dear", 9), priced(endpoint, "cheap", 1)]
    episode = play("cascade", endpoint, lambda _: "It costs $5.\nConfidence: 95%", agents)
    assert workers(episode) == ["cheap"] and episode.answer == "It costs $5."


@pytest.mark.parametrize("doubtful", ["42\nConfidence: 30", "42", "Confidence: 99", "  "])
def test_a_reply_that_fails_the_check_goes_to_the_next_who_is_believed(endpoint, doubtful):
    agents = [priced(endpoint, "dear", 9), priced(endpoint, "cheap", 1)]
    replies = {"cheap": doubtful, "dear": "43"}
    episode = play("cascade", endpoint, lambda messages: replies[messages[0]["content"][8:-1]], agents)
    assert workers(episode) == ["cheap", "dear"] and episode.answer == "43"
    assert [run.step.access for run in episode.steps.values()] == [(), ()]
    assert "Confidence" in asked()[0][1] and asked()[1] == ("dear", "6*7?"), (
        "the last one is asked for the answer alone"
    )


def test_a_judge_is_no_link_of_a_cascade(endpoint):
    judge = agent("judge", endpoint, price_out=99, judge_only=True)
    episode = play("cascade", endpoint, lambda _: "unsure", ("a", "b", judge), max_rounds=5)
    assert workers(episode) == ["a", "b"]


@pytest.mark.parametrize("name", ["model:judge", "react:judge", "direct:judge"])
def test_a_judge_orchestrates_nothing(endpoint, name):
    with pytest.raises(UnknownOrchestrator, match="has no agent 'judge'; it has: a"):
        play(name, endpoint, lambda _: "42", ("a", agent("judge", endpoint, judge_only=True)))


def test_no_plan_hears_of_a_judge(endpoint):
    play("model:a", endpoint, lambda _: '{"answer": "42"}', ("a", agent("referee", endpoint, judge_only=True)))
    assert "calc" in str(Endpoint.bodies) and "referee" not in str(Endpoint.bodies)


def test_when_the_last_agent_fails_the_surest_reply_before_it_counts(endpoint):
    replies = {"a": "41\nConfidence: 20", "b": "42\nConfidence: 60", "c": ""}
    episode = play("cascade", endpoint, lambda messages: replies[messages[0]["content"][8:-1]], "abc", max_rounds=5)
    assert workers(episode) == ["a", "b", "c"] and episode.answer == "42"


def test_a_cascade_of_nobody_who_answers_says_so(endpoint):
    episode = play("cascade", endpoint, lambda _: "", ("a", "b"), max_rounds=5)
    assert episode.ended.outcome == "orchestrator_failed" and "no agent of the cascade" in episode.ended.reason


def test_a_cascade_with_few_rounds_keeps_the_cheapest_and_the_last(endpoint):
    agents = [priced(endpoint, name, price) for price, name in enumerate("abcd")]
    episode = play("cascade", endpoint, lambda _: "unsure", agents, max_rounds=2)
    assert workers(episode) == ["a", "d"] and episode.answer == "unsure"


def observed(value: object) -> StepRun:
    return StepRun(Step(1, "a"), 1, observation=Observation(Status.OK, value))


@pytest.mark.parametrize(
    ("said", "text", "confidence"),
    [
        ("Paris\nConfidence: 80", "Paris", 80),
        ("Paris\n**Confidence: 80 %**", "Paris", 80),
        ("Paris.\nconfidence - 80/100.", "Paris.", 80),
        ("Paris\nConfidence: 0.8", "Paris", 80),
        ("Paris\nConfidence: 1", "Paris", 1),
        ("Paris\nConfidence: 900", "Paris", 100),
        ("Confidence: 10\nno: Paris\nConfidence: 90", "Confidence: 10\nno: Paris", 90),
        ("My confidence is high", "My confidence is high", 0),
        (42, "42", 0),
    ],
)
def test_how_sure_an_agent_says_it_is(said, text, confidence):
    assert judge_reply(observed(said)) == JudgedReply(text, confidence)


@given(st.text() | st.recursive(st.none() | st.floats(allow_nan=False) | st.text(), st.lists))
def test_any_reply_can_be_judged(said):
    assert 0 <= judge_reply(observed(said)).confidence <= 100


def test_a_failed_step_is_never_trusted():
    failed = StepRun(Step(1, "a"), 1, observation=Observation.failure(Status.TIMEOUT, "timeout", "Confidence: 100"))
    assert not judge_reply(failed).trusted


# group_chat: everybody sees what was said


def test_in_a_group_chat_everyone_sees_what_was_said_before(endpoint):
    episode = play("group_chat:b", endpoint, lambda messages: f"<{messages[0]['content'][8:-1]} spoke>", "abc")
    assert workers(episode) == ["a", "c", "b"] and episode.answer == "<b spoke>"
    assert [run.step.access for run in episode.steps.values()] == [(), (1,), (1, 2)]
    seen = [re.findall("<([abc]) spoke>", content) for _, content in asked()]
    assert seen == [[], ["a"], ["a", "c"]]


def test_a_chair_that_is_not_content_lets_them_speak_again_and_must_end_it(endpoint):
    def reply(messages: list[dict]) -> str:
        if not messages[0]["content"].startswith("You are chair"):
            return "hm"
        return "CONTINUE" if "the one word CONTINUE" in messages[-1]["content"] else "forty-two"

    episode = play("group_chat", endpoint, reply, ("a", "chair", "b"))
    assert workers(episode) == ["a", "b", "chair"] * 3 and episode.answer == "forty-two"
    assert episode.steps[7].step.access == (1, 2, 3, 4, 5, 6)
    assert len(episode.rounds) == 3, "the last lap's turn holds the answer"


@pytest.mark.parametrize(("limits", "laps"), [({"max_rounds": 1}, 1), ({"max_steps": 5}, 1), ({"max_steps": 6}, 2)])
def test_a_group_chat_fits_into_the_limits_of_its_pool(endpoint, limits, laps):
    def reply(messages: list[dict]) -> str:
        return "CONTINUE" if "the one word CONTINUE" in messages[-1]["content"] else "end"

    episode = play("group_chat", endpoint, reply, "abc", **limits)
    assert len(episode.steps) == 3 * laps and episode.answer == "end"


def test_more_speakers_than_steps_leave_the_chair_its_word(endpoint):
    episode = play("group_chat:d", endpoint, lambda _: "x", "abcd", max_steps=2)
    assert workers(episode) == ["a", "d"] and episode.answer == "x"


def test_one_agent_alone_concludes(endpoint):
    episode = play("group_chat", endpoint, lambda _: "x", ("only",))
    assert workers(episode) == ["only"] and episode.answer == "x"


def test_a_chair_that_never_answers_is_said_to(endpoint):
    def reply(messages: list[dict]) -> str:
        return "" if messages[0]["content"].startswith("You are c") else "x"

    episode = play("group_chat:c", endpoint, reply, "abc", max_rounds=5)
    assert episode.ended.outcome == "orchestrator_failed" and "the chair, c," in episode.ended.reason


# What all of them keep to


@pytest.mark.parametrize("name", ["react", "cascade", "router", "group_chat", "fan_out", "pipeline", "random_plan"])
def test_a_query_with_dollars_in_it_quotes_nothing(endpoint, name):
    episode = play(name, endpoint, lambda _: "well\nConfidence: 99", ("a", "b"), "is $1 more than $$2 or $3?")
    assert all(run.step.problem is None or run.step.worker == "calc" for run in episode.steps.values())
    if name != "react":
        assert any("is $1 more than $$2 or $3?" in content for _, content in asked()) or name == "random_plan"
