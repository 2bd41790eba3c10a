"""Dialect tool_calls in training: calls as the chat template writes them, outputs as messages of the role tool, in one
sequence of tokens that only grows.
"""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest

from orchestrator.dialects import find_dialect
from orchestrator.engine.episode_loop import NoSink
from orchestrator.prompt import build_messages
from tests.trainer.support.rollouts import Written, a_pool, a_task
from trainer.demonstrations.transcripts import load_demonstrations, make_demonstration, save_demonstrations
from trainer.errors import InvalidRecipe, TrainingFailed
from trainer.learner.token_transcript import ChatTokens
from trainer.methods.grpo.rewards import load_rewards
from trainer.methods.grpo.rollouts import EpisodeFormat, RolloutEngine
from trainer.methods.grpo.section import RewardSettings
from trainer.recipe import parse_recipe

pytestmark = pytest.mark.medium
# As Qwen2.5 and Qwen3 do: functions in the system prompt, calls as text, outputs in a row inside one turn of the user.
TEMPLATE = (
    "{% if tools %}{{ '<|system|>' }}{% for tool in tools %}{{ tool | tojson }}{% endfor %}{{ '<|end|>' }}{% endif %}"
    "{% for m in messages %}{% if m.role == 'tool' %}"
    "{% if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{ '<|user|>' }}{% endif %}"
    "{{ '<tool_response>' + m.tool_call_id + ' ' + m.content + '</tool_response>' }}"
    "{% if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{ '<|end|>' }}{% endif %}"
    "{% else %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
DIALECT = find_dialect("tool_calls")


@pytest.fixture
def chat(tiny_base):
    from transformers import AutoTokenizer

    tokenizer = copy.copy(AutoTokenizer.from_pretrained(tiny_base))
    tokenizer.chat_template = TEMPLATE
    return ChatTokens(tokenizer)


def call(text: str, *access: int) -> str:
    function = {"name": "repeats", "arguments": {"text": text, "access": list(access)}}
    return f"<tool_call>\n{json.dumps(function)}\n</tool_call>"


TURNS = [f"{call('one')}\n{call('fail')}", call("$1", 1), "right"]


def play(chat: ChatTokens, turns: list[str], style: str = "full", max_rounds: int = 4):
    async def run():
        terms = load_rewards([RewardSettings(term="accuracy")])
        engine = RolloutEngine(
            "learner", a_pool(), chat, EpisodeFormat(DIALECT, style, 400, 40_000, max_rounds), terms, NoSink()
        )

        class Scripted(Written):
            async def generate(self, ids: Any, limit: int, *rest: Any) -> Any:
                self.seen = chat.tokenizer.decode(ids)
                self.turn = lambda _, number: turns[number - 1]
                return await super().generate(ids, limit, *rest)

        return await engine.run_episode(a_task(), Scripted(chat, lambda *_: ""))

    return asyncio.run(run())


@pytest.mark.parametrize("style", ["full", "query"])
def test_the_transcript_is_the_template_of_the_conversation(chat, style):
    rollout = play(chat, TURNS, style)
    episode, pool = rollout.sample.episode, a_pool()
    assert rollout.sample.correct and len(episode.rounds) == 3
    told = [message.write_plain() for message in build_messages(episode, pool, DIALECT, 4, style)[:-1]]
    roles = [message["role"] for message in told if message["role"] != "system"]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "tool", "assistant"]
    offered = {"tools": DIALECT.tools(pool)} if style == "full" else {}
    assert rollout.transcript.ids == chat.tokenizer.apply_chat_template(told, return_dict=False, **offered)
    marked = zip(rollout.transcript.completion, rollout.transcript.mask, strict=True)
    written = chat.tokenizer.decode([token for token, own in marked if own])
    assert written == "".join(f"{turn}<|end|>" for turn in TURNS), "outputs are no target"


def test_outputs_name_their_call_and_say_what_failed(chat):
    episode = play(chat, TURNS).sample.episode
    outputs = [m for m in build_messages(episode, a_pool(), DIALECT, 3) if m.role == "tool"]
    assert [message.tool_call_id for message in outputs] == ["call_1", "call_2", "call_3"]
    assert outputs[0].content == "Step 1 (repeats) OK: one"
    assert outputs[1].content.startswith("Step 2 (repeats) EXEC_ERR: broken")
    assert outputs[2].content.endswith("This is your last turn: it must hold the answer.")


def test_a_call_that_is_no_call_is_answered_in_words(chat):
    episode = play(chat, ["<tool_call>\n{\n</tool_call>", "right"]).sample.episode
    told = build_messages(episode, a_pool(), DIALECT, 4)
    assert [message.role for message in told[2:4]] == ["assistant", "user"] and "PARSE_ERR" in told[3].content


def test_an_endpoint_gets_calls_with_ids_and_no_text_of_them(chat):
    episode = play(chat, [f"I look.\n{TURNS[0]}", *TURNS[1:]]).sample.episode
    said = [message.write_structured() for message in build_messages(episode, a_pool(), DIALECT, 4)]
    first = said[2]
    assert first["content"] == "I look." and [made["id"] for made in first["tool_calls"]] == ["call_1", "call_2"]
    function = first["tool_calls"][0]["function"]
    assert function["name"] == "repeats" and json.loads(function["arguments"]) == {"text": "one", "access": []}
    assert said[3]["role"] == "tool" and said[3]["tool_call_id"] == "call_1"


def test_a_demonstration_ends_with_the_answer_in_a_turn_of_its_own(chat, tmp_path):
    """A plan that calls and answers in one turn becomes calls, outputs, answer; turns of the assistant are targets."""
    rollout = play(chat, [f"{call('one')}\n{call('two')}", *TURNS[1:]])
    episode = rollout.sample.episode
    row = make_demonstration(episode, a_pool(), "tool_calls", "full", 4, "oracle")
    grown = row.transcript(chat)
    assert grown.ids == rollout.transcript.ids and grown.mask == rollout.transcript.mask
    save_demonstrations(tmp_path / "rows.jsonl", [row])
    assert load_demonstrations(tmp_path / "rows.jsonl") == [row]

    whole = copy.copy(episode)
    whole.rounds = [copy.copy(episode.rounds[0])]
    whole.rounds[0].turn = type(episode.rounds[0].turn)(episode.rounds[0].turn.steps, "$1")
    messages = make_demonstration(whole, a_pool(), "tool_calls", "full", 4, "oracle").messages
    assert [message.role for message in messages] == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert messages[-1].content == "$1" and messages[-1].learn


def test_a_template_without_tools_is_refused(tiny_base):
    from transformers import AutoTokenizer

    plain = ChatTokens(AutoTokenizer.from_pretrained(tiny_base))
    with pytest.raises(TrainingFailed, match="knows no tools"):
        play(plain, TURNS)


def test_the_answer_needs_a_turn_of_its_own():
    with pytest.raises(InvalidRecipe, match="max_rounds: 2 or more"):
        parse_recipe("{model: {dialect: tool_calls}, grpo: {rollouts: {max_rounds: 1}}}")
    assert parse_recipe("{model: {dialect: tool_calls}, grpo: {}}").model.dialect == "tool_calls"
