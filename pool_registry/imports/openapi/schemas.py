"""The schemas of an OpenAPI operation as JSON Schema 2020-12.

References are inlined; those that lead back to themselves become `$defs`. Keywords of OpenAPI's own are
translated (3.0's `nullable` and exclusive bounds) or left out, properties that only answers have are dropped, and
what `allOf` joins is one schema where that can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pool_registry.actions import JsonValue
from pool_registry.imports.openapi.document import Document, UnfitOperation
from pool_registry.imports.openapi.merge import NOTES, merge_all_of
from pool_registry.imports.openapi.variants import list_heirs, list_labels, list_read_only, write_label

MAX_SCHEMA_NODES = 5_000  # of one operation's arguments: a model has to read them
MAX_SCHEMA_DEPTH = 50
OUTER_DEPTH = 4  # of a body's own fields, behind a reference or two: what is cut there costs one argument

_MAPS = {"properties", "patternProperties", "dependentSchemas"}  # keyword -> {name: schema}
_DATA = {"enum", "const", "default", "required", "dependentRequired"}  # keywords that hold no schema
_DROPPED = {"xml", "externalDocs", "discriminator", "example", "examples", "deprecated", "readOnly", "writeOnly"}
_DROPPED |= {"$schema", "$id", "$anchor", "$comment", "$defs", "definitions"}  # references into $defs are inlined
_DROPPED |= {"$dynamicRef", "$dynamicAnchor"}
_JOINED = {"allOf", "anyOf", "oneOf", "then", "else", "dependentSchemas"}  # keywords whose schemas meet the same object
_NOBODY: frozenset[str] = frozenset()


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

    def schema(self, node: Any, hidden: frozenset[str] = _NOBODY) -> Any:
        """`node` with local references inlined and OpenAPI's own keywords translated, without the properties `hidden`.
        Raises UnfitOperation."""
        self._nodes += 1
        self._depth += 1
        if self._nodes > MAX_SCHEMA_NODES:
            raise LargeBranch(f"the schema of its arguments has more than {MAX_SCHEMA_NODES:,} parts")
        if self._depth > MAX_SCHEMA_DEPTH:
            raise LargeBranch(f"the schema of its arguments is nested more than {MAX_SCHEMA_DEPTH} deep")
        try:
            return self._translate(node, hidden)
        finally:
            self._depth -= 1

    def argument(self, name: str, node: Any, hidden: frozenset[str] = _NOBODY, typed: bool = False) -> Any:
        """`node` like `schema`; of one that is too large or too deep only its type and its words, which is noted.
        `typed`: without a type it could not be written, and is refused."""
        nodes, depth = self._nodes, self._depth
        try:
            return self.schema(node, hidden)
        except LargeBranch:
            self._nodes, self._depth = nodes, depth
            target = self._document.follow(node)
            if typed and "type" not in target:
                raise
            self.notes.append(f"{name}: its schema is too large, and takes any value of its type")
            return {key: target[key] for key in ("type", "title", "description") if key in target}

    def body(self, node: Any) -> Any:
        """The schema of a body: the definitions that it joins by `allOf` are put in their place, and what its
        discriminator chooses from is a `oneOf`. Raises UnfitOperation."""
        heirs, nodes = list_heirs(self._document, node), self._nodes
        if heirs:
            discriminator = self._document.follow(node)["discriminator"]
            try:
                return self.schema({"oneOf": heirs, "discriminator": discriminator})
            except UnfitOperation:
                self._nodes = nodes  # too many variants: the fields that all have can be sent
        schema = self.argument("the body", node)
        return merge_all_of(schema, self.definitions) if isinstance(schema, dict) else schema

    def _translate(self, node: Any, hidden: frozenset[str]) -> Any:
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict):
            raise UnfitOperation("a schema in it is neither an object nor true or false")
        reference = node.get("$ref")
        if isinstance(reference, str):
            beside = {key: value for key, value in node.items() if key != "$ref"}
            return self._follow_reference(reference, beside, hidden)
        if "$dynamicRef" in node:
            self.notes.append(f"$dynamicRef {str(node['$dynamicRef'])[:60]} is left out; any value fits there")
        hidden |= list_read_only(self._document, node)
        plain = {
            key: self._keyword(key, value, hidden if key in _JOINED else _NOBODY)
            for key, value in node.items()
            if key not in _DROPPED and not key.startswith("x-")
        }
        if hidden:
            _drop_properties(plain, hidden)
        if isinstance(plain.get("oneOf"), list):
            plain = self._settle_choice(plain, node, hidden)
        if not self._document.is_30:
            return merge_all_of(plain)
        own = {key: plain.pop(key) for key in ("nullable",) if key in plain}
        return _from_30({**merge_all_of(plain), **own})

    def _keyword(self, key: str, value: Any, hidden: frozenset[str]) -> JsonValue:
        if key in _DATA:
            return value
        if key in _MAPS and isinstance(value, dict):
            if self._depth > OUTER_DEPTH:
                return {name: self.schema(item, hidden) for name, item in value.items()}
            return {name: self.argument(name, item, hidden) for name, item in value.items()}
        if isinstance(value, list):
            return [self.schema(item, hidden) if isinstance(item, dict | bool) else item for item in value]
        return self.schema(value, hidden) if isinstance(value, dict) else value

    def _settle_choice(self, plain: dict[str, Any], node: Mapping[str, Any], hidden: frozenset[str]) -> dict[str, Any]:
        """Keep the variants of a `oneOf` apart: by what its discriminator calls each, or, where one has lost what told
        it from the others, by taking any of them."""
        labels = list_labels(self._document, node)
        if labels:
            field = str(node["discriminator"]["propertyName"])
            pairs = zip(plain["oneOf"], labels, strict=True)
            return {**plain, "oneOf": [write_label(variant, field, values) for variant, values in pairs]}
        if not hidden and not any(list_read_only(self._document, variant) for variant in node["oneOf"]):
            return plain
        rest = {key: value for key, value in plain.items() if key != "oneOf"}
        choice = {"anyOf": plain["oneOf"]}
        return merge_all_of({"allOf": [choice, rest]})

    def _follow_reference(self, reference: str, beside: Mapping[str, Any], hidden: frozenset[str]) -> Any:
        if reference in self._document.recursive:
            target: Any = {"$ref": f"#/$defs/{self._define(reference)}"}
        else:
            target = self.schema(self._document.at(reference), hidden)
        if not isinstance(target, dict):
            return target
        if self._document.is_30:  # which ignores what stands beside a reference; a description does no harm
            beside = {key: value for key, value in beside.items() if key in NOTES}
        more = self.schema(beside, hidden) if beside else {}
        if more.keys() & target.keys() - NOTES:
            return merge_all_of({"allOf": [target], **more})
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


def _drop_properties(plain: dict[str, Any], names: frozenset[str]) -> None:
    """Remove properties that a caller must not send, and each demand for them."""
    properties, demands = plain.get("properties"), plain.get("dependentRequired")
    if isinstance(properties, dict):
        plain["properties"] = {name: rule for name, rule in properties.items() if name not in names}
    if "required" in plain:
        plain["required"] = _without(plain["required"], names)
    if isinstance(demands, dict):
        plain["dependentRequired"] = {name: _without(others, names) for name, others in demands.items()}


def _without(listed: Any, names: frozenset[str]) -> Any:
    """A list of names without those in `names`; anything else as it is."""
    return [name for name in listed if name not in tuple(names)] if isinstance(listed, list) else listed


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
