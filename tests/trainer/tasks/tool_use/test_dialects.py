"""Conversations as other programs write them: each is read as the same question, call, output and answer."""

from __future__ import annotations

import json

import pytest

from tests.trainer.support.tool_use_files import GLAIVE, OPENAI_DPO, PREFERRED, REJECTED, TOOLBENCH
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
CAPITALS = {"type": "OBJECT", "properties": {"item": {"type": "STRING"}}, "required": ["item"]}
DECLARED = {"functionDeclarations": [{**STOCK, "parameters": CAPITALS}]}
GEMINI = [
    {"role": "user", "parts": [{"text": "How much tea?"}]},
    {"role": "model", "parts": [
        {"text": "The stock, then.", "thought": True},
        {"functionCall": {"id": "1", "name": "get_stock", "args": {"item": "tea"}}, "thoughtSignature": "c2ln"},
    ]},
    {"role": "user", "parts": [
        {"functionResponse": {"id": "1", "name": "get_stock", "response": {"output": 12}}},
    ]},
    {"role": "model", "parts": [{"text": "12 packets."}]},
]  # fmt: skip
DIALECTS = {
    "Gemini": {"contents": GEMINI, "tools": [DECLARED]},
    "Gemini in a text": {"contents": json.dumps(GEMINI), "tools": json.dumps([DECLARED])},
    "Gemini in the words of Python": {
        "system_instruction": None,
        "contents": [
            {"parts": {"text": "How much tea?"}},
            {"role": "MODEL", "parts": [
                {"text": None, "function_call": {"name": "get_stock", "args": {"item": "tea"}}},
            ]},
            {"role": "tool", "parts": [{"function_response": {
                "name": "get_stock", "response": {"name": "get_stock", "content": "12"},
            }}]},
            {"role": "model", "parts": [{"text": "12 packets.", "function_call": None}]},
        ],
        "tools": [{"google_search": {}}, {"function_declarations": [
            {"name": "get_stock", "description": "Stock of an item.", "parameters_json_schema": WORDS},
        ]}],
    },
    "Gemini in a batch": {
        "request": {"contents": GEMINI[:-1], "tools": [DECLARED]},
        "response": {"candidates": [{"content": GEMINI[-1], "finishReason": "STOP"}]},
    },
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
    "Anthropic with thoughts": {
        "system": [{"type": "text", "text": ""}],
        "tools": [STOCK],
        "messages": [
            {"role": "user", "content": "How much tea?"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "The stock, then.", "signature": "c2ln"},
                {"type": "tool_use", "id": "1", "name": "get_stock", "input": {"item": "tea"}},
            ]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "12"}]},
            {"role": "assistant", "content": "12 packets."},
        ],
    },
    "Amazon Bedrock": {
        "toolConfig": {"tools": [{"toolSpec": {**STOCK, "inputSchema": {"json": WORDS}}}]},
        "messages": [
            {"role": "user", "content": [{"text": "How much tea?"}]},
            {"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": "The stock, then."}}},
                {"toolUse": {"toolUseId": "1", "name": "get_stock", "input": {"item": "tea"}}},
            ]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"json": 12}]}}]},
            {"role": "assistant", "content": [{"text": "12 packets."}]},
        ],
    },
    "OpenAI's responses": {
        "tools": [{"type": "function", **STOCK}],
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "How much tea?"}]}],
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "1", "name": "get_stock", "arguments": '{"item": "tea"}'},
            {"type": "function_call_output", "call_id": "1", "output": "12"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "12 packets."}]},
        ],
    },
    "the AI SDK": {
        "tools": [STOCK],
        "messages": [
            {"role": "user", "content": "How much tea?"},
            {"role": "assistant", "content": [
                {"type": "tool-call", "toolCallId": "1", "toolName": "get_stock", "input": {"item": "tea"}},
            ]},
            {"role": "tool", "content": [{
                "type": "tool-result", "toolCallId": "1", "toolName": "get_stock",
                "output": {"type": "json", "value": 12},
            }]},
            {"role": "assistant", "content": "12 packets."},
        ],
    },
    "the AI SDK's page": {
        "tools": [STOCK],
        "messages": [
            {"id": "a", "role": "user", "parts": [{"type": "text", "text": "How much tea?"}]},
            {"id": "b", "role": "assistant", "parts": [
                {"type": "step-start"},
                {"type": "tool-get_stock", "toolCallId": "1", "input": {"item": "tea"}, "output": 12},
                {"type": "text", "text": "12 packets."},
            ]},
        ],
    },
    "the AI SDK's older page": {
        "tools": [STOCK],
        "messages": [
            {"role": "user", "content": "How much tea?"},
            {"role": "assistant", "content": "12 packets.", "toolInvocations": [
                {"state": "result", "toolCallId": "1", "toolName": "get_stock", "args": {"item": "tea"}, "result": 12},
            ]},
        ],
    },
    "TRL's pairs": {"tools": [STOCK], "prompt": OPENAI[:1], "completion": OPENAI[1:]},
    "LangChain": {
        "tools": [STOCK],
        "messages": [
            {"type": "human", "content": "How much tea?"},
            {"type": "ai", "content": "", "tool_calls": [{"name": "get_stock", "args": {"item": "tea"}, "id": "1"}]},
            {"type": "tool", "content": "12", "tool_call_id": "1"},
            {"type": "ai", "content": "12 packets."},
        ],
    },
    "Glaive": GLAIVE,
    "ToolBench": TOOLBENCH,
    "OpenAI's preferences": OPENAI_DPO,
    "TRL's preferences": {"tools": [STOCK], "prompt": OPENAI[:3], "chosen": PREFERRED, "rejected": REJECTED},
    "preferences with the whole chat beside a prompt": {
        "tools": [STOCK],
        "prompt": "How much tea?",
        "chosen": [*OPENAI[:3], *PREFERRED],
        "rejected": [*OPENAI[:3], *REJECTED],
    },
    "TRL's preferences without a prompt": {
        "tools": [json.dumps(STOCK)],
        "chosen": [*OPENAI[:3], *PREFERRED],
        "rejected": [*OPENAI[:3], *REJECTED],
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

WRITTEN = {
    "Llama": '<|python_tag|>{"name": "get_stock", "parameters": {"item": "tea"}}<|eom_id|>',
    "Llama's functions": '<function=get_stock>{"item": "tea"}</function>',
    "Llama's lists": '<|python_tag|>[get_stock(item="tea")]',
    "Mistral": '[TOOL_CALLS] [{"name": "get_stock", "arguments": {"item": "tea"}}]</s>',
    "Nemotron": '<TOOLCALL>[{"name": "get_stock", "arguments": {"item": "tea"}}]</TOOLCALL>',
    "Qwen": '<tool_call>\n{"name": "get_stock", "arguments": {"item": "tea"}}\n</tool_call>',
    "Qwen's coder": "<tool_call>\n<function=get_stock>\n<parameter=item>\ntea\n</parameter>\n</function>\n</tool_call>",
}
DIALECTS |= {
    name: {"tools": [STOCK], "messages": [OPENAI[0], {"role": "assistant", "content": text}, *OPENAI[2:]]}
    for name, text in WRITTEN.items()
}


@pytest.mark.parametrize("record", DIALECTS.values(), ids=DIALECTS)
def test_every_dialect_is_the_same_conversation(record):
    _, conversation = read_record(record)
    row = find_format(record)
    assert row is not None and row.calls_tools(record)
    assert [(tool.name, dict(tool.parameters)) for tool in conversation.tools] == [("get_stock", WORDS)]
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
    record = GLAIVE | {"system": "SYSTEM: Use {these}."}
    with pytest.raises(ValueError, match="JSON"):
        read_record(record)
    row = find_format(record)
    assert row is not None and row.calls_tools(record)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"role": "narrator", "parts": [{"text": "a"}]}, "content 2: the role 'narrator' is not known here"),
        ({"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": ""}}]}, r"no text \(inlineData\)"),
        ({"role": "user", "parts": [{"functionCall": {"name": "f"}}]}, "the role is user, not model"),
        ({"role": "model", "parts": [{"functionCall": {"args": {}}}]}, "content 2: a call has no name"),
        ({"role": "tool", "parts": [{"functionResponse": {"response": {}}}]}, "no call before it waits for one"),
        ("hello", "content 2: this must be an object with a role and parts"),
    ],
)
def test_a_content_of_gemini_that_is_wrong_is_named_by_its_place(content, problem):
    with pytest.raises(ValueError, match=problem):
        read_record({"contents": [GEMINI[0], content]})


