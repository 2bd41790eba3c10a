"""Reads chats: OpenAI's messages, ShareGPT's, and the tags that Hermes writes into either."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pool_registry.actions import JsonValue, as_text, clean_text, storable
from pool_registry.text import one_line, shorten
from trainer.tasks.tool_use.conversation import Conversation, ConversationWriter, Tool, ToolCall
from trainer.tasks.tool_use.loose_json import load_loose, load_objects, load_output
from trainer.tasks.tool_use.printed_calls import read_printed_calls
from trainer.tasks.tool_use.tools import read_call, read_tools

CHATS = ("messages", "conversations", "conversation")
TOOLS = ("tools", "functions")
# What data sets call the speakers; a call and an output may have roles of their own.
PARTS = ("tool_use", "tool_result")
ROLES = {
    "system": "system", "developer": "system",
    "user": "user", "human": "user",
    "assistant": "assistant", "gpt": "assistant", "ai": "assistant", "model": "assistant", "bot": "assistant",
    "chatgpt": "assistant",
    "function_call": "call", "tool_call": "call",
    "observation": "output", "tool": "output", "function": "output", "tool_response": "output",
    "function_response": "output", "tool_output": "output", "ipython": "output",
}  # fmt: skip
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_RESPONSE = re.compile(r"<tool_response>(.*?)(?:</tool_response>|\Z)", re.DOTALL)
_TOOLS = re.compile(r"<tools>(.*?)</tools>", re.DOTALL)
_LIST = re.compile(r"\s*\[\s*\{")
TAGS = ("<tool_call>", "<tool_response>", "<tools>")


def find_chat(record: Mapping[str, Any]) -> list[Any]:
    """The messages of a record; none where it holds no chat."""
    chats = (load_list(record.get(name)) for name in CHATS)
    return next((chat for chat in chats if isinstance(chat, list) and any(isinstance(m, Mapping) for m in chat)), [])


def load_list(value: object) -> object:
    """A value as it is, or the list of objects that a text holds: tables have it so."""
    if not isinstance(value, str) or not _LIST.match(value):
        return value
    try:
        return load_loose(value)
    except ValueError:
        return value


def find_text(message: object) -> object:
    """What a message says, as it is written."""
    return message.get("content", message.get("value")) if isinstance(message, Mapping) else None


def read_chat(record: Mapping[str, Any]) -> Conversation:
    """The conversation of a record. Raises ValueError with the number of the message that is wrong."""
    writer = ConversationWriter()
    tools = list(read_tools(next((record[name] for name in TOOLS if record.get(name)), None)))
    if isinstance(record.get("system"), str) and record["system"].strip():
        writer.add("system", _read_system(record["system"], tools))
    for place, message in enumerate(find_chat(record), start=1):
        try:
            _add_message(writer, message, tools)
        except ValueError as error:
            raise ValueError(f"message {place}: {error}") from error
    return Conversation(tuple(tools), tuple(writer.turns))


def _add_message(writer: ConversationWriter, message: object, tools: list[Tool]) -> None:
    if not isinstance(message, Mapping):
        raise ValueError("this must be an object with a role and a content")
    kind, (calls_inside, outputs, rest) = read_kind(message), _split_parts(find_text(message))
    text = read_text(rest)
    for output in outputs:
        writer.add_output(load_output(read_text(output.get("content"))), _read_word(output.get("tool_use_id")))
    if outputs and not text:
        return
    if kind == "system":
        writer.add("system", _read_system(text, tools))
    elif kind == "user":
        _add_user(writer, text)
    elif kind == "assistant":
        printed = read_printed_calls(text)
        text = "" if printed else text
        calls = [
            *_list_calls(message),
            *calls_inside,
            *printed,
            *(call for part in _CALL.findall(text) for call in _read_calls(part)),
        ]
        writer.add("assistant", _CALL.sub("", text).strip(), calls, _is_learnt(message))
    elif kind == "call":
        writer.add("assistant", "", _read_calls(text), _is_learnt(message))
    else:
        _add_outputs(writer, text, message)


def read_role(message: Mapping[str, Any]) -> str:
    """What a message calls its speaker, in small letters; LangChain has it as the message's type."""
    role = next((message[name] for name in ("role", "from", "type") if message.get(name) is not None), "")
    return role.strip().casefold() if isinstance(role, str) else str(role)


def read_kind(message: Mapping[str, Any]) -> str:
    """What a message is, whatever its role is called: a value of ROLES. Raises ValueError for any other role."""
    kind = ROLES.get(read_role(message))
    if kind is None:
        shown = shorten(one_line(read_role(message)), 40)
        raise ValueError(f"the role {shown!r} is not known here; use system, user, assistant or tool")
    return kind


