"""Reads an OpenAPI 3.0 or 3.1 document: text, JSON or YAML, to plain JSON with references that can be followed.

One in Swagger 2.0 is read as the OpenAPI 3.0 that says the same. References to other documents are refused: nothing is
fetched. Text from anywhere ends in a Document or in InvalidPool.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import jsonpointer
import networkx as nx
import yaml

from pool_registry.actions import JsonValue, clean_text
from pool_registry.errors import InvalidPool
from pool_registry.imports.openapi.swagger2 import convert_document

MAX_CHARS = 16_000_000
MAX_NODES = 500_000  # of the whole document, aliases counted as often as they are used
MAX_DEPTH = 100
MAX_HOPS = 20  # references that lead to references
MAX_NUMBER_CHARS = 400  # the largest number of JSON has 309 digits

_NUMBER_TAGS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_NUMBER_MARKS = "0123456789_:.+-"
_YAML: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class UnfitOperation(Exception):
    """One operation cannot become a worker; the message says why."""


class Document:
    """A parsed document. `is_30` says that its schemas are in the dialect of OpenAPI 3.0, `styles_parts` that it says
    how lists in parts of a form are written, which OpenAPI 3.0 alone cannot."""

    def __init__(self, root: Mapping[str, Any], is_swagger: bool = False) -> None:
        self.root = root
        self.styles_parts = is_swagger or not str(root["openapi"]).startswith("3.0")
        self.is_30 = str(root["openapi"]).startswith("3.0")

    def at(self, reference: str) -> Any:
        """Return what a reference leads to. Raises UnfitOperation."""
        if not reference.startswith("#"):
            raise UnfitOperation(f"it refers to another document ({reference[:120]}); bundle both into one first")
        try:
            return jsonpointer.resolve_pointer(self.root, unquote(reference[1:]))
        except (jsonpointer.JsonPointerException, TypeError) as error:
            raise UnfitOperation(f"it refers to {reference[:120]}, which is not in the document") from error

    def follow(self, node: Any) -> dict[str, Any]:
        """Return `node`, or the object at the end of its chain of `$ref`. Raises UnfitOperation."""
        for _ in range(MAX_HOPS):
            if not isinstance(node, dict):
                raise UnfitOperation("a part of it should be an object and is none")
            if not isinstance(node.get("$ref"), str):
                return node
            node = self.at(node["$ref"])
        raise UnfitOperation("its references lead in a circle")

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
            except UnfitOperation:
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
    """Parse the document in `text`, JSON or YAML. Raises InvalidPool saying what is wrong with it."""
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise _document_error(f"it is no UTF-8 text ({error.reason} at byte {error.start})") from error
    if len(text) > MAX_CHARS:
        raise _document_error(f"it has more than {MAX_CHARS:,} characters")
    root = _Plain().copy(_parse(text))
    if not isinstance(root, dict):
        raise _document_error("it is neither JSON nor YAML with an object at the top")
    if "swagger" in root:
        return Document(_convert(root), is_swagger=True)
    version = root.get("openapi")
    version = str(version) if isinstance(version, float) else version  # `openapi: 3.0` in YAML
    if not isinstance(version, str) or not version.startswith(("3.0", "3.1", "3.2")):
        raise _document_error(f"its field `openapi` must be 3.0.x or 3.1.x and is {str(version)[:40]!r}")
    if not isinstance(root.get("paths"), dict):
        raise _document_error("it has no `paths`, so there is nothing to call")
    return Document(root)


def _convert(root: dict[str, Any]) -> dict[str, Any]:
    version = str(root["swagger"])
    if not version.startswith("2") or not isinstance(root.get("paths"), dict):
        raise _document_error(
            f"it is written in Swagger {version[:10]} without `paths` that can be read; convert it to OpenAPI 3 first"
        )
    return convert_document(root)


def _document_error(sentence: str) -> InvalidPool:
    return InvalidPool([("document", sentence)])


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip()[:1] in ("{", "["):
            raise _document_error(f"it is not valid JSON: {error}") from error
    try:
        _check_size(text)
        return yaml.load(text, Loader=_YAML)  # noqa: S506  a safe loader
    except yaml.YAMLError as error:
        raise _document_error(f"it is not valid YAML: {' '.join(str(error).split())[:300]}") from error
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        # what PyYAML raises for values that contradict their own tag, such as `!!int x`
        raise _document_error(f"it holds a value that is not valid YAML: {error}") from error


@dataclass(slots=True)
class _OpenPart:
    """A list or an object whose end is not read yet. `before`: the parts before it; `at_key`: a key comes next."""

    anchor: str | None
    before: int
    is_object: bool
    at_key: bool = True


def _check_size(text: str) -> None:
    """Refuse large and deep YAML by its events, which take no memory: values would be built for minutes before their
    number is known, and PyYAML's fast loader would end the whole process at deep ones."""
    parts = 0
    sizes: dict[str | None, int] = {}  # of what an anchor names: an alias, and a key << of it, builds as much again
    open_parts: list[_OpenPart] = []
    for event in yaml.parse(text, Loader=_YAML):
        if isinstance(event, yaml.CollectionEndEvent):
            ended = open_parts.pop()
            sizes[ended.anchor] = parts - ended.before
        if not isinstance(event, yaml.NodeEvent):
            continue
        within = open_parts[-1] if open_parts else None
        is_key = within is not None and within.is_object and within.at_key
        if within is not None:
            within.at_key = not within.at_key
        if isinstance(event, yaml.CollectionStartEvent):
            open_parts.append(_OpenPart(event.anchor, parts, isinstance(event, yaml.MappingStartEvent)))
        elif isinstance(event, yaml.ScalarEvent):
            _check_number(event)
            sizes[event.anchor] = 1
        parts += sizes.get(event.anchor, 1) if isinstance(event, yaml.AliasEvent) else not is_key
        if len(open_parts) > MAX_DEPTH:
            raise _too_deep()
        if parts > MAX_NODES:
            raise _too_large()


def _check_number(event: yaml.ScalarEvent) -> None:
    """Refuse a long number. YAML reads 1:1:1 as one to the base of 60, in a time that grows with its square."""
    if len(event.value) <= MAX_NUMBER_CHARS:
        return
    if event.tag in _NUMBER_TAGS or (event.implicit[0] and not event.value.strip(_NUMBER_MARKS)):
        raise _document_error(f"it holds a number of more than {MAX_NUMBER_CHARS} characters; put texts in quotes")


def _too_large() -> InvalidPool:
    return _document_error(f"it has more than {MAX_NODES:,} parts; cut it down to the operations that you need")


def _too_deep() -> InvalidPool:
    return _document_error(f"it is nested more than {MAX_DEPTH} deep")


class _Plain:
    """Copies what a parser returned into plain JSON, counting: a few YAML aliases can stand for gigabytes."""

    def __init__(self) -> None:
        self._nodes = 0

    def copy(self, value: Any, depth: int = 0) -> JsonValue:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _too_large()
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
        raise _document_error("it holds a number that is too large") from error


def _key(key: object) -> str:
    """Turn a YAML key into JSON's: YAML reads 200 and true where "200" and "true" are meant."""
    return clean_text(key if isinstance(key, str) else str(key).lower() if isinstance(key, bool) else str(key))


def _references(node: Any) -> Iterator[str]:
    """Yield every local reference within a tree."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str) and reference.startswith("#"):
                yield reference
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _size(node: Any) -> int:
    size, waiting = 0, [node]
    while waiting:
        node = waiting.pop()
        size += 1
        if isinstance(node, dict | list):
            waiting.extend(node.values() if isinstance(node, dict) else node)
    return size
