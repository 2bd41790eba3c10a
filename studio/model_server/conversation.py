"""A conversation as a client sends it, and the one query that an orchestrator gets of it.

A single user message is the query, unchanged: small trained models have learnt queries and nothing around
them. Otherwise everything before the last user message stands in front of it as labelled context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from studio.model_server.errors import ApiError, unsupported, wrong

CONTEXT, REQUEST = "Conversation so far:", "Now:"
_TEXTS = ("text", "input_text", "output_text")
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


@dataclass(frozen=True, slots=True)
class Said:
    """One message: role is system, user or assistant."""

    role: str
    text: str


def as_query(said: Sequence[Said], param: str) -> str:
    """The query for the last user message. Raises ApiError when the conversation does not end with one."""
    if not said or said[-1].role != "user":
        raise wrong(param, f"{param} must end with a message of the user: it is what the pool answers")
    *earlier, last = said
    if not last.text.strip():
        raise wrong(param, "the last message is empty; write a question")
    told = [each for each in earlier if each.text.strip()]
    if not told:
        return last.text
    lines = "\n".join(f"[{each.role}] {each.text}" for each in told)
    return f"{CONTEXT}\n{lines}\n\n{REQUEST}\n{last.text}"


def chat_messages(messages: Sequence[object]) -> list[Said]:
    """The messages of a chat completion. Raises ApiError naming the message that cannot be used."""
    return [_message(message, f"messages[{index}]") for index, message in enumerate(messages)]


def response_items(items: str | Sequence[object], instructions: str | None) -> list[Said]:
    """The input of a Responses request. Reasoning items, which were our own progress, are left out."""
    said = [Said("system", instructions)] if instructions else []
    if isinstance(items, str):
        return [*said, Said("user", items)]
    for index, item in enumerate(items):
        where = f"input[{index}]"
        kind = item.get("type", "message") if isinstance(item, Mapping) else None
        if kind == "reasoning":
            continue
        if isinstance(item, Mapping) and kind != "message":
            raise unsupported(where, f"input of type {kind!r} is not supported; send messages")
        said.append(_message(item, where))
    return said


def _message(message: object, where: str) -> Said:
    if not isinstance(message, Mapping):
        raise wrong(where, "a message is an object with role and content")
    role = message.get("role")
    if role in ("tool", "function") or message.get("tool_calls") or message.get("function_call"):
        raise unsupported(where, "calls of the client's own tools are not supported; the pool's workers are its tools")
    if not isinstance(role, str) or role not in _ROLES:
        raise wrong(f"{where}.role", f"role must be one of {', '.join(_ROLES)}")
    return Said(_ROLES[role], _text(message.get("content"), f"{where}.content"))


def _text(content: Any, where: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise wrong(where, "content must be a text or a list of parts")
    return "\n".join(_part(part, f"{where}[{index}]") for index, part in enumerate(content))


def _part(part: object, where: str) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping) or not isinstance(kind, str):
        raise wrong(where, "a part of the content is an object with a type")
    if kind == "refusal":
        return str(part.get("refusal", ""))
    if kind not in _TEXTS:
        raise ApiError(400, f"content of type {kind!r} is not supported; send text", "unsupported_content", where)
    text = part.get("text")
    if not isinstance(text, str):
        raise wrong(f"{where}.text", "text must be a string")
    return text
