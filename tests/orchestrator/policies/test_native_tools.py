"""Native tool calling: an orchestrating model, and an agent with tools of its own, over a scripted endpoint."""

from __future__ import annotations

import asyncio
import json

import pytest

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.registry import make_orchestrator
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.errors import InvalidPool
from pool_registry.pool import Limits, Pool, check_pool
from pool_registry.worker import WorkerSpec
from tests.orchestrator.support.endpoint import Endpoint, agent

CALC = WorkerSpec(name="calc", kind="calculator", description="Arithmetic.")
UNITS = WorkerSpec(name="units", kind="units", description="Units.")


def call(name: str, **arguments: object) -> dict:
    return {"id": "x", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def pool_of(endpoint: str, **config: object) -> Pool:
    boss = agent("boss", f"{endpoint}/v1")
    helper = agent("helper", f"{endpoint}/v1")
    helper = helper.model_copy(update={"config": {**helper.config, **config}, "max_concurrency": 1})
    return Pool(name="p", workers=(CALC, UNITS, boss, helper), limits=Limits(max_rounds=4, max_depth=2))


class Recorded:
    """A sink that keeps the events of all episodes."""

    def __init__(self) -> None:
        self.events: list[tuple[str, object]] = []

    def append(self, episode_id: str, event: object) -> None:
        self.events.append((episode_id, event))


def run(name: str, pool: Pool, query: str = "6*7?") -> tuple[Episode, Recorded]:
    sink = Recorded()

    def resolve(inner: str, _: str, narrowed: LivePool):
        return make_orchestrator(inner, narrowed)

    async def once() -> Episode:
        async with live_pool(pool) as live:
            return await run_episode(
                EpisodeSpec(query), make_orchestrator(name, live), live, sink=sink, resolve=resolve
            )

    return asyncio.run(once()), sink


def test_an_orchestrating_model_gets_its_calls_and_their_outputs_as_messages_with_ids(endpoint):
    replies = iter(
        [
            [call("calc", expression="6*7", access=[]), call("calc", expression="2*21", access=[])],
            [call("calc", expression="$1 + $2", access=[1, 2])],
            "$3",
        ]
    )
    Endpoint.reply = staticmethod(lambda _: next(replies))
    episode, _ = run("model:boss:tool_calls", pool_of(endpoint))
    assert episode.answer == 84
    last = Endpoint.bodies[-1]["messages"]
    assert [message["role"] for message in last] == ["system", "user", "assistant", "tool", "tool", "assistant", "tool"]
    asked = [one["id"] for message in last if message["role"] == "assistant" for one in message["tool_calls"]]
    assert (
        asked
        == [message["tool_call_id"] for message in last if message["role"] == "tool"]
        == ["call_1", "call_2", "call_3"]
    )
    first = json.loads(last[2]["tool_calls"][0]["function"]["arguments"])
    assert first == {"expression": "6*7", "access": []} and "42" in last[3]["content"]


def test_an_agent_calls_its_own_tools_until_it_answers(endpoint):
    """The agent is one worker; its calls stand in an episode of their own, one level deeper, in the same budget."""

    def reply(messages: list[dict]) -> object:
        if "boss" in messages[0]["content"] and "orchestrate" in messages[0]["content"]:
            return '{"steps": [{"worker": "helper", "instruction": "price of 6*7", "access": []}], "answer": "$1"}'
        assert messages[0]["content"].startswith("You are helper."), "the agent keeps its role"
        if len(messages) == 2:
            return [call("calc", expression="6*7"), call("calc", expression="1+1")]
        return "It costs $42 and $$2."

    Endpoint.reply = staticmethod(reply)
    episode, sink = run("model:boss:plan", pool_of(endpoint, tools=["calc"]))
    assert episode.answer == "It costs $42 and $$2.", "what an agent writes is taken as it is"
    step = episode.steps[1]
    assert step.observation.episode is not None and list(episode.steps) == [1]
    inner = [event for name, event in sink.events if name == step.observation.episode]
    assert [event.type for event in inner].count("step_ended") == 2
    assert inner[0].depth == 1 and inner[0].parent.step == 1
    offered = [tool["function"]["name"] for tool in Endpoint.bodies[1]["tools"]]
    assert offered == ["calc"], "the agent is given its own tools alone"
    assert "access" not in Endpoint.bodies[1]["tools"][0]["function"]["parameters"]["properties"]
    messages = Endpoint.bodies[2]["messages"]
    calls = messages[2]["tool_calls"]
    assert json.loads(calls[0]["function"]["arguments"]) == {"expression": "6*7"}
    assert [message["tool_call_id"] for message in messages[3:]] == [one["id"] for one in calls]
    assert episode.usage.tokens == 4 * 15 - 15, "three completions: the plan, the calls, the answer"


def test_the_limits_of_the_episode_hold_for_an_agents_own_calls(endpoint):
    def reply(messages: list[dict]) -> object:
        if "orchestrate" in messages[0]["content"]:
            return '{"steps": [{"worker": "helper", "instruction": "x", "access": []}], "answer": "$1"}'
        return [call("calc", expression="1+1")]

    Endpoint.reply = staticmethod(reply)
    pool = pool_of(endpoint, tools=["calc"])
    episode, sink = run("model:boss:plan", pool.model_copy(update={"limits": Limits(max_rounds=3, max_steps=2)}))
    failure = episode.steps[1].observation.error
    assert failure is not None and failure.code == "max_rounds"
    codes = [
        event.observation.error.code
        for _, event in sink.events
        if event.type == "step_ended" and event.observation.error
    ]
    assert "max_steps" in codes, "its calls count among the steps of the episode"


def test_one_agent_with_the_whole_pool_as_its_tools(endpoint):
    replies = iter([[call("calc", expression="6*7")], "forty-two"])
    Endpoint.reply = staticmethod(lambda _: next(replies))
    episode, _ = run("tools:boss", pool_of(endpoint))
    assert episode.answer == "forty-two" and episode.steps[1].step.worker == "calc"
    assert {tool["function"]["name"] for tool in Endpoint.bodies[0]["tools"]} == {"calc", "units", "helper"}


@pytest.mark.parametrize("tools", [["nobody"], ["helper"]])
def test_a_pool_lacks_no_tool_of_its_agents(endpoint, tools):
    with pytest.raises(InvalidPool, match="there is no other worker"):
        check_pool(pool_of(endpoint, tools=tools))
