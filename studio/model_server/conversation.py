"""Turns a conversation, as a client sends it, into the one query that an orchestrator gets.

A single user message is the query, unchanged: small models were trained on bare queries. In longer conversations
everything before the last user message stands in front of it as labelled context, and what came after it, calls of the
client's tools and their outputs, behind it.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.prompt import write_query
from studio.model_server.errors import TOO_LARGE, ApiError, invalid_value

MAX_PIECES = 10_000  # messages and parts of them that a request may have: reading one takes some 10 microseconds
MAX_EXCHANGES = 10  # that a follow-up may go back to
_TEXTS = ("text", "input_text", "output_text")
_PARTS = ("content", "output", "tool_calls")
_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_LEFT_OUT = ("reasoning", "item_reference", "compaction")  # items of a Responses input that hold no words for us


@dataclass(frozen=True, slots=True)
class ConversationMessage:
    """One message; `role` is system, user, assistant or tool. A tool's holds the output of the call `call`. `left_out`
    is the type of a part that is no text, such as an image: such parts are not read."""

    role: str
    text: str
    call: str = ""
    left_out: str = ""

    @property
    def has_text(self) -> bool:
        return bool(self.text) and not self.text.isspace()

    @property
    def has_only_others(self) -> bool:
        """Whether it holds nothing but parts that are no text."""
        return bool(self.left_out) and not self.has_text

    @property
    def asks(self) -> bool:
        """Whether it is the user's, and holds anything."""
        return self.role == "user" and (self.has_text or self.has_only_others)


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a user wrote, and what was answered."""

    question: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What a conversation asks: the text of the message to answer, the `query` with the conversation around it, and
    the types of what the message holds in place of text ("" where it has text). `before` are the last exchanges before
    it, `rules` what the system messages say, and `is_last` whether the conversation ends with it."""

    text: str
    query: str
    unread: str
    before: tuple[Exchange, ...] = ()
    rules: tuple[str, ...] = ()
    is_last: bool = True


def read_question(messages: Sequence[ConversationMessage], param: str) -> Question:
    """What is asked: the last message of the user, and the query around it. Raises ApiError when there is nothing to
    answer."""
    place = _find_question(messages)
    if place is None:
        raise invalid_value(param, f"{param} has no text that could be answered; write a question")
    question = messages[place]
    unread = question.left_out if question.has_only_others else ""
    words = question.text if question.has_text else f"[{unread}]"
    query = write_query(words, _list_texts(messages[:place]), _list_texts(messages[place + 1 :]))
    rules = tuple(message.text for message in messages if message.role == "system" and message.has_text)
    is_last = place == len(messages) - 1
    return Question(question.text, query, unread, _list_exchanges(messages[:place]), rules, is_last)


def write_asked_first(question: str, rules: Sequence[str]) -> str:
    """The query of a question that a conversation with these rules would begin with."""
    return write_query(question, [("system", text) for text in rules])


def _list_exchanges(messages: Sequence[ConversationMessage]) -> tuple[Exchange, ...]:
    """The last exchanges of a conversation. What stands between a question and the last message of the assistant, such
    as calls of tools, is left out."""
    exchanges: deque[Exchange] = deque(maxlen=MAX_EXCHANGES)
    for message in messages:
        if message.asks:
            exchanges.append(Exchange(message.text))
        elif exchanges and message.role == "assistant" and message.has_text:
            exchanges[-1] = replace(exchanges[-1], answer=message.text)
    return tuple(exchanges)


def _find_question(messages: Sequence[ConversationMessage]) -> int | None:
    """The place of the message to answer: the last one of the user, where there is none the last one with text. An
    image may follow the words about it as a message of its own."""
    places = range(len(messages) - 1, -1, -1)
    last = next((place for place in places if messages[place].asks), None)
    if last is None:
        return next((place for place in places if messages[place].has_text), None)
    before = messages[last - 1] if last else None
    if messages[last].has_only_others and before is not None and before.asks and before.has_text:
        return last - 1
    return last


def explain_left_out(messages: Sequence[ConversationMessage]) -> dict[str, str]:
    """The types of content that were left out of a conversation, with the reason."""
    kinds = [kind for message in messages for kind in message.left_out.split()]
    return {f"content.{kind}": "only text is read; what else the messages hold is left out" for kind in kinds}


def read_outputs(messages: Sequence[ConversationMessage]) -> dict[str, str]:
    """The outputs of calls that stand at the end of a conversation, by the ids of the calls."""
    outputs: dict[str, str] = {}
    for message in reversed(messages):
        if message.role != "tool":
            break
        outputs[message.call] = message.text
    return outputs


