"""One data set of tool use in each format, as people publish them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

STOCK_SCHEMA = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
STOCK = {"name": "get_stock", "description": "Stock of an item.", "parameters": STOCK_SCHEMA}
PRICE = {
    "name": "get_price",
    "description": "Price of a supplier's item.",
    "parameters": {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]},
}


@dataclass(frozen=True)
class ToolFile:
    """`steps` are (worker, arguments, access) of the plan that the file's first record becomes."""

    content: bytes
    form: str
    steps: tuple[tuple[str, dict[str, Any], list[int]], ...]
    answer: object


def write_lines(*records: object) -> bytes:
    return "\n".join(json.dumps(record, ensure_ascii=False) for record in records).encode()


def openai_call(number: int, tool: str, **arguments: object) -> dict[str, Any]:
    return {"id": f"c{number}", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}


OPENAI = {
    "messages": [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": [{"type": "text", "text": "What does tea"}, {"type": "text", "text": "cost?"}]},
        {"role": "assistant", "content": None, "tool_calls": [openai_call(1, "get_stock", item="tea")]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"item": "tea", "sku": "T-77", "stock": 12}'},
        {"role": "assistant", "content": "So.", "tool_calls": [openai_call(2, "get_price", sku="T-77")], "weight": 0},
        {"role": "tool", "tool_call_id": "c2", "content": '{"sku": "T-77", "price": 3.5, "currency": "EUR"}'},
        {"role": "assistant", "content": "It costs 3.5 a packet.", "weight": 1},
    ],
    "tools": [{"type": "function", "function": STOCK}, {"type": "function", "function": PRICE}],
}  # fmt: skip
SHAREGPT = {
    "conversations": [
        {"from": "system", "value": "You help."},
        {"from": "human", "value": "How much tea?"},
        {"from": "function_call", "value": '{"name": "get_stock", "arguments": {"item": "tea"}}'},
        {"from": "observation", "value": "12"},
        {"from": "gpt", "value": "12 packets."},
    ],
    "tools": json.dumps([STOCK]),
}
HERMES = {
    "conversations": [
        {"from": "system", "value": f"You call functions. <tools>\n{json.dumps(STOCK)}\n</tools>"},
        {"from": "human", "value": "How much tea and oil?"},
        {
            "from": "gpt",
            "value": "<tool_call>\n{'name': 'get_stock', 'arguments': {'item': 'tea'}}\n</tool_call>\n"
            "<tool_call>\n{'name': 'get_stock', 'arguments': {'item': 'oil'}}\n</tool_call>",
        },
        {
            "from": "tool",
            "value": '<tool_response>\n{"name": "get_stock", "content": 12}\n</tool_response>\n'
            '<tool_response>\n{"name": "get_stock", "content": "none left"}\n</tool_response>',
        },
        {"from": "gpt", "value": "12 of tea, and no oil."},
    ]
}
XLAM = {
    "id": 7,
    "query": "How many packets of tea?",
    "tools": json.dumps(
        [
            {
                "name": "get_stock",
                "description": "Stock.",
                "parameters": {
                    "item": {"type": "str", "description": "What."},
                    "unit": {"type": "str, optional", "default": "packet"},
                },
            }
        ]
    ),
    "answers": json.dumps([{"name": "get_stock", "arguments": {"item": "tea", "unit": "packet"}}]),
}
GLAIVE = {
    "system": f"SYSTEM: Use these functions if required -\n{json.dumps(STOCK, indent=4)}\n",
    "chat": "USER: How much tea?\n\n\nASSISTANT: <functioncall> "
    """{"name": "get_stock", "arguments": '{"item": "tea"}'} <|endoftext|>\n\n\nFUNCTION RESPONSE: 12\n\n\n"""
    "ASSISTANT: 12 packets. <|endoftext|>\n\n\n",
}
TOOLBENCH = {
    "id": "Step 3: How much tea?",
    "conversations": [
        {
            "from": "system",
            "value": "You are AutoGPT.\nThought:\nAction\nAction Input:\n\nSpecifically, you have access to the "
            f"following APIs: {[STOCK, {'name': 'Finish', 'description': 'Ends.', 'parameters': {}}]}",
        },
        {"from": "user", "value": "\nHow much tea?\nBegin!\n"},
        {"from": "assistant", "value": '\nThought: \nAction: get_stock\nAction Input: {\n "item": "tea"\n}\n'},
        {"from": "function", "value": "12"},
        {
            "from": "assistant",
            "value": '\nThought: I know.\nAction: Finish\nAction Input: {"return_type": "give_answer", "final_answer": '
            '"12 packets."}',
        },
    ],
}
CALLED = {"role": "assistant", "content": '<TOOLCALL>[{"name": "get_stock", "arguments": {"item": "tea"}}]</TOOLCALL>'}
CHAT = [
    {"role": "user", "content": "How much tea?"},
    {"role": "assistant", "content": None, "tool_calls": [openai_call(1, "get_stock", item="tea")]},
    {"role": "tool", "tool_call_id": "c1", "content": "12"},
]
PREFERRED, REJECTED = [{"role": "assistant", "content": "12 packets."}], [{"role": "assistant", "content": "Much."}]
OPENAI_DPO = {
    "input": {"messages": CHAT, "tools": [{"type": "function", "function": STOCK}], "parallel_tool_calls": True},
    "preferred_output": PREFERRED,
    "non_preferred_output": REJECTED,
}
WHEN2CALL = {
    "tools": [json.dumps(STOCK)],
    "messages": [{"role": "user", "content": "How much tea?"}],
    "chosen_response": CALLED,
    "rejected_response": {"role": "assistant", "content": "I cannot say."},
}
ALPACA = {"instruction": "What is 6 x 7?", "input": "", "output": "42"}
BFCL_QUESTION = {
    "id": "parallel_0",
    "question": [[{"role": "user", "content": "How much tea and how much oil?"}]],
    "function": [
        {
            "name": "shop.get_stock",
            "description": "Stock of an item.",
            "parameters": {
                "type": "dict",
                "properties": {"item": {"type": "string"}, "cap": {"type": "float", "default": None}},
                "required": ["item"],
            },
        }
    ],
}
BFCL_ANSWER = {
    "id": "parallel_0",
    "ground_truth": [
        {"shop.get_stock": {"item": ["tea", "green tea"], "cap": ["", None]}},
        {"shop.get_stock": {"item": ["oil"], "cap": [""]}},
    ],
}
GEMINI = {
    "systemInstruction": {"role": "system", "parts": [{"text": "You help."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "What is the price of tea?"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "get_stock", "args": {"item": "tea"}}}]},
        {
            "role": "function",
            "parts": [{"functionResponse": {"name": "get_stock", "response": {"item": "tea", "sku": "T-77"}}}],
        },
        {"role": "model", "parts": [{"functionCall": {"name": "get_price", "args": {"sku": "T-77"}}}]},
        {
            "role": "tool",
            "parts": [{"functionResponse": {"name": "get_price", "response": {"price": 3.5, "currency": "EUR"}}}],
        },
        {"role": "model", "parts": [{"text": "It costs 3.5 a packet."}]},
    ],
    "tools": [
        {
            "functionDeclarations": [
                {
                    "name": name,
                    "description": f"The {argument} of an item.",
                    "parameters": {
                        "type": "OBJECT",
                        "properties": {argument: {"type": "STRING", "maxLength": "40"}},
                        "required": [argument],
                    },
                }
                for name, argument in (("get_stock", "item"), ("get_price", "sku"))
            ]
        },
    ],
}