def _split_parts(content: object) -> tuple[list[ToolCall], list[Mapping[str, Any]], object]:
    """The calls and outputs among the parts of a message, as Anthropic has them, and the other parts."""
    if not isinstance(content, list):
        return [], [], content
    parts = {kind: [part for part in content if _is_part(part, kind)] for kind in PARTS}
    calls = [read_call({**part, "arguments": part.get("input")}, part.get("id")) for part in parts["tool_use"]]
    rest = [part for part in content if not any(_is_part(part, kind) for kind in PARTS)]
    return calls, parts["tool_result"], rest


def _is_part(part: object, kind: str) -> bool:
    return isinstance(part, Mapping) and part.get("type") == kind


def holds_calls(message: Mapping[str, Any]) -> bool:
    """Whether a message calls tools or brings what they returned."""
    content = find_text(message)
    parts = content if isinstance(content, list) else []
    by_part = any(_is_part(part, kind) for part in parts for kind in PARTS)
    return by_part or bool(message.get("tool_calls") or message.get("function_call"))


def _add_user(writer: ConversationWriter, text: str) -> None:
    """A user's message; some data sets have the user pass on what a tool returned, in tags."""
    for response in _RESPONSE.findall(text):
        _add_response(writer, response)
    rest = _RESPONSE.sub("", text).strip()
    if rest or not _RESPONSE.search(text):
        writer.add("user", rest)


def _add_outputs(writer: ConversationWriter, text: str, message: Mapping[str, Any]) -> None:
    responses = _RESPONSE.findall(text)
    for response in responses:
        _add_response(writer, response)
    if responses:
        return
    output = load_output(text)
    if isinstance(output, list) and len(output) == writer.waiting > 1:
        for item in output:
            writer.add_output(item)
        return
    writer.add_output(output, *(_read_word(message.get(key)) for key in ("tool_call_id", "name")))


def _add_response(writer: ConversationWriter, response: str) -> None:
    """What Hermes writes for an output: {"name": ..., "content": ...}, or the output itself."""
    try:
        value = load_loose(response.strip())
    except ValueError:
        value = load_output(response)
    if isinstance(value, dict) and "content" in value and set(value) <= {"name", "content", "call_id", "tool_call_id"}:
        call_id = _read_word(value.get("tool_call_id", value.get("call_id")))
        writer.add_output(value["content"], call_id, _read_word(value.get("name")))
    else:
        writer.add_output(value)


def _read_system(text: str, tools: list[Tool]) -> str:
    """The text of a system message without the tools that it lists in tags, which are added to `tools`."""
    listed = [tool for part in _TOOLS.findall(text) for tool in read_tools(part)]
    names = {tool.name for tool in tools}
    tools += [tool for tool in listed if tool.name not in names]
    return "" if listed else text.strip()  # the rest of such a text says how to write calls


def _list_calls(message: Mapping[str, Any]) -> list[ToolCall]:
    """The calls of OpenAI's messages, in today's form and in the older one."""
    calls = message.get("tool_calls")
    if isinstance(calls, str) and calls.strip():
        calls = load_objects(calls)
    if calls is not None and not isinstance(calls, list):
        raise ValueError("tool_calls must be a list")
    older = message.get("function_call")
    return [read_call(call) for call in (*(calls or ()), *((older,) if older else ()))]


def _read_calls(text: str) -> list[ToolCall]:
    try:
        values = load_objects(text)
    except ValueError as error:
        raise ValueError(f"the call {shorten(one_line(text), 60)!r} is no JSON") from error
    return [read_call(value) for value in values]


def _is_learnt(message: Mapping[str, Any]) -> bool:
    """Whether a message is to be learnt: a weight of 0 says that it is not."""
    return message.get("weight") != 0 or message.get("weight") is False


def _read_word(value: object) -> str:
    return value if isinstance(value, str) else ""


def read_text(content: object) -> str:
    """The text of a message, which may be in parts. Raises ValueError where a part is no text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return clean_text(content).strip()
    if isinstance(content, list):
        return "\n".join(filter(None, map(_read_part, content)))
    return _write_value(content)


def _read_part(part: object) -> str:
    if isinstance(part, str):
        return clean_text(part)
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return clean_text(part["text"])
    kind = part.get("type") if isinstance(part, Mapping) else None
    raise ValueError(f"a part of it is no text{f' ({shorten(one_line(str(kind)), 30)})' if kind else ''}")


def _write_value(value: object) -> str:
    """The text of a value: what a tool returned may stand there as it is."""
    plain: JsonValue = storable(value)
    return as_text(plain)


def list_texts(chat: Sequence[object]) -> list[str]:
    """What is said in a chat, where it is text."""
    return [text for message in chat for text in [find_text(message)] if isinstance(text, str)]
