"""Reads chats whose assistant writes calls as ReAct does, in lines `Action:` and `Action Input:`: ToolBench."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pool_registry.actions import JsonValue
from trainer.tasks.tool_use.chat import ROLES, find_chat, find_text, list_texts, read_chat, read_kind, read_role
from trainer.tasks.tool_use.conversation import Conversation
from trainer.tasks.tool_use.loose_json import load_loose

MAX_CHARS = 200_000  # of a text that lists tools
_ACTION = re.compile(r"^Action:[ \t]*(\S[^\n]*)\n+Action Input:[ \t]*", re.MULTILINE)
_TOOLS = re.compile(r"\[\s*\{\s*['\"]name['\"]")
BEGIN = "Begin!"  # ends a question of ToolBench
FINISH = "Finish"  # ends a chat of ToolBench, with the answer as its argument
ANSWER = "final_answer"


def is_react(record: Mapping[str, Any]) -> bool:
    """Whether an assistant of a record writes such calls."""
    messages = [message for message in find_chat(record) if isinstance(message, Mapping)]
    replies = [message for message in messages if ROLES.get(read_role(message)) == "assistant"]
    return any(_ACTION.search(text) for text in list_texts(replies))


def read_react(record: Mapping[str, Any]) -> Conversation:
    """The conversation of a record. Raises ValueError with the number of the message that is wrong."""
    tools: list[JsonValue] = []
    messages = list(_write_messages(find_chat(record), tools))
    offered = [tool for tool in tools if not (isinstance(tool, Mapping) and tool.get("name") == FINISH)]
    return read_chat({"messages": messages, "tools": offered or record.get("tools")})


def _write_messages(chat: list[Any], tools: list[JsonValue]) -> Iterator[Any]:
    """The messages with their calls as fields; tools that a system message lists are added to `tools`."""
    for place, message in enumerate(chat, start=1):
        text = find_text(message)
        if not isinstance(message, Mapping) or not isinstance(text, str):
            yield message
            continue
        try:
            yield _write_message(message, text, tools)
        except ValueError as error:
            raise ValueError(f"message {place}: {error}") from error


def _write_message(message: Mapping[str, Any], text: str, tools: list[JsonValue]) -> Mapping[str, Any]:
    """Raises ValueError."""
    kind = read_kind(message)
    if kind == "system" and (listed := _list_tools(text)):
        tools += listed
        return {"role": "system", "content": ""}  # the rest of such a text says how to write calls
    if kind == "user":
        return {"role": "user", "content": text.strip().removesuffix(BEGIN).strip()}
    if kind == "assistant":
        return {**_write_reply(text), **({"weight": message["weight"]} if "weight" in message else {})}
    return message


def _list_tools(text: str) -> list[JsonValue]:
    """The tools that the end of a text lists; none where it lists none. Raises ValueError."""
    begin, end = _TOOLS.search(text), text.rfind("]") + 1
    if begin is None or end - begin.start() > MAX_CHARS:
        return []
    try:
        tools = load_loose(text[begin.start() : end])
    except ValueError as error:
        raise ValueError("the list of tools at its end is no JSON") from error
    return tools if isinstance(tools, list) else []


def _write_reply(text: str) -> dict[str, Any]:
    """A message of the assistant's: with the first call that it writes, or its answer. What it thinks is left out.
    Raises ValueError, also where it gives up: nothing of such a chat is shown to be right."""
    action = _ACTION.search(text)
    if action is None:
        return {"role": "assistant", "content": text.strip()}
    name, written = action[1].strip(), text[action.end() :].strip()
    try:
        arguments = load_loose(written) if written else {}
    except ValueError as error:
        raise ValueError(f"the input of {name[:60]} is no JSON") from error
    if name != FINISH:
        return {"role": "assistant", "content": "", "tool_calls": [{"name": name, "arguments": arguments}]}
    answer = arguments.get(ANSWER) if isinstance(arguments, dict) else None
    if not answer:
        raise ValueError("it gives up here, without an answer")
    return {"role": "assistant", "content": str(answer)}
