"""Reads what was pasted: without the fence of a chat or a README around it, and as JSON, TOML or the YAML of a client
where it is that.

JSON is read as people write it: with comments and trailing commas, or without the outer braces. Any text can be read;
what is neither has no document.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from typing import Any

from pool_registry.actions import JsonValue, clean_text
from pool_registry.errors import InvalidPool
from pool_registry.pasted.base import PastedText

MAX_CHARS = 16_000_000  # as of an OpenAPI document
MAX_DEPTH = 100
_FENCE = re.compile(r"\A\s*```[\w+-]*[ \t]*\n(.*?)\n?```\s*\Z", re.DOTALL)
# One that is never closed goes on to the end of the text: it would be looked for again from each place in it.
_STRING = r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_HALF_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_YAML_SERVERS = re.compile(r"^(?:mcpServers|mcp_servers|extensions):[ \t]*(?:#[^\n]*)?$", re.MULTILINE)
MAX_YAML_CHARS = 200_000
_TABLE = re.compile(r"^[ \t]*\[[\w.\"-]+\][ \t]*$", re.MULTILINE)


def read_text(text: str) -> PastedText:
    """Raises InvalidPool for a text that is empty or too long."""
    if len(text) > MAX_CHARS:
        raise InvalidPool([("text", f"this has more than {MAX_CHARS:,} characters; paste a part of it")])
    plain = clean_text(text).replace("\r\n", "\n").removeprefix("\ufeff")
    fenced = _FENCE.match(plain)
    plain = (fenced[1] if fenced else plain).strip()
    if not plain:
        raise InvalidPool([("text", "paste something first")])
    return PastedText(plain, _parse(plain))


def _parse(text: str) -> JsonValue:
    if text[0] in '{["':
        document = _parse_json(text)
        if document is None:
            document = _parse_json(_repair(text))
        if document is None or isinstance(document, str):
            document = _parse_json(_repair(f"{{{text}}}")) if text[0] == '"' else document
        if isinstance(document, dict | list):
            return document if _is_flat_enough(document) else None
    if _TABLE.search(text):
        try:
            return json.loads(json.dumps(tomllib.loads(text), default=str))
        except (ValueError, RecursionError):
            return None
    return _parse_yaml(text) if len(text) <= MAX_YAML_CHARS and _YAML_SERVERS.search(text) else None


def _parse_yaml(text: str) -> JsonValue:
    """The settings of a client in YAML; None where it is none, repeats a part by an alias, or is nested too deep."""
    import yaml  # a published Space has no PyYAML, and nobody pastes there

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):  # PyYAML's fast loader would end the whole process at deep ones
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH or isinstance(event, yaml.AliasEvent):
                return None
        document = json.loads(json.dumps(yaml.load(text, Loader=loader), default=str))  # noqa: S506  a safe loader
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return None
    return document if isinstance(document, dict) and _is_flat_enough(document) else None


def _parse_json(text: str) -> Any:
    """The value of a JSON text; None where it is none."""
    try:
        value = json.loads(text, parse_constant=str, parse_float=_read_float)
        if _HALF_ESCAPE.search(text):  # an escaped half of a character, which no answer of ours could hold
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value


def _read_float(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text


def _repair(text: str) -> str:
    without_comments = _COMMENT.sub(lambda match: match[1] or "", text)
    return _TRAILING_COMMA.sub(lambda match: match[1] or "", without_comments)


def _is_flat_enough(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for node in level
            if isinstance(node, dict | list)
            for item in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return True
    return False
