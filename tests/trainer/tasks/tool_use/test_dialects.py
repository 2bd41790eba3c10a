"""Conversations as other programs write them: each is read as the same question, call, output and answer."""

from __future__ import annotations

import json

import pytest

from trainer.tasks.tool_use.formats import find_format
from trainer.tasks.tool_use.printed_calls import read_printed_calls
from trainer.tasks.tool_use.reader import read_record

WORDS = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
STOCK = {"name": "get_stock", "description": "Stock of an item.", "parameters": WORDS}
CALL = {"id": "1", "type": "function", "function": {"name": "get_stock", "arguments": '{"item": "tea"}'}}
OPENAI = [
    {"role": "user", "content": "How much tea?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": "12"},
    {"role": "assistant", "content": "12 packets."},
]
DIALECTS = {
    "a chat in a text": {"messages": json.dumps(OPENAI), "tools": json.dumps([STOCK])},
    "a chat in a text of Python": {"messages": repr(OPENAI), "tools": [STOCK]},
    "Anthropic": {
        "tools": [{"name": "get_stock", "description": "Stock of an item.", "input_schema": WORDS}],
        "messages": [
            {"role": "user", "content": "How much tea?"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "1", "name": "get_stock", "input": {"item": "tea"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "12"}]},
            ]},
            {"role": "assistant", "content": [{"type": "text", "text": "12 packets."}]},
        ],
    },
    "LangChain": {
        "tools": [STOCK],
        "messages": [
            {"type": "human", "content": "How much tea?"},
            {"type": "ai", "content": "", "tool_calls": [{"name": "get_stock", "args": {"item": "tea"}, "id": "1"}]},
            {"type": "tool", "content": "12", "tool_call_id": "1"},
            {"type": "ai", "content": "12 packets."},
        ],
    },
    "Glaive": {
        "system": f"SYSTEM: Use these functions if required -\n{json.dumps(STOCK, indent=4)}\n",
        "chat": "USER: How much tea?\n\n\nASSISTANT: <functioncall> "
        """{"name": "get_stock", "arguments": '{"item": "tea"}'} <|endoftext|>\n\n\nFUNCTION RESPONSE: 12\n\n\n"""
        "ASSISTANT: 12 packets. <|endoftext|>\n\n\n",
    },
    "ToolACE": {
        "tools": [STOCK],
        "conversations": [
            {"from": "user", "value": "How much tea?"},
            {"from": "assistant", "value": '[get_stock(item="tea")]'},
            {"from": "tool", "value": "12"},
            {"from": "assistant", "value": "12 packets."},
        ],
    },
}  # fmt: skip


@pytest.mark.parametrize("record", DIALECTS.values(), ids=DIALECTS)
def test_every_dialect_is_the_same_conversation(record):
    _, conversation = read_record(record)
    assert [tool.name for tool in conversation.tools] == ["get_stock"]
    question, call, answer = conversation.turns
    assert question.text == "How much tea?" and answer.text == "12 packets." and not call.text
    assert [(made.tool, made.arguments, made.output) for made in call.calls] == [("get_stock", {"item": "tea"}, 12)]


@pytest.mark.parametrize("text", ["[1](a)", "[f(x)]", "[f(**x)]", "[see](https://a.example/(b))", "[f(a=g())]", "[f(]"])
def test_what_is_no_list_of_calls_stays_a_text(text):
    assert read_printed_calls(text) == []


def test_several_printed_calls_keep_their_order_and_values():
    calls = read_printed_calls('[a.b(x=1, y=[True, None]), c(z="[d(e=1)]")]')
    assert [(call.tool, call.arguments) for call in calls] == [
        ("a.b", {"x": 1, "y": [True, None]}),
        ("c", {"z": "[d(e=1)]"}),
    ]


def test_functions_of_glaive_that_are_no_json_are_a_problem_of_their_record():
    record = DIALECTS["Glaive"] | {"system": "SYSTEM: Use {these}."}
    with pytest.raises(ValueError, match="JSON"):
        read_record(record)
    row = find_format(record)
    assert row is not None and row.calls_tools(record)
