"""Reads Glaive's records: a text with the functions, and a chat as one text with `<functioncall>` in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pool_registry.actions import JsonValue
from trainer.tasks.tool_use.chat import read_chat
from trainer.tasks.tool_use.conversation import Conversation
from trainer.tasks.tool_use.loose_json import load_loose, load_objects

CALL = "<functioncall>"
ROLES = {"USER": "user", "ASSISTANT": "assistant", "FUNCTION RESPONSE": "tool"}
_SPEAKER = re.compile(rf"^[ \t]*({'|'.join(ROLES)}):", re.MULTILINE)
_END = re.compile(r"<\|endoftext\|>")
_ARGUMENTS = re.compile(r"\"arguments\"\s*:\s*(?=')")


def is_glaive(record: Mapping[str, Any]) -> bool:
    """Whether a record is of Glaive's form."""
    chat = record.get("chat")
    return isinstance(chat, str) and bool(_SPEAKER.match(chat.lstrip())) and "ASSISTANT:" in chat


def calls_functions(record: Mapping[str, Any]) -> bool:
    """Whether functions are offered or called in a record, well written or not."""
    return CALL in record["chat"] or "{" in str(record.get("system"))


def read_glaive(record: Mapping[str, Any]) -> Conversation:
    """The conversation of a record. Raises ValueError with the number of the message that is wrong."""
    return read_chat({"messages": list(_split_messages(record["chat"])), "tools": _read_functions(record)})


def _read_functions(record: Mapping[str, Any]) -> list[JsonValue]:
    """The functions that the text names, which stand at its end one after another."""
    text = record.get("system")
    if not isinstance(text, str) or "{" not in text:
        return []
    return load_objects(text[text.index("{") :])


def _split_messages(chat: str) -> Iterator[Mapping[str, JsonValue]]:
    pieces = _SPEAKER.split(_END.sub("", chat))
    for speaker, text in zip(pieces[1::2], pieces[2::2], strict=True):
        words, call, rest = text.partition(CALL)
        calls = {"tool_calls": [_read_call(rest.strip())]} if call else {}
        yield {"role": ROLES[speaker], "content": words.strip(), **calls}


def _read_call(text: str) -> JsonValue:
    """A call whose arguments stand in single quotation marks, apostrophes among them or not. Raises ValueError."""
    begin, end = _ARGUMENTS.search(text), text.rfind("'")
    if begin is not None and begin.end() < end and text[end + 1 :].strip() == "}":
        arguments = text[begin.end() + 1 : end]
        return load_loose(f"{text[: begin.end()]}{json.dumps(arguments)}{text[end + 1 :]}")
    return load_loose(text)
