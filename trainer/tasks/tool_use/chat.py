"""Reads chats: OpenAI's messages and items, ShareGPT's, those of other services by their parts, and calls in tags."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pool_registry.text import one_line, shorten
from trainer.tasks.tool_use.conversation import Conversation, ConversationWriter, Tool, ToolCall
from trainer.tasks.tool_use.loose_json import load_loose, load_objects, load_output
from trainer.tasks.tool_use.parts import THOUGHTS, holds_tools, read_text, split_parts
from trainer.tasks.tool_use.printed_calls import read_printed_calls
from trainer.tasks.tool_use.tagged_calls import CALL_TAGS, read_calls, take_tagged_calls
from trainer.tasks.tool_use.tools import read_call, read_tools

CHATS = ("messages", "conversations", "conversation")
HALVES = {"input": "output", "prompt": "completion"}  # OpenAI's responses as they are logged, and TRL's pairs
TOOLS = ("tools", "functions")
SPEECH = ("content", "value", "parts", "output")  # the first that a message has
CALLS = ("tool_calls", "function_call", "toolInvocations")  # OpenAI's, its older one, the AI SDK's
# What data sets call the speakers; a call and an output may have roles of their own.
ROLES = {
    "system": "system", "developer": "system",
    "user": "user", "human": "user",
    "assistant": "assistant", "gpt": "assistant", "ai": "assistant", "model": "assistant", "bot": "assistant",
    "chatgpt": "assistant", "chatbot": "assistant",
    "function_call": "call", "tool_call": "call",
    "observation": "output", "tool": "output", "function": "output", "tool_response": "output",
    "function_call_output": "output", "function_response": "output", "tool_output": "output", "ipython": "output",
}  # fmt: skip
_RESPONSE = re.compile(r"<tool_response>(.*?)(?:</tool_response>|\Z)", re.DOTALL)
_TOOLS = re.compile(r"<tools>(.*?)</tools>", re.DOTALL)
_LIST = re.compile(r"\s*\[\s*\{")
TAGS = (*CALL_TAGS, "<tool_response>", "<tools>")


def find_chat(record: Mapping[str, Any]) -> list[Any]:
    """The messages of a record; none where it holds no chat."""
    chats = (load_list(record.get(name)) for name in CHATS)
    chat = next((chat for chat in chats if isinstance(chat, list) and any(isinstance(m, Mapping) for m in chat)), [])
    return chat or next((joined for names in HALVES.items() if (joined := _join_halves(record, *names))), [])


def _join_halves(record: Mapping[str, Any], first: str, second: str) -> list[Any]:
    """A chat whose end stands in a field of its own; none where these fields are something else."""
    halves = [load_list(record.get(name)) for name in (first, second)]
    messages = [message for half in halves if isinstance(half, list) for message in half]
    return messages if isinstance(halves[0], list) and all(map(_has_role, messages)) else []


def _has_role(message: object) -> bool:
    return isinstance(message, Mapping) and (read_role(message) in ROLES or message.get("type") in THOUGHTS)


def find_tools(record: Mapping[str, Any]) -> object:
    """The tools that a record offers, as they are written; None where there are none."""
    settings = record.get("toolConfig")  # Amazon Bedrock's
    holders = (record, settings) if isinstance(settings, Mapping) else (record,)
    offers = (holder[name] for holder in holders for name in TOOLS if holder.get(name) not in (None, "", "[]", []))
    return next(offers, None)


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
    if not isinstance(message, Mapping):
        return None
    if holds_tools(message.get("parts")):
        return message["parts"]
    return next((message[name] for name in SPEECH if message.get(name) is not None), None)


def read_chat(record: Mapping[str, Any]) -> Conversation:
    """The conversation of a record. Raises ValueError with the number of the message that is wrong."""
    writer = ConversationWriter()
    tools = list(read_tools(find_tools(record)))
    system = record.get("system", record.get("instructions"))
    if isinstance(system, str | list) and (system := read_text(system)):
        writer.add("system", _read_system(system, tools))
    for place, message in enumerate(find_chat(record), start=1):
        try:
            _add_message(writer, message, tools)
        except ValueError as error:
            raise ValueError(f"message {place}: {error}") from error
    return Conversation(tuple(tools), tuple(writer.turns))


def _add_message(writer: ConversationWriter, message: object, tools: list[Tool]) -> None:
    if not isinstance(message, Mapping):
        raise ValueError("this must be an object with a role and a content")
    if message.get("type") in THOUGHTS:  # an item of its own in OpenAI's responses
        return
    kind, parts = read_kind(message), split_parts(find_text(message))
    text = read_text(parts.rest)
    for output in parts.outputs:
        writer.add_output(output.value, output.id, output.tool)
    if parts.outputs and not text:
        return
    if kind == "system":
        if rules := _read_system(text, tools):
            writer.add("system", rules)
    elif kind == "user":
        _add_user(writer, text)
    elif kind == "assistant":
        _add_reply(writer, text, [*_list_calls(message), *parts.calls], _is_learnt(message))
    elif kind == "call":
        calls = read_calls(text) if text else [read_call(message, message.get("call_id"))]
        writer.add("assistant", "", calls, _is_learnt(message))
    else:
        _add_outputs(writer, text, message)


def _add_reply(writer: ConversationWriter, text: str, calls: list[ToolCall], learn: bool) -> None:
    """What the assistant says, with the calls that it writes as fields, as parts or into its text. What it says beside
    calls that have their outputs follows them."""
    printed = read_printed_calls(text)
    rest, tagged = ("", []) if printed else take_tagged_calls(text)
    calls = [*calls, *printed, *tagged]
    if rest and any(call.output is not None for call in calls):
        writer.add("assistant", "", calls, learn)
        calls = []
    writer.add("assistant", rest, calls, learn)


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


def holds_calls(message: Mapping[str, Any]) -> bool:
    """Whether a message calls tools or brings what they returned."""
    return holds_tools(find_text(message)) or any(bool(message.get(name)) for name in CALLS)


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
    call_id = message.get("tool_call_id", message.get("call_id"))
    writer.add_output(output, _read_word(call_id), _read_word(message.get("name")))


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
    """The calls of OpenAI's messages, in today's form and in the older one, and those of the AI SDK's."""
    calls = message.get("tool_calls")
    if isinstance(calls, str) and calls.strip():
        calls = load_objects(calls)
    if calls is not None and not isinstance(calls, list):
        raise ValueError("tool_calls must be a list")
    older, invoked = message.get("function_call"), message.get("toolInvocations")
    if not isinstance(invoked, list) or holds_tools(message.get("parts")):  # where they are written once more
        invoked = []
    made = split_parts([{"toolInvocation": call} for call in invoked]).calls
    return [*(read_call(call) for call in (*(calls or ()), *((older,) if older else ()))), *made]


def _is_learnt(message: Mapping[str, Any]) -> bool:
    """Whether a message is to be learnt: a weight of 0 says that it is not."""
    return message.get("weight") != 0 or message.get("weight") is False


def _read_word(value: object) -> str:
    return value if isinstance(value, str) else ""


def list_texts(chat: Sequence[object]) -> list[str]:
    """What is said in a chat, where it is text."""
    return [text for message in chat for text in [find_text(message)] if isinstance(text, str)]
