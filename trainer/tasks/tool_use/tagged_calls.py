"""Calls that a model writes into its text between marks of its own: Hermes and Qwen, Llama, Mistral, Nemotron."""

from __future__ import annotations

import re

from pool_registry.text import one_line, shorten
from trainer.tasks.tool_use.conversation import ToolCall
from trainer.tasks.tool_use.loose_json import load_objects, load_output
from trainer.tasks.tool_use.printed_calls import read_printed_calls
from trainer.tasks.tool_use.tools import read_call

CALL_TAGS = ("<tool_call>", "<TOOLCALL>", "[TOOL_CALLS]", "<|python_tag|>", "<function=")
_FUNCTION = re.compile(r"<function=(?P<name>[\w.-]{1,200})>(?P<body>.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([\w.-]{1,200})>(.*?)(?:</parameter>|\Z)", re.DOTALL)
_CALL = re.compile(
    r"<tool_call>(?P<hermes>.*?)(?:</tool_call>|\Z)"
    r"|<TOOLCALL>(?P<nemotron>.*?)(?:</TOOLCALL>|\Z)"
    r"|(?:\[TOOL_CALLS\]|<\|python_tag\|>)(?P<rest>.*?)(?:<\|eo[mt]_id\|>|</s>|\Z)"
    rf"|{_FUNCTION.pattern}",
    re.DOTALL,
)


def take_tagged_calls(text: str) -> tuple[str, list[ToolCall]]:
    """What a text says beside its calls, and these. Raises ValueError where a call is none."""
    calls = [call for match in _CALL.finditer(text) for call in _read_match(match)]
    return _CALL.sub("", text).strip(), calls


def read_calls(text: str) -> list[ToolCall]:
    """The calls that a text is, as JSON or as Python prints them. Raises ValueError."""
    if printed := read_printed_calls(text.strip()):
        return printed
    try:
        values = load_objects(text)
    except ValueError as error:
        raise ValueError(f"the call {shorten(one_line(text), 60)!r} is no JSON") from error
    return [read_call(value) for value in values]


def _read_match(match: re.Match[str]) -> list[ToolCall]:
    if match["name"]:
        return [_read_function(match)]
    text = match["hermes"] or match["nemotron"] or match["rest"] or ""
    return [_read_function(inner) for inner in _FUNCTION.finditer(text)] or read_calls(text)


def _read_function(match: re.Match[str]) -> ToolCall:
    """A call whose arguments are JSON (Llama), or stand each in a tag of its own (Qwen's coder)."""
    body = match["body"].strip()
    parameters = {name: load_output(value) for name, value in _PARAMETER.findall(body)}
    return read_call({"name": match["name"], "arguments": parameters or body})
