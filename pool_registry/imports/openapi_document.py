"""Reads an OpenAPI 3.0 or 3.1 document: text to plain JSON, and its schemas to JSON Schema 2020-12.

References inside the document are inlined; those that lead back to themselves become `$defs`. References
to other documents are refused: nothing is fetched. Text from anywhere ends in a Document or in InvalidPool.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import jsonpointer
import networkx as nx
import yaml

from pool_registry.actions import JsonValue, clean_text
from pool_registry.errors import InvalidPool

MAX_CHARS = 16_000_000
MAX_NODES = 500_000  # of the whole document, aliases counted as often as they are used
MAX_DEPTH = 100
MAX_SCHEMA_NODES = 5_000  # of one operation's arguments: a model has to read them
MAX_SCHEMA_DEPTH = 50
MAX_HOPS = 20  # references that lead to references

_YAML: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAPS = {"properties", "patternProperties", "dependentSchemas"}  # keyword -> {name: schema}
_DATA = {"enum", "const", "default", "required", "dependentRequired"}  # keywords that hold no schema
_DROPPED = {"xml", "externalDocs", "discriminator", "example", "examples", "deprecated", "readOnly", "writeOnly"}
_DROPPED |= {"$schema", "$id", "$anchor", "$comment", "$defs", "definitions"}  # references into $defs are inlined
_NOTES = {"title", "description", "default"}  # what may stand beside a reference without changing its meaning


class Unfit(Exception):
    """Why one operation cannot become a worker, in a sentence."""


class Document:
    """A parsed document. `is_30` says that its schemas are in the dialect of OpenAPI 3.0."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.is_30 = str(root["openapi"]).startswith("3.0")

    def at(self, reference: str) -> Any:
        """What a reference leads to. Raises Unfit."""
        if not reference.startswith("#"):
            raise Unfit(f"it refers to another document ({reference[:120]}); bundle both into one first")
        try:
            return jsonpointer.resolve_pointer(self.root, unquote(reference[1:]))
        except (jsonpointer.JsonPointerException, TypeError) as error:
            raise Unfit(f"it refers to {reference[:120]}, which is not in the document") from error

    def follow(self, node: Any) -> dict[str, Any]:
        """`node`, or the object that its `$ref` leads to in the end. Raises Unfit."""
        for _ in range(MAX_HOPS):
            if not isinstance(node, dict):
                raise Unfit("a part of it should be an object and is none")
            if not isinstance(node.get("$ref"), str):
                return node
            node = self.at(node["$ref"])
        raise Unfit("its references lead in a circle")

    @cached_property
    def recursive(self) -> frozenset[str]:
        """The references that lead back to themselves."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        waiting, seen = list(set(_references(self.root))), set[str]()
        budget = 4 * MAX_NODES
        while waiting:
            reference = waiting.pop()
            if reference in seen:
                continue
            seen.add(reference)
            try:
                target = self.at(reference)
            except Unfit:
                continue  # told where it is used
            for inner in _references(target):
                graph.add_edge(reference, inner)
                waiting.append(inner)
            budget -= _size(target)
            if budget < 0:
                raise InvalidPool([("document", "its references are too tangled to be followed")])
        circles = [part for part in nx.strongly_connected_components(graph) if len(part) > 1]
        return frozenset().union(*circles) | {node for node in graph if graph.has_edge(node, node)}


def read(text: str | bytes) -> Document:
    """The document in `text`, JSON or YAML. Raises InvalidPool saying what is wrong with it."""
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise _refused(f"it is no UTF-8 text ({error.reason} at byte {error.start})") from error
    if len(text) > MAX_CHARS:
        raise _refused(f"it has more than {MAX_CHARS:,} characters")
    root = _Plain().copy(_parsed(text))
    if not isinstance(root, dict):
        raise _refused("it is neither JSON nor YAML with an object at the top")
    version = root.get("openapi")
    if "swagger" in root:
        raise _refused("it is written in Swagger 2.0; convert it to OpenAPI 3 first (for example at editor.swagger.io)")
    if not isinstance(version, str) or not version.startswith(("3.0", "3.1", "3.2")):
        raise _refused(f"its field `openapi` must be 3.0.x or 3.1.x and is {str(version)[:40]!r}")
    if not isinstance(root.get("paths"), dict):
        raise _refused("it has no `paths`, so there is nothing to call")
    return Document(root)


def _refused(sentence: str) -> InvalidPool:
    return InvalidPool([("document", sentence)])


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip()[:1] in ("{", "["):
            raise _refused(f"it is not valid JSON: {error}") from error
    try:
        _check_depth(text)
        return yaml.load(text, Loader=_YAML)  # noqa: S506  a safe loader
    except yaml.YAMLError as error:
        raise _refused(f"it is not valid YAML: {' '.join(str(error).split())[:300]}") from error
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        # what PyYAML raises for values that contradict their own tag, such as `!!int x`
        raise _refused(f"it holds a value that is not valid YAML: {error}") from error


def _check_depth(text: str) -> None:
    """Refuse deep YAML by its events: PyYAML's fast loader would end the whole process."""
    depth = 0
    for event in yaml.parse(text, Loader=_YAML):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise _too_deep()


