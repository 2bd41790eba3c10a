"""Arguments whose types are right but for how they are written: "5" for a number, "true" for a switch, null where that
is the default. Nothing is guessed: each value has one reading, and what was read is said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pool_registry.actions import JsonValue
from pool_registry.text import shorten

MAX_HOPS = 20  # of references
MAX_DEPTH = 20  # of a value
SHOWN_CHARS = 40
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d{1,18}(\.\d{1,18})?([eE][+-]?\d{1,2})?", re.ASCII)
_SWITCHES = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Coerced:
    """Arguments in the types of their schema, and what was read how, in sentences; none where nothing was."""

    arguments: Mapping[str, JsonValue]
    notes: tuple[str, ...]


def coerce_arguments(schema: Mapping[str, JsonValue], arguments: Mapping[str, JsonValue]) -> Coerced:
    """Read each argument that has one reading in a type of the schema in that type."""
    coercion = _Coercion(schema)
    return Coerced(coercion.read_object(schema, arguments, "", 0), tuple(coercion.notes))


class _Coercion:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self.notes: list[str] = []

    def read_object(self, rule: Mapping[str, Any], value: Mapping[str, Any], path: str, depth: int) -> dict[str, Any]:
        properties, required = rule.get("properties"), rule.get("required")
        rules = properties if isinstance(properties, Mapping) else {}
        names = required if isinstance(required, list) else []
        read: dict[str, Any] = {}
        for name, item in value.items():
            inner, where = self._follow(rules.get(name)), f"{path}.{name}" if path else name
            if item is None and name not in names and _defaults_to_null(inner):
                self.notes.append(f"{where}: null is its default and was left out")
            else:
                read[name] = self._read(inner, item, where, depth + 1)
        return read

    def _read(self, rule: Mapping[str, Any], value: Any, path: str, depth: int) -> Any:
        if depth > MAX_DEPTH:
            return value
        if isinstance(value, dict):
            return self.read_object(rule, value, path, depth)
        if isinstance(value, list):
            items = self._follow(rule.get("items"))
            return [self._read(items, item, f"{path}[{place}]", depth + 1) for place, item in enumerate(value)]
        if not isinstance(value, str):
            return value
        read = _read_text(value, self._list_kinds(rule))
        if read is not value:
            shown = shorten(json.dumps(value, ensure_ascii=False), SHOWN_CHARS)
            self.notes.append(f"{path}: {shown} was read as {json.dumps(read)}")
        return read

    def _list_kinds(self, rule: Mapping[str, Any]) -> set[str]:
        """The types that a rule names; none where it names none, or takes any value in one case."""
        kind = rule.get("type")
        if kind is not None:
            return {kind} if isinstance(kind, str) else set(filter(lambda name: isinstance(name, str), kind))
        choices = rule.get("anyOf") or rule.get("oneOf")
        kinds = [self._list_kinds(self._follow(choice)) for choice in choices] if isinstance(choices, list) else []
        return set().union(*kinds) if all(kinds) else set()

    def _follow(self, rule: object) -> Mapping[str, Any]:
        """The end of a chain of references within the schema; {} where there is none."""
        for _ in range(MAX_HOPS):
            if not isinstance(rule, Mapping):
                return {}
            reference = rule.get("$ref")
            if not isinstance(reference, str):
                return rule
            rule = self._root
            for part in reference.removeprefix("#").split("/")[1:]:
                rule = rule.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(rule, Mapping) else None
        return {}


def _read_text(text: str, kinds: set[str]) -> Any:
    """What a text is in one of these types; the text itself where it may be one, or is none of them."""
    plain = text.strip()
    if not kinds or "string" in kinds:
        return text
    if kinds & {"integer", "number"} and _INTEGER.fullmatch(plain):
        return int(plain)
    if "number" in kinds and _NUMBER.fullmatch(plain):
        return float(plain)
    if "boolean" in kinds and plain.lower() in _SWITCHES:
        return _SWITCHES[plain.lower()]
    return text


def _defaults_to_null(rule: Mapping[str, Any]) -> bool:
    return "default" in rule and rule["default"] is None
