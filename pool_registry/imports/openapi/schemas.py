"""The schemas of an OpenAPI operation as JSON Schema 2020-12.

References are inlined; those that lead back to themselves become `$defs`. Keywords of OpenAPI's own are
translated (3.0's `nullable` and exclusive bounds) or left out, properties that only answers have are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pool_registry.actions import JsonValue
from pool_registry.imports.openapi.document import Document, UnfitOperation

MAX_SCHEMA_NODES = 5_000  # of one operation's arguments: a model has to read them
MAX_SCHEMA_DEPTH = 50
OUTER_DEPTH = 4  # of a body's own fields, behind a reference or two: what is cut there costs one argument

_MAPS = {"properties", "patternProperties", "dependentSchemas"}  # keyword -> {name: schema}
_DATA = {"enum", "const", "default", "required", "dependentRequired"}  # keywords that hold no schema
_DROPPED = {"xml", "externalDocs", "discriminator", "example", "examples", "deprecated", "readOnly", "writeOnly"}
_DROPPED |= {
    "$dynamicRef",
    "$dynamicAnchor",
    "$schema",
    "$id",
    "$anchor",
    "$comment",
    "$defs",
    "definitions",
}  # references into $defs are inlined
_NOTES = {"title", "description", "default"}  # what may stand beside a reference without changing its meaning


class LargeBranch(UnfitOperation):
    """A schema is too large or too deep for a model to read."""


class Schemas:
    """The schemas of one operation as JSON Schema 2020-12; `definitions` are those that refer to themselves."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._names: dict[str, str] = {}
        self._nodes = self._depth = 0
        self.definitions: dict[str, JsonValue] = {}
        self.notes: list[str] = []

    def schema(self, node: Any) -> Any:
        """`node` with local references inlined and OpenAPI's own keywords translated. Raises UnfitOperation."""
        self._nodes += 1
        self._depth += 1
        if self._nodes > MAX_SCHEMA_NODES:
            raise LargeBranch(f"the schema of its arguments has more than {MAX_SCHEMA_NODES:,} parts")
        if self._depth > MAX_SCHEMA_DEPTH:
            raise LargeBranch(f"the schema of its arguments is nested more than {MAX_SCHEMA_DEPTH} deep")
        try:
            return self._translate(node)
        finally:
            self._depth -= 1

    def argument(self, name: str, node: Any, typed: bool = False) -> Any:
        """`node` like `schema`; of one that is too large or too deep only its type and its words, which is noted.
        `typed`: without a type it could not be written, and is refused."""
        nodes, depth = self._nodes, self._depth
        try:
            return self.schema(node)
        except LargeBranch:
            self._nodes, self._depth = nodes, depth
            target = self._document.follow(node)
            if typed and "type" not in target:
                raise
            self.notes.append(f"{name}: its schema is too large, and takes any value of its type")
            return {key: target[key] for key in ("type", "title", "description") if key in target}

    def _translate(self, node: Any) -> Any:
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict):
            raise UnfitOperation("a schema in it is neither an object nor true or false")
        reference = node.get("$ref")
        if isinstance(reference, str):
            return self._follow_reference(reference, {key: value for key, value in node.items() if key != "$ref"})
        if "$dynamicRef" in node:
            self.notes.append(f"$dynamicRef {str(node['$dynamicRef'])[:60]} is left out; any value fits there")
        plain = {
            key: self._keyword(key, value)
            for key, value in node.items()
            if key not in _DROPPED and not key.startswith("x-")
        }
        _drop_read_only(plain, node, self._document)
        return _from_30(plain) if self._document.is_30 else plain

    def _keyword(self, key: str, value: Any) -> JsonValue:
        if key in _DATA:
            return value
        if key in _MAPS and isinstance(value, dict):
            read = self.argument if self._depth <= OUTER_DEPTH else lambda _, item: self.schema(item)
            return {name: read(name, item) for name, item in value.items()}
        if isinstance(value, list):
            return [self.schema(item) if isinstance(item, dict | bool) else item for item in value]
        return self.schema(value) if isinstance(value, dict) else value

    def _follow_reference(self, reference: str, beside: Mapping[str, Any]) -> Any:
        if reference in self._document.recursive:
            target: Any = {"$ref": f"#/$defs/{self._define(reference)}"}
        else:
            target = self.schema(self._document.at(reference))
        if not isinstance(target, dict):
            return target
        if self._document.is_30:  # which ignores what stands beside a reference; a description does no harm
            beside = {key: value for key, value in beside.items() if key in _NOTES}
        more = self.schema(beside) if beside else {}
        if more.keys() & target.keys() - _NOTES:
            return {"allOf": [target], **more}
        return {**target, **more}

    def _define(self, reference: str) -> str:
        if reference not in self._names:
            last = reference.rpartition("/")[2]
            suggestion = "".join(item if item.isascii() and item.isalnum() else "_" for item in last) or "root"
            taken = set(self._names.values())
            name = next(
                item for item in (suggestion, *(f"{suggestion}_{n}" for n in range(2, 10_000))) if item not in taken
            )
            self._names[reference] = name
            self.definitions[name] = self.schema(self._document.at(reference))
        return self._names[reference]


def _drop_read_only(plain: dict[str, Any], node: Mapping[str, Any], document: Document) -> None:
    """Remove the properties that a caller must not send."""
    properties = node.get("properties")
    for name, rule in properties.items() if isinstance(properties, dict) else ():
        if isinstance(rule, dict) and document.follow(rule).get("readOnly") is True:
            plain["properties"].pop(name)
            if isinstance(plain.get("required"), list):
                plain["required"] = [other for other in plain["required"] if other != name]


def _from_30(schema: dict[str, Any]) -> dict[str, Any]:
    """Translate OpenAPI 3.0's own keywords: `nullable`, and exclusive bounds as true or false."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        flag = schema.get(exclusive)
        if isinstance(flag, bool):
            del schema[exclusive]
            if flag and bound in schema:
                schema[exclusive] = schema.pop(bound)
    if schema.pop("nullable", False) is not True:
        return schema
    if "enum" in schema and isinstance(schema["enum"], list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    if isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
        return schema
    return {"anyOf": [schema, {"type": "null"}]} if schema else schema
