"""Reads Gemini's records, as Vertex AI tunes on them: contents of parts, in which calls and what they returned stand.

Every name is read as Google's JSON has it (`functionCall`) and as its Python has it (`function_call`). A record of a
batch, with a request and a response, is the conversation of both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pool_registry.actions import JsonValue, storable
from trainer.tasks.tool_use.chat import load_list, read_kind, read_role
from trainer.tasks.tool_use.conversation import Conversation, ConversationWriter, ToolCall
from trainer.tasks.tool_use.loose_json import load_output
from trainer.tasks.tool_use.parts import read_text
from trainer.tasks.tool_use.tools import read_call, read_tools

Record = Mapping[str, Any]
OUTPUTS = ("output", "result", "content")  # the one field in which what a function returned is wrapped
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class _Parts:
    """What one content holds."""

    text: str
    calls: list[ToolCall]
    outputs: list[Record]


def is_gemini(record: Record) -> bool:
    """Whether a record is of Gemini's form."""
    return any(isinstance(content, Mapping) and "parts" in content for content in list_contents(record))


def uses_functions(record: Record) -> bool:
    """Whether functions are declared, called or answered in a record, well written or not."""
    if _list_declarations(_take(_open_request(record), "tools")):
        return True
    parts = [part for content in list_contents(record) for part in _list_parts(content)]
    return any(_take(part, name) for part in parts for name in ("functionCall", "functionResponse"))


def list_contents(record: Record) -> list[object]:
    """The contents of a record; none where it has none."""
    contents = load_list(_take(_open_request(record), "contents"))
    listed = contents if isinstance(contents, list) else [] if contents is None else [contents]
    return [*listed, *_list_candidates(record)]


def read_gemini(record: Record) -> Conversation:
    """The conversation of a record. Raises ValueError with the number of the content that is wrong."""
    request, writer = _open_request(record), ConversationWriter()
    if system := _read_instruction(_take(request, "systemInstruction")):
        writer.add("system", system)
    for place, content in enumerate(list_contents(record), start=1):
        try:
            _add_content(writer, content)
        except ValueError as error:
            raise ValueError(f"content {place}: {error}") from error
    return Conversation(read_tools(_list_declarations(_take(request, "tools"))), tuple(writer.turns))


def _open_request(record: Record) -> Record:
    """The request of a record, which is the record itself where it holds no response."""
    request = record.get("request")
    return request if isinstance(request, Mapping) else record


def _take(place: object, name: str) -> Any:
    """A field by its name in Google's JSON, or by its name in Python; None where there is none."""
    if not isinstance(place, Mapping):
        return None
    value = place.get(name)
    return place.get(_CAPITAL.sub("_", name).lower()) if value is None else value


def _list_candidates(record: Record) -> list[object]:
    """The content that the model answered with, of a record that holds its response."""
    candidates = _take(_take(record, "response"), "candidates")
    contents = [_take(candidate, "content") for candidate in candidates] if isinstance(candidates, list) else []
    return [content for content in contents if content is not None][:1]


def _list_declarations(tools: object) -> list[JsonValue]:
    """The functions that are declared. What else is offered, such as a search, is none."""
    tools = load_list(tools)
    groups = tools if isinstance(tools, list) else [tools]
    declared = [load_list(_take(group, "functionDeclarations")) for group in groups]
    return [
        _name_schema(function)
        for functions in declared
        for function in (functions if isinstance(functions, list) else [functions])
        if function is not None
    ]


def _name_schema(function: object) -> JsonValue:
    """A declaration whose arguments stand under `parameters`."""
    schema = _take(function, "parametersJsonSchema")
    return {**function, "parameters": schema} if isinstance(function, Mapping) and schema else function


def _read_instruction(instruction: object) -> str:
    return _read_parts(instruction).text if isinstance(instruction, Mapping) else read_text(instruction)


def _add_content(writer: ConversationWriter, content: object) -> None:
    if not isinstance(content, Mapping):
        raise ValueError("this must be an object with a role and parts")
    kind = read_kind(content) if read_role(content) else "user"  # where it is left out
    parts = _read_parts(content)
    if parts.calls and kind not in ("assistant", "call"):
        raise ValueError(f"a functionCall stands here, and the role is {read_role(content) or 'left out'}, not model")
    for output in parts.outputs:
        writer.add_output(
            _read_response(_take(output, "response")), *(_read_word(output, key) for key in ("id", "name"))
        )
    if kind in ("assistant", "call"):
        writer.add("assistant", parts.text, parts.calls)
    elif kind == "output" and not parts.outputs:
        writer.add_output(load_output(parts.text))
    elif parts.text or not parts.outputs:
        writer.add("system" if kind == "system" else "user", parts.text)


def _list_parts(content: object) -> list[object]:
    parts = load_list(_take(content, "parts"))
    return parts if isinstance(parts, list) else [] if parts is None else [parts]


def _read_parts(content: Record) -> _Parts:
    texts: list[object] = []
    calls: list[ToolCall] = []
    outputs: list[Record] = []
    for part in _list_parts(content):
        call, output = _take(part, "functionCall"), _take(part, "functionResponse")
        if call is not None:
            calls.append(read_call(call, _take(call, "id")))
        elif isinstance(output, Mapping):
            outputs.append(output)
        elif _take(part, "thought") is not True:
            texts.append(part)
    return _Parts(read_text([_refuse_media(part) for part in texts]), calls, outputs)


def _refuse_media(part: object) -> object:
    """A part that is a text. Raises ValueError with the name of what it is instead."""
    if isinstance(part, Mapping) and not isinstance(part.get("text"), str):
        names = [str(name) for name, value in part.items() if value is not None]
        return {"type": names[0]} if names else ""
    return part


def _read_response(response: object) -> JsonValue:
    """What a function returned, without the field that it is wrapped in."""
    if not isinstance(response, Mapping):
        return load_output(response) if isinstance(response, str) else storable(response)
    fields = {name: value for name, value in response.items() if value is not None}
    wrapped = [name for name in OUTPUTS if fields.keys() - {"name"} == {name}]
    value = fields[wrapped[0]] if wrapped else fields
    return load_output(value) if isinstance(value, str) else storable(value)


def _read_word(output: Record, key: str) -> str:
    value = output.get(key)
    return value if isinstance(value, str) else ""