def write_parquet(*records: dict[str, Any]) -> bytes:
    from io import BytesIO

    import pyarrow as pa
    from pyarrow import parquet

    file = BytesIO()
    parquet.write_table(pa.Table.from_pylist(list(records)), file)
    return file.getvalue()


ONE_STOCK: tuple[tuple[str, dict[str, Any], list[int]], ...] = (("get_stock", {"item": "tea"}, []),)
TWO_ECHOES = ['recorded call shop.get_stock {"item": "tea"}', 'recorded call shop.get_stock {"item": "oil"}']
TOOL_FILES = {
    "openai.jsonl": ToolFile(
        write_lines(OPENAI),
        "OpenAI messages in JSONL",
        (("get_stock", {"item": "tea"}, []), ("get_price", {"sku": "$1.sku"}, [1])),
        3.5,
    ),
    "sharegpt.json": ToolFile(json.dumps([SHAREGPT]).encode(), "ShareGPT in JSON", ONE_STOCK, 12),
    "sharegpt.parquet": ToolFile(write_parquet(SHAREGPT), "ShareGPT in Parquet", ONE_STOCK, 12),
    "hermes.jsonl": ToolFile(
        write_lines(HERMES),
        "Hermes in JSONL",
        (("get_stock", {"item": "tea"}, []), ("get_stock", {"item": "oil"}, [])),
        [12, "none left"],
    ),
    "toolbench.json": ToolFile(json.dumps([TOOLBENCH]).encode(), "ReAct in JSON", ONE_STOCK, 12),
    "openai_dpo.jsonl": ToolFile(write_lines(OPENAI_DPO), "preferences in JSONL", ONE_STOCK, 12),
    "when2call.jsonl": ToolFile(
        write_lines(WHEN2CALL), "preferences in JSONL", ONE_STOCK, 'recorded call get_stock {"item": "tea"}'
    ),
    "glaive.jsonl": ToolFile(write_lines(GLAIVE), "Glaive in JSONL", ONE_STOCK, 12),
    "gemini.jsonl": ToolFile(
        write_lines(GEMINI),
        "Gemini in JSONL",
        (("get_stock", {"item": "tea"}, []), ("get_price", {"sku": "$1.sku"}, [1])),
        3.5,
    ),
    "gemini.parquet": ToolFile(
        write_parquet(GEMINI),
        "Gemini in Parquet",
        (("get_stock", {"item": "tea"}, []), ("get_price", {"sku": "$1.sku"}, [1])),
        3.5,
    ),
    "xlam.json": ToolFile(
        json.dumps([XLAM]).encode(),
        "xLAM in JSON",
        (("get_stock", {"item": "tea", "unit": "packet"}, []),),
        'recorded call get_stock {"item": "tea"}',
    ),
    "bfcl.jsonl": ToolFile(
        write_lines({**BFCL_QUESTION, **BFCL_ANSWER}),
        "BFCL in JSONL",
        (("shop_get_stock", {"item": "tea"}, []), ("shop_get_stock", {"item": "oil"}, [])),
        TWO_ECHOES,
    ),
    "bfcl_apart.jsonl": ToolFile(
        write_lines(BFCL_ANSWER, BFCL_QUESTION),
        "BFCL in JSONL",
        (("shop_get_stock", {"item": "tea"}, []), ("shop_get_stock", {"item": "oil"}, [])),
        TWO_ECHOES,
    ),
}
