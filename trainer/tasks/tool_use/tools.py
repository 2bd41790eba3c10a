"""Reads tools as data sets offer them: OpenAI's functions, bare schemas, tables of parameters with Python's types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from pool_registry.actions import JsonValue, clean_text
from pool_registry.schemas.mend_schema import MendedSchema, mend_schema
from pool_registry.text import one_line, shorten
from trainer.tasks.tool_use.conversation import Conversation, Tool, ToolCall
from trainer.tasks.tool_use.loose_json import load_loose, load_objects

MAX_NAME_CHARS = 200
MAX_DESCRIPTION_CHARS = 1500
MAX_DEPTH = 20
FRAMES = ("function", "toolSpec")  # in which OpenAI and Amazon Bedrock put a tool
# The words of other languages for the types of JSON Schema; "" is any. A word that is not here is any, too.
TYPES = {
    "object": "object", "dict": "object", "dictionary": "object", "hashmap": "object", "map": "object",
    "string": "string", "str": "string", "text": "string", "char": "string", "date": "string", "datetime": "string",
    "number": "number", "float": "number", "double": "number", "decimal": "number",
    "integer": "integer", "int": "integer", "long": "integer", "short": "integer", "bigint": "integer",
    "boolean": "boolean", "bool": "boolean",
    "array": "array", "list": "array", "tuple": "array", "set": "array", "arraylist": "array", "sequence": "array",
    "null": "null", "none": "null", "nonetype": "null",
}  # fmt: skip
_SUBTYPE = re.compile(r"(\w+)\s*\[(.*)\]", re.DOTALL)
_OPTIONAL = re.compile(r"\(optional\)|(?:,\s*|(?<![\s,])\s+)?\boptional\b(?!\s*\[)\.?", re.IGNORECASE)


def read_tools(value: object) -> tuple[Tool, ...]:
    """The tools in a list, or in the text of one. Raises ValueError saying what is wrong."""
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        try:
            value = load_objects(value)
        except ValueError as error:
            raise ValueError("tools: this is no JSON; give a list of tools") from error
    if not isinstance(value, list):
        value = [value]
    return tuple(_read_tool(_load_tool(item, place), place) for place, item in enumerate(value, start=1))


def infer_tools(conversations: Iterable[Conversation]) -> dict[str, Tool]:
    """The tools that are called and never offered, by name: all that is known of them are their arguments."""
    names: dict[str, dict[str, JsonValue]] = {}
    for conversation in conversations:
        offered = {tool.name for tool in conversation.tools}
        for call in conversation.calls:
            if call.tool not in offered:
                names.setdefault(call.tool, {}).update({name: {} for name in call.arguments})
    return {
        name: Tool(name, f"The tool {name}, which its data set does not describe.", _make_object(arguments))
        for name, arguments in names.items()
    }


def read_call(value: object, call_id: object = None) -> ToolCall:
    """A call as {"name": ..., "arguments": ...}, whose arguments may be text. Raises ValueError."""
    if isinstance(value, str):
        value = _take_one(value)
    if not isinstance(value, Mapping):
        raise ValueError('a call must be an object such as {"name": "get_stock", "arguments": {"item": "tea"}}')
    inner = value.get("function")
    if isinstance(inner, Mapping):
        call_id, value = value.get("id", call_id), inner
    name = value.get("name")
    if not isinstance(name, str) or not name.strip():
        raise ValueError('a call has no name; write it as "name"')
    name = shorten(one_line(name), MAX_NAME_CHARS)
    arguments = value.get("arguments", value.get("parameters", value.get("args")))
    if isinstance(arguments, str):
        arguments = _take_one(arguments) if arguments.strip() else {}
    if not isinstance(arguments, Mapping | None):
        raise ValueError(f"the arguments of {name} must be an object")
    return ToolCall(name, dict(arguments or {}), id=call_id if isinstance(call_id, str) else "")


def _take_one(text: str) -> JsonValue:
    try:
        values = load_objects(text)
    except ValueError as error:
        raise ValueError(f"{shorten(one_line(text), 60)!r} is no JSON") from error
    if len(values) != 1:
        raise ValueError(f"{shorten(one_line(text), 60)!r} must be one object")
    return values[0]


def _load_tool(value: object, place: int) -> object:
    """A tool of a list, which some data sets write as a text each."""
    if not isinstance(value, str):
        return value
    try:
        return load_loose(value)
    except ValueError as error:
        raise ValueError(f"tools: tool {place} is no JSON") from error


def _read_tool(value: object, place: int) -> Tool:
    for frame in FRAMES:
        if isinstance(value, Mapping) and isinstance(value.get(frame), Mapping):
            value = value[frame]
    name = value.get("name") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(name, str) or not name.strip():
        raise ValueError(f"tools: tool {place} must be an object with a name")
    name = shorten(one_line(clean_text(name)), MAX_NAME_CHARS)
    text = value.get("description")
    description = clean_text(text).strip()[:MAX_DESCRIPTION_CHARS] if isinstance(text, str) else ""
    schema = value.get("parameters", value.get("input_schema", value.get("inputSchema")))
    if isinstance(schema, Mapping) and isinstance(schema.get("json"), Mapping):  # Amazon Bedrock's
        schema = schema["json"]
    mended = _mend(json.dumps(read_schema(schema)))
    if mended.problem:
        raise ValueError(f"tools: the schema of {name} cannot be used: {mended.problem}")
    return Tool(name, description or f"The tool {name}.", mended.schema, mended.notes)


@lru_cache(maxsize=10_000)  # data sets offer the same tools thousands of times
def _mend(schema: str) -> MendedSchema:
    return mend_schema(json.loads(schema))


def read_schema(value: object) -> dict[str, JsonValue]:
    """The JSON Schema of a tool's arguments, from a schema or from a table of parameters."""
    if not isinstance(value, Mapping):
        return _make_object({})
    is_schema = isinstance(value.get("type"), str | list) or isinstance(value.get("properties"), Mapping)
    if not is_schema:
        value = {"type": "object", "properties": value, "required": _list_required(value)}
    schema = _translate(value, 0)
    return {**schema, "type": "object"}