def test_a_system_instruction_and_a_chat_without_tools_are_read():
    record = {"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": [GEMINI[0], GEMINI[-1]]}
    name, conversation = read_record(record)
    row = find_format(record)
    assert row is not None and name == "Gemini" and not row.calls_tools(record)
    assert [(turn.speaker, turn.text) for turn in conversation.turns] == [
        ("system", "Be brief."),
        ("user", "How much tea?"),
        ("assistant", "12 packets."),
    ]


def test_a_schema_that_cannot_be_used_as_it_stands_loses_no_tool():
    odd = {"type": "OBJECT", "properties": {"item": {"type": "STRING", "pattern": "(?<", "nullable": True}}}
    tools = [{"functionDeclarations": [{"name": "get_stock", "parameters": odd}]}]
    _, conversation = read_record({"contents": GEMINI, "tools": tools})
    (tool,) = conversation.tools
    assert tool.parameters["properties"] == {"item": {"type": ["string", "null"]}}
    assert any("pattern" in note for note in tool.mended)


def test_marks_of_calls_that_hold_none_are_a_problem_and_no_lesson():
    for text in ("<TOOLCALL>get the stock</TOOLCALL>", "[TOOL_CALLS] the stock", "<function=get_stock>tea</function>"):
        with pytest.raises(ValueError, match=r"message 2: .*is no JSON"):
            read_record({"messages": [OPENAI[0], {"role": "assistant", "content": text}]})