def check_count(messages: Sequence[object], param: str) -> None:
    """Refuse what would hold up every other client while it is read. Raises ApiError."""
    count = sum(map(_count_pieces, messages))
    if count > MAX_PIECES:
        what = f"{param} has {count:,} messages and parts of messages; {MAX_PIECES:,} can be read"
        raise ApiError(413, f"{what}. Send the end of the conversation, or join its parts", TOO_LARGE, param)


def _count_pieces(message: object) -> int:
    """A message, the parts of its content or output, and its calls."""
    parts = (message.get(key) for key in _PARTS) if isinstance(message, Mapping) else ()
    return 1 + sum(len(part) for part in parts if isinstance(part, list))


def parse_messages(messages: Sequence[object]) -> list[ConversationMessage]:
    """Parse the messages of a chat completion. Raises ApiError naming the message that cannot be used."""
    check_count(messages, "messages")
    return [_parse_message(message, f"messages[{index}]") for index, message in enumerate(messages)]


def parse_input(items: str | Sequence[object], instructions: str | None) -> list[ConversationMessage]:
    """Parse the input of a Responses request. Reasoning items, which hold our own progress, are left out."""
    messages = [ConversationMessage("system", instructions)] if instructions else []
    if isinstance(items, str):
        return [*messages, ConversationMessage("user", items)]
    check_count(items, "input")
    return messages + [message for index, item in enumerate(items) for message in _parse_item(item, f"input[{index}]")]


def _parse_item(item: object, where: str) -> list[ConversationMessage]:
    if not isinstance(item, Mapping):
        raise invalid_value(where, "an item of the input is an object with a type, or a message")
    kind = item.get("type") or "message"
    if kind in _LEFT_OUT:
        return []
    if kind == "message":
        return [_parse_message(item, where)]
    if kind == "function_call":
        return [ConversationMessage("assistant", _write_call(item.get("name"), item.get("arguments")))]
    if kind == "function_call_output":
        output, others = _parse_content(item.get("output"), f"{where}.output")
        return [ConversationMessage("tool", output, str(item.get("call_id") or ""), others)]
    return [ConversationMessage("assistant", "", left_out=_write_kind(kind))]


def _parse_message(message: object, where: str) -> ConversationMessage:
    if not isinstance(message, Mapping):
        raise invalid_value(where, "a message is an object with role and content")
    role = message.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise invalid_value(f"{where}.role", f"role must be one of {', '.join(_ROLES)}")
    text, others = _parse_content(message.get("content"), f"{where}.content")
    if _ROLES[role] == "tool":
        return ConversationMessage("tool", text, str(message.get("tool_call_id") or message.get("name") or ""), others)
    calls = _list_calls(message, where)
    return ConversationMessage(_ROLES[role], "\n".join(filter(None, (text, *calls))), left_out=others)


def _list_calls(message: Mapping[Any, Any], where: str) -> list[str]:
    """The calls that a message of the assistant makes, as text."""
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(call, Mapping) for call in calls):
        raise invalid_value(f"{where}.tool_calls", "tool_calls must be a list of objects")
    functions = [call.get("function") or call.get("custom") for call in calls]
    functions += [message["function_call"]] if message.get("function_call") else []
    return [
        _write_call(function.get("name"), function.get("arguments", function.get("input")))
        for function in functions
        if isinstance(function, Mapping)
    ]


def _write_call(name: object, arguments: object) -> str:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return f"called {name}({written})"


def _list_texts(messages: Sequence[ConversationMessage]) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages if message.has_text]


def _parse_content(content: Any, where: str) -> tuple[str, str]:
    """The text of a message's content, and the types of its other parts."""
    if content is None:
        return "", ""
    if isinstance(content, str):
        return content, ""
    if not isinstance(content, list):
        raise invalid_value(where, "content must be a string or a list of parts")
    texts: list[str] = []
    others: dict[str, None] = {}
    for index, part in enumerate(content):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if not isinstance(part, Mapping) or not isinstance(kind, str):
            raise invalid_value(f"{where}[{index}]", "a part of the content is an object with a type")
        if kind == "refusal":
            texts.append(str(part.get("refusal", "")))
        elif kind in _TEXTS:
            texts.append(_read_text(part, f"{where}[{index}]"))
        else:
            others[_write_kind(kind)] = None
    return "\n".join(texts), " ".join(others)


def _read_text(part: Mapping[Any, Any], where: str) -> str:
    text = part.get("text")
    if not isinstance(text, str):
        raise invalid_value(f"{where}.text", "text must be a string")
    return text


def _write_kind(kind: object) -> str:
    """The type of a part or an item as one word."""
    return "_".join(str(kind)[:40].split()) or "unknown"
