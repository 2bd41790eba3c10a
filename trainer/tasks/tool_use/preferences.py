"""Reads rows of preferences: a conversation, the reply that was preferred, and one that was not.

OpenAI's rows for DPO, those of When2Call, and TRL's, with or without a prompt of their own. The preferred reply is read
as the conversation's next message; the other one teaches nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trainer.tasks.tool_use.chat import ROLES, find_chat, load_list, read_role

Record = Mapping[str, Any]

REPLIES = ("preferred_output", "non_preferred_output", "chosen_response", "rejected_response", "chosen", "rejected")


def _open_openai(record: Record) -> Record | None:
    request = record.get("input")
    if not isinstance(request, Mapping) or "preferred_output" not in record:
        return None
    return {**_leave_out_replies(request), "messages": _join(find_chat(request), record["preferred_output"])}


def _open_when2call(record: Record) -> Record | None:
    if "chosen_response" not in record:
        return None
    return {**_leave_out_replies(record), "messages": _join(find_chat(record), record["chosen_response"])}


def _open_trl(record: Record) -> Record | None:
    if not {"chosen", "rejected"} <= record.keys():
        return None
    return {**_leave_out_replies(record), "messages": _join(record.get("prompt", []), record["chosen"])}


FORMS: tuple[Callable[[Record], Record | None], ...] = (_open_openai, _open_when2call, _open_trl)


def open_preference(record: Record) -> Record | None:
    """The record of the chat that ends with the preferred reply; None where a record is no row of preferences."""
    return next((chat for chat in (form(record) for form in FORMS) if chat is not None), None)


def _leave_out_replies(record: Record) -> Record:
    return {name: value for name, value in record.items() if name not in REPLIES}


def _join(before: Any, reply: Any) -> list[Any]:
    """The messages before and the reply, which some data sets write as the whole chat once more."""
    messages = _list_messages(reply, "assistant")
    is_whole = any(isinstance(message, Mapping) and ROLES.get(read_role(message)) == "user" for message in messages)
    return messages if is_whole else [*_list_messages(before, "user"), *messages]


def _list_messages(value: Any, role: str) -> list[Any]:
    """Messages as they are; a text is one of `role`."""
    value = load_list(value)
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    return value if isinstance(value, list) else [value]
