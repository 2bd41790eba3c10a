"""The formats of data sets of tool use. One row each: how a record is told from others, and how it is read.

A format is added by a row here, and nothing else. Of several that fit, the first counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trainer.tasks.tool_use.call_suites import is_when2call, read_bfcl, read_when2call, read_xlam
from trainer.tasks.tool_use.chat import (
    ROLES,
    TAGS,
    find_chat,
    find_tools,
    holds_calls,
    list_texts,
    read_chat,
    read_role,
)
from trainer.tasks.tool_use.conversation import ChatTurn, Conversation
from trainer.tasks.tool_use.gemini import is_gemini, read_gemini, uses_functions
from trainer.tasks.tool_use.glaive import calls_functions, is_glaive, read_glaive
from trainer.tasks.tool_use.parts import read_text
from trainer.tasks.tool_use.preferences import open_preference
from trainer.tasks.tool_use.react import is_react, read_react

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Format:
    """`fits`: whether a record is of this format. `calls_tools`: whether it also calls tools, or offers some. `read`
    raises ValueError with a sentence."""

    name: str
    fits: Callable[[Record], bool]
    calls_tools: Callable[[Record], bool]
    read: Callable[[Record], Conversation]


def find_format(record: Record) -> Format | None:
    """The format of a record; None where it is of none of these."""
    return next((row for row in FORMATS if row.fits(record)), None)


def _is_bfcl(record: Record) -> bool:
    """A question with functions or classes, or the possible answers of one."""
    names = record.keys()
    if {"id", "ground_truth"} <= names or {"question", "involved_classes"} <= names:
        return True
    return "question" in names and isinstance(record.get("function"), list | Mapping)


def _is_xlam(record: Record) -> bool:
    return {"query", "tools", "answers"} <= record.keys()


def _is_hermes(record: Record) -> bool:
    return any(tag in text for text in list_texts(find_chat(record)) for tag in TAGS)


def _is_sharegpt(record: Record) -> bool:
    return any(isinstance(message, Mapping) and "from" in message for message in find_chat(record))


def _is_chat(record: Record) -> bool:
    return bool(find_chat(record))


def _is_alpaca(record: Record) -> bool:
    return isinstance(record.get("instruction"), str) and "output" in record


def _chat_calls_tools(record: Record) -> bool:
    if find_tools(record) is not None:
        return True
    messages = [message for message in find_chat(record) if isinstance(message, Mapping)]
    roles = [ROLES.get(read_role(message)) for message in messages]
    return any(role in ("call", "output") for role in roles) or any(map(holds_calls, messages))


def _is_preference(record: Record) -> bool:
    return open_preference(record) is not None


def _preference_calls_tools(record: Record) -> bool:
    chat = open_preference(record) or {}
    row = find_format(chat)
    return row is not None and row.calls_tools(chat)


def _read_preference(record: Record) -> Conversation:
    """The chat with the preferred reply, whatever form its calls have. Raises ValueError."""
    chat = open_preference(record) or {}
    row = find_format(chat)
    return row.read(chat) if row is not None else read_chat(chat)


def _always(record: Record) -> bool:  # noqa: ARG001
    return True


def _never(record: Record) -> bool:  # noqa: ARG001
    return False


def _read_alpaca(record: Record) -> Conversation:
    query = "\n\n".join(filter(None, (read_text(record["instruction"]), read_text(record.get("input")))))
    return Conversation((), (ChatTurn("user", query), ChatTurn("assistant", read_text(record["output"]))))


FORMATS = (
    Format("BFCL", _is_bfcl, _always, read_bfcl),
    Format("When2Call", is_when2call, _always, read_when2call),
    Format("xLAM", _is_xlam, _always, read_xlam),
    Format("preferences", _is_preference, _preference_calls_tools, _read_preference),
    Format("Glaive", is_glaive, calls_functions, read_glaive),
    Format("Gemini", is_gemini, uses_functions, read_gemini),
    Format("ReAct", is_react, _always, read_react),
    Format("Hermes", _is_hermes, _always, read_chat),
    Format("ShareGPT", _is_sharegpt, _chat_calls_tools, read_chat),
    Format("OpenAI messages", _is_chat, _chat_calls_tools, read_chat),
    Format("Alpaca", _is_alpaca, _never, _read_alpaca),
)
