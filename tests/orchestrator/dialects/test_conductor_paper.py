"""The paper's own prompt: models without names, at most five steps, four examples that the dialect itself can read."""

from __future__ import annotations

import asyncio
import re

from orchestrator.dialects import find_dialect
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.registry import make_orchestrator
from orchestrator.prompt import opening_messages
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from tests.orchestrator.support.endpoint import Endpoint, agent, pool_of

DIALECT = find_dialect("conductor_paper")


def prompt_of(pool: Pool) -> str:
    async def read():
        async with live_pool(pool) as live:
            return opening_messages("How many?", live, DIALECT)[0].content

    return asyncio.run(read())


def agents_only(url: str, *names: str) -> Pool:
    return Pool(name="p", workers=tuple(agent(name, url, description=f"Good at {name}.") for name in names))


def test_models_have_numbers_and_neither_names_nor_descriptions():
    text = prompt_of(agents_only("http://127.0.0.1:9/v1", "gemini", "claude", "gpt"))
    assert re.findall(r"^Model \d+$", text, re.M) == ["Model 0", "Model 1", "Model 2"]
    assert not re.search("gemini|claude|gpt|Good at|JSON", text)


def test_a_tool_is_described_because_nobody_could_call_it():
    text = prompt_of(pool_of("http://127.0.0.1:9/v1", "boss"))
    assert "Model 0(expression): Computes." in text and "Model 1\n" in text and "boss" not in text


def test_four_examples_can_be_read_and_name_models_that_exist():
    for names in (("a",), ("a", "b"), ("a", "b", "c", "d")):
        text = prompt_of(agents_only("http://127.0.0.1:9/v1", *names))
        examples = text.split("\nQuestion: ")[1:]
        assert len(examples) == 4
        for example in examples:
            turn = DIALECT.parse(example, 1, list(names))
            assert turn.error is None and turn.steps and not any(step.problem for step in turn.steps), example
            assert all(step.worker in names for step in turn.steps)


def test_a_workflow_has_at_most_five_steps():
    lists = "workers = {}\nsubtasks = {}\naccess = {}"
    five, six = (DIALECT.parse(lists.format([0] * n, ["x"] * n, [[]] * n), 1, ["a"]) for n in (5, 6))
    assert five.error is None and six.error == "a workflow has at most 5 steps, this one has 6"


def test_all_is_an_access_list_too():
    turn = DIALECT.parse('workers = [0, 0]\nsubtasks = ["x", "y"]\naccess = [[], ["all"]]', 1, ["a"])
    assert [step.access for step in turn.steps] == [(), (1,)] and turn.answer == "$2"


def test_observations_name_models_as_the_prompt_does(endpoint):
    turns = iter(['workers = [0]\nsubtasks = ["6*7"]\naccess = [[]]', "workers = []\nsubtasks = []\naccess = []"])
    Endpoint.reply = staticmethod(lambda _: next(turns))

    async def play():
        async with live_pool(pool_of(endpoint, "boss", max_rounds=2)) as live:
            policy = make_orchestrator("model:boss:conductor_paper+recursive", live)
            return await run_episode(EpisodeSpec("6*7?"), policy, live)

    assert asyncio.run(play()).answer == 42
    shown = Endpoint.bodies[1]["messages"][-1]["content"]
    assert shown.startswith("Step 1 (Model 0) OK: 42") and "calc" not in shown