def _too_deep() -> InvalidPool:
    return _refused(f"it is nested more than {MAX_DEPTH} deep")


class _Plain:
    """Copies what a parser returned into plain JSON, counting: a few YAML aliases can stand for gigabytes."""

    def __init__(self) -> None:
        self._nodes = 0

    def copy(self, value: Any, depth: int = 0) -> JsonValue:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _refused(f"it has more than {MAX_NODES:,} parts")
        if depth > MAX_DEPTH:
            raise _too_deep()
        if isinstance(value, dict):
            return {_key(key): self.copy(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple | set):
            return [self.copy(item, depth + 1) for item in value]
        if isinstance(value, str):
            return clean_text(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return _number(value)
        if isinstance(value, date):  # and datetime: YAML reads them out of plain text
            return value.isoformat()
        return repr(value)


def _number(value: int) -> int | float:
    if value.bit_length() <= 63:
        return value
    try:
        return float(value)
    except OverflowError as error:
        raise _refused("it holds a number that is too large") from error


def _key(key: object) -> str:
    """A mapping's key as JSON has it: YAML reads 200 and true, and means "200" and "true"."""
    return clean_text(key if isinstance(key, str) else str(key).lower() if isinstance(key, bool) else str(key))


def _references(node: Any) -> Iterator[str]:
    """Every local reference within a tree."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            reference = each.get("$ref")
            if isinstance(reference, str) and reference.startswith("#"):
                yield reference
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


def _size(node: Any) -> int:
    size, waiting = 0, [node]
    while waiting:
        each = waiting.pop()
        size += 1
        if isinstance(each, dict | list):
            waiting.extend(each.values() if isinstance(each, dict) else each)
    return size


class Schemas:
    """The schemas of one operation as JSON Schema 2020-12; `definitions` are those that refer to themselves."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._names: dict[str, str] = {}
        self._nodes = self._depth = 0
        self.definitions: dict[str, JsonValue] = {}

    def schema(self, node: Any) -> Any:
        """`node` with local references inlined and OpenAPI's own keywords translated. Raises Unfit."""
        self._nodes += 1
        self._depth += 1
        if self._nodes > MAX_SCHEMA_NODES:
            raise Unfit(f"the schema of its arguments has more than {MAX_SCHEMA_NODES:,} parts")
        if self._depth > MAX_SCHEMA_DEPTH:
            raise Unfit(f"the schema of its arguments is nested more than {MAX_SCHEMA_DEPTH} deep")
        try:
            return self._translated(node)
        finally:
            self._depth -= 1

    def _translated(self, node: Any) -> Any:
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict):
            raise Unfit("a schema in it is neither an object nor true or false")
        reference = node.get("$ref")
        if isinstance(reference, str):
            return self._referred(reference, {key: value for key, value in node.items() if key != "$ref"})
        if "$dynamicRef" in node:
            raise Unfit("its schema uses $dynamicRef, which cannot be recorded here")
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
            return {name: self.schema(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.schema(each) if isinstance(each, dict | bool) else each for each in value]
        return self.schema(value) if isinstance(value, dict) else value

    def _referred(self, reference: str, beside: Mapping[str, Any]) -> Any:
        if reference in self._document.recursive:
            target: Any = {"$ref": f"#/$defs/{self._defined(reference)}"}
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

    def _defined(self, reference: str) -> str:
        if reference not in self._names:
            last = reference.rpartition("/")[2]
            wanted = "".join(each if each.isascii() and each.isalnum() else "_" for each in last) or "root"
            taken = set(self._names.values())
            name = next(each for each in (wanted, *(f"{wanted}_{n}" for n in range(2, 10_000))) if each not in taken)
            self._names[reference] = name
            self.definitions[name] = self.schema(self._document.at(reference))
        return self._names[reference]


def _drop_read_only(plain: dict[str, Any], node: Mapping[str, Any], document: Document) -> None:
    """Take out the properties that a caller must not send."""
    properties = node.get("properties")
    for name, each in properties.items() if isinstance(properties, dict) else ():
        if isinstance(each, dict) and document.follow(each).get("readOnly") is True:
            plain["properties"].pop(name)
            if isinstance(plain.get("required"), list):
                plain["required"] = [other for other in plain["required"] if other != name]


def _from_30(schema: dict[str, Any]) -> dict[str, Any]:
    """OpenAPI 3.0's own keywords in JSON Schema's: `nullable`, and exclusive bounds as true or false."""
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
