"""Turns a conversation, as a client sends it, into the one query that an orchestrator gets.

A single user message is the query, unchanged: small models were trained on bare queries. In longer conversations
everything before the last user message stands in front of it as labelled context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from studio.model_server.errors import ApiError, invalid_value, not_supported

CONTEXT, REQUEST = "Conversation so far:", "Now:"
_TEXTS = ("text", "input_text", "output_text")
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


@dataclass(frozen=True, slots=True)
class ConversationMessage:
    """One message; `role` is system, user or assistant."""

    role: str
    text: str


def build_query(messages: Sequence[ConversationMessage], param: str) -> str:
    """Build the query for the last user message. Raises ApiError when the conversation does not end with one."""
    if not messages or messages[-1].role != "user":
        raise invalid_value(param, f"{param} must end with a user message: it is what the pool answers")
    *earlier, last = messages
    if not last.text.strip():
        raise invalid_value(param, "the last message is empty; write a question")
    context = [message for message in earlier if message.text.strip()]
    if not context:
        return last.text
    lines = "\n".join(f"[{message.role}] {message.text}" for message in context)
    return f"{CONTEXT}\n{lines}\n\n{REQUEST}\n{last.text}"


def parse_messages(messages: Sequence[object]) -> list[ConversationMessage]:
    """Parse the messages of a chat completion. Raises ApiError naming the message that cannot be used."""
    return [_parse_message(message, f"messages[{index}]") for index, message in enumerate(messages)]


def parse_input(items: str | Sequence[object], instructions: str | None) -> list[ConversationMessage]:
    """Parse the input of a Responses request. Reasoning items, which hold our own progress, are left out."""
    messages = [ConversationMessage("system", instructions)] if instructions else []
    if isinstance(items, str):
        return [*messages, ConversationMessage("user", items)]
    for index, item in enumerate(items):
        where = f"input[{index}]"
        kind = item.get("type", "message") if isinstance(item, Mapping) else None
        if kind == "reasoning":
            continue
        if isinstance(item, Mapping) and kind != "message":
            raise not_supported(where, f"input of type {kind!r} is not supported; send messages")
        messages.append(_parse_message(item, where))
    return messages


def _parse_message(message: object, where: str) -> ConversationMessage:
    if not isinstance(message, Mapping):
        raise invalid_value(where, "a message is an object with role and content")
    role = message.get("role")
    if role in ("tool", "function") or message.get("tool_calls") or message.get("function_call"):
        raise not_supported(
            where, "calls of the client's own tools are not supported; the pool's workers are its tools"
        )
    if not isinstance(role, str) or role not in _ROLES:
        raise invalid_value(f"{where}.role", f"role must be one of {', '.join(_ROLES)}")
    return ConversationMessage(_ROLES[role], _parse_content(message.get("content"), f"{where}.content"))


def _parse_content(content: Any, where: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise invalid_value(where, "content must be a string or a list of parts")
    return "\n".join(_parse_part(part, f"{where}[{index}]") for index, part in enumerate(content))


def _parse_part(part: object, where: str) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping) or not isinstance(kind, str):
        raise invalid_value(where, "a part of the content is an object with a type")
    if kind == "refusal":
        return str(part.get("refusal", ""))
    if kind not in _TEXTS:
        raise ApiError(400, f"content of type {kind!r} is not supported; send text", "unsupported_content", where)
    text = part.get("text")
    if not isinstance(text, str):
        raise invalid_value(f"{where}.text", "text must be a string")
    return text
