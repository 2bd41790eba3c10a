"""Reads the parts of a message: texts, calls of tools and what these returned, as Anthropic, Amazon Bedrock and the
AI SDK of Vercel write them. One row each in FORMS; a part that is in none of them must be a text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pool_registry.actions import JsonValue, as_text, clean_text, storable
from pool_registry.text import one_line, shorten
from trainer.tasks.tool_use.conversation import ToolCall
from trainer.tasks.tool_use.loose_json import load_output
from trainer.tasks.tool_use.tools import read_call

Part = Mapping[str, Any]
UI_PREFIX = "tool-"  # of the type of a part in a chat of the AI SDK's page, before the tool's name
THOUGHTS = ("thinking", "redacted_thinking", "reasoning", "reasoningContent", "step-start", "cachePoint")


@dataclass(frozen=True, slots=True)
class PartForm:
    """How a part is known, and the fields of what it holds; without `arguments` it calls nothing, without `output` it
    brings nothing."""

    open: Callable[[Part], Part | None]
    id: str
    name: str = "name"
    arguments: tuple[str, ...] = ()
    output: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool returned, with the id and the name of its call where they are written."""

    value: JsonValue
    id: str
    tool: str


@dataclass(frozen=True, slots=True)
class Parts:
    """What the parts of a message are; `rest` is its content without calls, outputs and thoughts."""

    calls: tuple[ToolCall, ...]
    outputs: tuple[Output, ...]
    rest: object


def split_parts(content: object) -> Parts:
    """The parts of a message's content. Raises ValueError where a call is none."""
    if not isinstance(content, list):
        return Parts((), (), content)
    calls: list[ToolCall] = []
    outputs: list[Output] = []
    rest: list[object] = []
    for part in content:
        form, inner = _find_form(part)
        if form is not None and form.arguments:
            calls.append(_read_call(form, inner))
        elif form is not None:
            outputs.append(Output(_read_output(_take(inner, form.output)), *_read_words(inner, form.id, form.name)))
        elif not _is_thought(part):
            rest.append(part)
    return Parts(tuple(calls), tuple(outputs), rest)


def holds_tools(content: object) -> bool:
    """Whether a part of a content calls a tool or brings what one returned."""
    return isinstance(content, list) and any(_find_form(part)[0] is not None for part in content)


def _match_type(*names: str) -> Callable[[Part], Part | None]:
    return lambda part: part if part.get("type") in names else None


def _match_field(name: str) -> Callable[[Part], Part | None]:
    return lambda part: part[name] if isinstance(part.get(name), Mapping) else None


def _open_ui(part: Part) -> Part | None:
    kind = part.get("type")
    is_tool = isinstance(kind, str) and kind.startswith(UI_PREFIX)
    return {**part, "toolName": kind.removeprefix(UI_PREFIX)} if is_tool and isinstance(kind, str) else None


FORMS = (
    PartForm(_match_type("tool_use"), "id", arguments=("input",)),
    PartForm(_match_type("tool_result"), "tool_use_id", output=("content",)),
    PartForm(_match_field("toolUse"), "toolUseId", arguments=("input",)),
    PartForm(_match_field("toolResult"), "toolUseId", output=("content",)),
    PartForm(_match_field("toolInvocation"), "toolCallId", "toolName", ("args",), ("result",)),
    PartForm(_match_type("tool-call"), "toolCallId", "toolName", ("input", "args")),
    PartForm(_match_type("tool-result"), "toolCallId", "toolName", output=("output", "result")),
    PartForm(_match_type("dynamic-tool"), "toolCallId", "toolName", ("input",), ("output",)),
    PartForm(_open_ui, "toolCallId", "toolName", ("input",), ("output",)),
)


def _find_form(part: object) -> tuple[PartForm | None, Part]:
    """The form of a part and what it holds; None for any other."""
    if isinstance(part, Mapping):
        for form in FORMS:
            if (inner := form.open(part)) is not None:
                return form, inner
    return None, {}


def _read_call(form: PartForm, inner: Part) -> ToolCall:
    call = read_call({"name": inner.get(form.name), "arguments": _take(inner, form.arguments)}, inner.get(form.id))
    return replace(call, output=_read_output(_take(inner, form.output)))


def _take(inner: Part, names: tuple[str, ...]) -> Any:
    return next((inner[name] for name in names if inner.get(name) is not None), None)


def _read_words(inner: Part, *names: str) -> tuple[str, str]:
    first, second = (value if isinstance(value := inner.get(name), str) else "" for name in names)
    return first, second


def _read_output(value: object) -> JsonValue:
    """What a tool returned: a value, a text, or a list of parts of which one may be a value."""
    if isinstance(value, Mapping) and value.keys() == {"type", "value"}:  # as the AI SDK labels it
        value = value["value"]
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping) and value[0].get("json"):
        return storable(value[0]["json"])
    if isinstance(value, list) and any(isinstance(part, Mapping) and {"type", "text"} & part.keys() for part in value):
        value = read_text(value)
    return load_output(value) if isinstance(value, str) else storable(value)


def _is_thought(part: object) -> bool:
    """Whether a part is what a model thought, or marks where it began: nothing that was said."""
    return isinstance(part, Mapping) and (part.get("type") in THOUGHTS or any(name in part for name in THOUGHTS))


def read_text(content: object) -> str:
    """The text of a message, which may be in parts. Raises ValueError where a part is no text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return clean_text(content).strip()
    if isinstance(content, list):
        return "\n".join(filter(None, map(_read_part, content)))
    return _write_value(content)


def _read_part(part: object) -> str:
    if isinstance(part, str):
        return clean_text(part)
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return clean_text(part["text"])
    kind = part.get("type") if isinstance(part, Mapping) else None
    raise ValueError(f"a part of it is no text{f' ({shorten(one_line(str(kind)), 30)})' if kind else ''}")


def _write_value(value: object) -> str:
    """The text of a value: what a tool returned may stand there as it is."""
    plain: JsonValue = storable(value)
    return as_text(plain)