REPLIES = {
    "direct": "12 packets.",
    "tool_call": '<TOOLCALL>[{"name": "get_stock", "arguments": {"item": "tea"}}]</TOOLCALL>',
    "request_for_info": "Which tea?",
    "cannot_answer": "I cannot know.",
}


@pytest.mark.parametrize(
    ("kind", "calls", "refuses"),
    [("tool_call", ["get_stock"], False), ("cannot_answer", [], True), ("request_for_info", [], False)],
)
@pytest.mark.parametrize("call", [REPLIES["tool_call"], '{"name": "get_stock", "arguments": {"item": "tea"}}'])
def test_the_reply_of_the_right_kind_is_read(kind, calls, refuses, call):
    replies = REPLIES | {"tool_call": call}
    record = {"question": "How much?", "tools": [json.dumps(STOCK)], "answers": replies, "correct_answer": kind}
    name, conversation = read_record(record)
    end = conversation.turns[-1]
    assert (name, [made.tool for made in end.calls], end.refuses) == ("When2Call", calls, refuses)
    with pytest.raises(ValueError, match="none of the kind other"):
        read_record(record | {"correct_answer": "other"})


def change_last(text: str) -> dict:
    *turns, _ = TOOLBENCH["conversations"]
    return {"conversations": [*turns, {"from": "assistant", "value": text}]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('Action: Finish\nAction Input: {"return_type": "give_up_and_restart"}', "message 5: it gives up here"),
        ("Action: get_stock\nAction Input: tea", "message 5: the input of get_stock is no JSON"),
    ],
)
def test_what_a_chat_of_toolbench_does_not_show_is_a_problem_of_its_message(text, problem):
    with pytest.raises(ValueError, match=problem):
        read_record(change_last(text))


def test_a_prompt_that_describes_such_calls_is_none():
    chat = {
        "tools": [STOCK],
        "messages": [{"role": "system", "content": "Action: a tool\nAction Input: JSON"}, *OPENAI],
    }
    name, conversation = read_record(chat)
    assert name == "OpenAI messages" and conversation.turns[0].text.startswith("Action: a tool")


def test_nested_preferences_are_no_endless_story():
    record: dict = {"messages": OPENAI}
    for _ in range(400):
        record = {"input": record, "preferred_output": PREFERRED}
    row = find_format(record)
    assert row is not None and row.name == "preferences" and not row.calls_tools(record)
    with pytest.raises(ValueError, match="none of the kind"):
        read_record({"question": "q", "tools": [], "answers": {}, "correct_answer": ["direct"]})