def _list_required(table: Mapping[str, Any]) -> list[str]:
    """The parameters of a table that have no default and are not called optional."""
    rules = {name: rule for name, rule in table.items() if isinstance(rule, Mapping)}
    return [
        name
        for name, rule in rules.items()
        if "default" not in rule and not _OPTIONAL.search(str(rule.get("type", ""))) and not rule.get("optional")
    ]


def _translate(rule: object, depth: int) -> dict[str, Any]:
    """A rule in the words of JSON Schema. What is nested too deep may be anything."""
    if not isinstance(rule, Mapping) or depth > MAX_DEPTH:
        return {}
    plain: dict[str, Any] = {key: value for key, value in rule.items() if key not in ("type", "required", "optional")}
    plain |= _translate_type(rule.get("type"))
    if rule.get("nullable") is True and isinstance(plain.get("type"), str):  # OpenAPI's word, and Gemini's
        plain["type"] = [plain["type"], "null"]
        plain |= {"enum": [*plain["enum"], None]} if isinstance(plain.get("enum"), list) else {}
    if "properties" in rule:
        properties = rule["properties"] if isinstance(rule["properties"], Mapping) else {}
        rules = {name: inner for name, inner in properties.items() if inner is not None}  # Parquet fills in the others'
        plain["properties"] = {name: _translate(inner, depth + 1) for name, inner in rules.items()}
        plain["required"] = _find_required(rule.get("required"), properties)
    if isinstance(rule.get("items"), Mapping):
        plain["items"] = _translate(rule["items"], depth + 1)
    for word in ("anyOf", "oneOf", "allOf"):
        if isinstance(rule.get(word), list):
            plain[word] = [_translate(inner, depth + 1) for inner in rule[word]]
    if isinstance(rule.get("additionalProperties"), Mapping):
        plain["additionalProperties"] = _translate(rule["additionalProperties"], depth + 1)
    return plain


def _find_required(names: object, properties: Mapping[str, Any]) -> list[str]:
    """The required properties; without a list of names, those that are marked as such themselves."""
    if isinstance(names, list):
        required = {name for name in names if isinstance(name, str)}
        return [name for name in properties if name in required]
    return [name for name, rule in properties.items() if isinstance(rule, Mapping) and rule.get("required") is True]


def _translate_type(written: object, depth: int = 0) -> dict[str, Any]:
    """The rule that a type stands for: {} for any. `str, optional`, `List[int]` and `dict` are Python's and BFCL's."""
    if isinstance(written, list) and depth <= MAX_DEPTH:
        types = [_translate_type(item, depth + 1).get("type") for item in written]
        names = dict.fromkeys(filter(None, types))
        return {"type": list(names)} if names and len(names) == len(written) else {}
    if not isinstance(written, str) or depth > MAX_DEPTH:
        return {}
    text = _OPTIONAL.sub("", written).strip()
    inner = _SUBTYPE.fullmatch(text)
    if inner is None:
        name = TYPES.get(text.casefold(), "")
        return {"type": name} if name else {}
    outer = inner[1].casefold()
    if outer == "optional":
        return _translate_type(inner[2], depth + 1)
    name = TYPES.get(outer, "")
    items = _translate_type(inner[2], depth + 1) if name == "array" and "," not in inner[2] else {}
    return {"type": name, **({"items": items} if items else {})} if name else {}


def _make_object(properties: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {"type": "object", "properties": dict(properties)}
