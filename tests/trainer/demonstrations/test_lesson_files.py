"""Files of conversations from elsewhere as demonstrations: for a model that calls tools, and for a reader."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from orchestrator.dialects import find_dialect
from tests.trainer.support.tool_use_files import (
    ALPACA,
    BFCL_ANSWER,
    BFCL_QUESTION,
    GEMINI,
    HERMES,
    OPENAI,
    SHAREGPT,
    TOOL_FILES,
    XLAM,
    openai_call,
    write_lines,
    write_parquet,
)
from trainer.demonstrations.lesson_files import load_lesson_file
from trainer.demonstrations.transcripts import BY_THE_LISTING, Demonstration
from trainer.errors import TrainingFailed
from trainer.learner.token_transcript import ChatTokens
from trainer.recipe_sections import ModelSettings

CALLS = ModelSettings(dialect="tool_calls", prompt="full")
READER = ModelSettings(prompt="reader")
DIALECT = find_dialect("tool_calls")
TEMPLATE = (
    "{% if tools %}{{ '<|system|>' }}{% for tool in tools %}{{ tool | tojson }}{% endfor %}{{ '<|end|>' }}{% endif %}"
    "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


@pytest.fixture
def load(tmp_path):
    def load_content(content: bytes, model: ModelSettings = CALLS, name: str = "lessons.jsonl") -> list[Demonstration]:
        file: Path = tmp_path / name
        file.write_bytes(content)
        return load_lesson_file(file, model, BY_THE_LISTING)

    return load_content


def list_roles(row: Demonstration) -> list[str]:
    return [message.role for message in row.messages]


@pytest.mark.parametrize("name", TOOL_FILES)
def test_a_file_of_each_format_is_learnt_as_calls_and_as_a_plan(load, name):
    (row,) = load(TOOL_FILES[name].content, CALLS, name)
    assert list_roles(row)[:3] == ["system", "user", "assistant"] and row.messages[0].content
    turn = DIALECT.parse(row.messages[2].content, 1, ())
    assert turn.error is None and turn.steps[0].worker == TOOL_FILES[name].steps[0][0]
    assert "access" in json.loads(row.tools)[0]["function"]["parameters"]["properties"]
    (plan,) = load(TOOL_FILES[name].content, READER, name)
    assert plan.messages[-1].role == "assistant" and plan.messages[-1].learn and not plan.tools


def test_a_conversation_becomes_what_a_model_on_a_pool_of_its_tools_would_have_written(load):
    (row,) = load(write_lines(OPENAI))
    assert list_roles(row) == ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"]
    rules = row.messages[0].content
    assert rules.startswith("You orchestrate workers") and rules.endswith("You help.")
    assert row.messages[1].content == "What does tea\ncost?"
    second = DIALECT.parse(row.messages[4].content, 2, ()).steps[0]
    assert (second.id, second.worker, second.arguments) == (2, "get_price", {"sku": "T-77"})
    assert row.messages[5].content.startswith("Step 2 (get_price) OK: ") and row.messages[5].tool_call_id == "call_2"
    assert row.messages[6].content == "It costs 3.5 a packet."


def test_a_message_of_weight_0_is_not_learnt(load):
    (row,) = load(write_lines(OPENAI))
    assert [message.learn for message in row.messages if message.role == "assistant"] == [True, False, True]
    unlearnt = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "weight": 0}]}
    with pytest.raises(TrainingFailed, match="line 1: no turn of the assistant in it is to be learnt"):
        load(write_lines(unlearnt))


def test_conversations_without_tools_are_learnt_as_they_stand(load):
    parts = [{"type": "text", "text": "What is"}, {"type": "text", "text": "6 x 7?"}]
    chat = {"messages": [{"role": "user", "content": parts}, {"role": "assistant", "content": "42", "weight": 1}]}
    sides = (("user", "What is 6 x 7?"), ("model", "42"))
    gemini = {"contents": [{"role": role, "parts": [{"text": text}]} for role, text in sides]}
    for row in load(write_lines(chat, ALPACA, gemini), ModelSettings(dialect="plan")):
        assert list_roles(row) == ["user", "assistant"] and row.messages[1].content == "42" and row.messages[1].learn


def test_arrays_and_parquet_of_plain_messages_are_read(load):
    chat = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    for content, name in ((json.dumps([chat, chat]).encode(), "a.json"), (write_parquet(chat, chat), "a.parquet")):
        assert [list_roles(row) for row in load(content, CALLS, name)] == [["user", "assistant"]] * 2


def test_records_that_teach_nothing_are_left_out_and_said(load, caplog):
    broken = {"messages": [{"role": "narrator", "content": "c"}]}
    assert len(load(write_lines(SHAREGPT, broken))) == 1
    assert "line 2: message 1: the role 'narrator' is not known here" in caplog.text
    with pytest.raises(TrainingFailed, match=r"nothing in the file is a lesson \(lessons\.jsonl, line 1: it has no"):
        load(write_lines(BFCL_QUESTION))


def test_a_model_that_writes_other_plans_is_told_what_to_set(load):
    with pytest.raises(TrainingFailed, match=r"set model\.dialect to tool_calls, or make the file a pool"):
        load(write_lines(HERMES), ModelSettings(dialect="plan", prompt="full"))


def test_calls_that_the_user_interrupts_end_the_lesson(load):
    chat = copy.deepcopy(OPENAI)
    chat["messages"][4:] = [
        {"role": "user", "content": "Stop."},
        {"role": "assistant", "content": "", "tool_calls": [openai_call(3, "get_stock", item="x")]},
    ]
    (row,) = load(write_lines(chat))
    assert list_roles(row) == ["system", "user", "assistant"]


@pytest.mark.medium
def test_the_lessons_fit_into_a_template_of_calls(load, tiny_base):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_base)
    tokenizer.chat_template = TEMPLATE
    chat = ChatTokens(tokenizer)
    for record in (OPENAI, SHAREGPT, GEMINI, HERMES, XLAM, {**BFCL_QUESTION, **BFCL_ANSWER}):
        (row,) = load(write_lines(record))
        grown = row.transcript(chat)
        assert any(grown.mask)
