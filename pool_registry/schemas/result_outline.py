"""The fields of what a worker returns, as far as its source says them: what a plan may quote of an output."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from pool_registry.actions import JsonValue

MAX_DEPTH = 3
MAX_PROPERTIES = 24  # of an object
MAX_FIELDS = 12  # that are shown of an object
MAX_PARTS = 500  # of a schema, with references expanded
MAX_POINTER_CHARS = 1000
FIELD_NAME = re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII)  # those that a plan can quote: $1.name

Resolve: TypeAlias = Callable[[str], object]
ResultSchema: TypeAlias = Annotated[
    dict[str, JsonValue],
    Field(default_factory=dict, description="JSON Schema of what a call returns, as far as its source says it."),
]


def outline_result(schema: object, resolve: Resolve | None = None) -> dict[str, JsonValue]:
    """The objects, lists and types of a JSON Schema, without its rules; {} where it tells nothing of them.

    `resolve` gives what a `$ref` leads to and may raise LookupError; without it references lead into `schema` itself.
    Of alternatives the first that is an object or a list counts, so that what may be null keeps its fields. Total and
    quick: what is malformed, nested deeper than three objects or lists, or beyond the first 24 fields is left out.
    """
    return _Outliner(resolve or _resolve_within(schema)).outline(schema, MAX_DEPTH)


@dataclass(slots=True)
class _Outliner:
    """Reads a schema; of one that refers to itself, or is very wide, it stops after so many parts."""

    resolve: Resolve
    parts_left: int = MAX_PARTS

    def outline(self, node: object, depth: int) -> dict[str, JsonValue]:
        node = self._follow(node)
        if not depth:
            return _name_type(node)
        for keyword in ("anyOf", "oneOf"):
            for choice in takewhile(self._has_parts_left, _list(node.get(keyword))):
                outline = self.outline(choice, depth)
                if outline.get("type") in ("object", "array"):
                    return outline
        if properties := self._collect_properties(node):
            fields: dict[str, JsonValue] = {name: self.outline(rule, depth - 1) for name, rule in properties.items()}
            return {"type": "object", "properties": fields}
        return (
            {"type": "array", "items": self.outline(node["items"], depth - 1)} if "items" in node else _name_type(node)
        )

    def _collect_properties(self, node: Mapping[str, Any]) -> dict[str, object]:
        """The properties of an object and of all that it extends, by names that a plan can quote."""
        properties: dict[str, object] = {}
        for part in takewhile(self._has_parts_left, _list(node.get("allOf"))):
            properties |= self._collect_properties(self._follow(part))
        own = node.get("properties")
        properties |= islice(own.items(), MAX_PARTS) if isinstance(own, Mapping) else {}
        names = (name for name in properties if isinstance(name, str) and FIELD_NAME.fullmatch(name))
        return {name: properties[name] for name in islice(names, MAX_PROPERTIES)}

    def _has_parts_left(self, _: object) -> bool:
        return self.parts_left > 0

    def _follow(self, node: object) -> Mapping[str, Any]:
        """The end of a chain of references; {} where it leads nowhere, or after too many parts."""
        while self.parts_left > 0 and isinstance(node, Mapping):
            self.parts_left -= 1
            reference = node.get("$ref")
            if not isinstance(reference, str):
                return node
            try:
                node = self.resolve(reference)
            except LookupError:
                return {}
        return {}


def _name_type(node: Mapping[str, Any]) -> dict[str, JsonValue]:
    kind = node.get("type")
    return {"type": kind} if isinstance(kind, str) else {}


def _resolve_within(schema: object) -> Resolve:
    def resolve(reference: str) -> object:
        if not reference.startswith("#/") or len(reference) > MAX_POINTER_CHARS:
            raise LookupError(reference)
        node: Any = schema
        for part in reference[2:].split("/"):
            if not isinstance(node, Mapping):
                raise LookupError(reference)
            node = node[part.replace("~1", "/").replace("~0", "~")]
        return node

    return resolve


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def format_fields(schema: Mapping[str, JsonValue], depth: int = 2) -> str:
    """The fields of an object, or of the objects of a list, as plans name them: "{id, owner: {name, city}}", "[{id}]";
    "" for anything else."""
    properties, items = schema.get("properties"), schema.get("items")
    if isinstance(items, Mapping):
        inner = format_fields(items, depth)
        return f"[{inner}]" if inner else ""
    if not isinstance(properties, Mapping) or not properties or not depth:
        return ""
    names = []
    for name, rule in list(properties.items())[:MAX_FIELDS]:
        inner = format_fields(rule, depth - 1) if isinstance(rule, Mapping) else ""
        names.append(f"{name}: {inner}" if inner else name)
    more = ", ..." if len(properties) > MAX_FIELDS else ""
    return f"{{{', '.join(names)}{more}}}"
