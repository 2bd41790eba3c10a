"""How much work a JSON Schema asks for: the one bound on schemas, and on what is checked against them.

A few lines of `$ref` can stand for any number of parts: each of thirty definitions that names the next one twice asks
for 2**30 checks. The validator holds Python's lock while it works, so no thread and no time limit could end it: what
is too much has to be refused before. Parts are counted with each reference expanded, once for each definition, so that
counting takes as long as the text is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any
from urllib.parse import unquote, urldefrag

from pool_registry.actions import JsonValue
from pool_registry.schemas.regex import weigh_pattern

MAX_PARTS = 20_000  # with references expanded: at most a millisecond for each part of a value
MAX_DEPTH = 100  # of the expanded schema
MAX_RESOURCES = 50  # schemas with an `$id` within it: each reference may lead into any of them
MAX_PATTERN_WEIGHT = 50_000  # of all patterns together: compiling them takes a tenth of a second at most
MAX_VALUE_PARTS = 500_000
MAX_VALUE_DEPTH = 100
MAX_STEPS = 10_000_000  # parts of the schema times parts of the value: a third of a second
MAX_WALKED = 5_000  # pairs of them that are counted one by one, where that product is larger
MAX_COUNTED = 10_000  # parts that are counted anew for a deeper value, where a schema refers to itself
UNIQUE_PARTS = 20  # of a schema: comparing all items takes as long as checking each against so many

_BESIDE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")  # about the same value
_BESIDE_MAPS = ("dependentSchemas", "dependencies")
_WITHIN = (
    *("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"),
    *("additionalProperties", "unevaluatedProperties", "propertyNames"),
)
_WITHIN_MAPS = ("properties", "patternProperties")
_NESTED = frozenset((dict, list, tuple))
_NAMED = frozenset((dict, str))
_PLAIN = frozenset((int, float, bool, type(None)))
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class SchemaTooLarge(ValueError):
    """A schema asks for more checks than may be made; the message names the limit and what to do."""


@dataclass(frozen=True, slots=True)
class ValueSize:
    """The parts of a JSON value, the characters of its texts and how deep it is nested; counting ends at the limits."""

    parts: int
    chars: int
    depth: int


def measure_value(value: Any, with_chars: bool = True) -> ValueSize:
    """Measure a value, level by level: each call's arguments are."""
    parts = chars = depth = 0
    level = [value]
    while level:
        depth += 1
        parts += len(level)
        if depth > MAX_VALUE_DEPTH or parts > MAX_VALUE_PARTS:
            break
        below: list[Any] = []
        kinds: set[type] = set(map(type, level))
        for kind in kinds - _PLAIN:  # a long list of figures is passed over at once
            parts_of_kind: list[Any] = [item for item in level if type(item) is kind]
            if with_chars and kind in _NAMED:
                chars += sum(map(_count_chars, parts_of_kind))
            if kind in _NESTED:
                below += chain.from_iterable(item.values() if kind is dict else item for item in parts_of_kind)
        level = below
    return ValueSize(parts, chars, depth)


class SchemaSize:
    """The expanded size of a schema. Raises SchemaTooLarge where it is beyond the limits."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._resources: list[Mapping[str, Any]] = [schema]
        self._anchors: dict[str, list[Mapping[str, Any]]] = {}
        self.pattern_weight = 0
        self._weights: dict[int, int] = {}
        self._choices: dict[int, int] = {}  # parts that a value is compared with, or names that it must have
        self.branches = False  # whether an error has others in it
        self._index()
        self._beside: dict[int, list[Any]] = {}
        self._levels_on_path: dict[int, int] = {}
        self._counts: dict[tuple[int, int | None], int] = {}
        self._recursive: dict[int, Mapping[str, Any]] = {}
        self.parts = self._count(schema, None, 0, 0)
        _refuse_parts(self.parts)

    def refuse_value(self, value: Any) -> str:
        """Explain why a value cannot be checked against the schema; "" when it can."""
        if not self._recursive and not self.pattern_weight and _has_few_parts(value):
            return ""
        size = measure_value(value, bool(self.pattern_weight))
        if size.depth > MAX_VALUE_DEPTH:
            return f"it is nested more than {MAX_VALUE_DEPTH} deep; nest it less"
        if size.parts > MAX_VALUE_PARTS:
            return f"it has more than {MAX_VALUE_PARTS:,} parts; give less at once"
        steps = self.count_parts(size.depth) * size.parts + self.pattern_weight * size.chars
        if steps > MAX_STEPS and not self.takes_fewer_steps(value, MAX_WALKED):
            return f"checking it against its schema may take more than {MAX_STEPS:,} steps; give less at once"
        return ""

    def count_parts(self, depth: int) -> int:
        """Count the parts for values that are nested so deep: a schema that refers to itself grows with them. Beyond
        MAX_STEPS, and after MAX_COUNTED counts, it is counted no further."""
        if not self._recursive:
            return self.parts
        for levels in range(depth):  # from below, so that no count goes deep
            for node in self._recursive.values():
                if len(self._counts) > MAX_COUNTED or self._count(node, levels, 0, 0) > MAX_STEPS:
                    return MAX_STEPS + 1
        return self._count(self._schema, depth, 0, 0)

    def takes_fewer_steps(self, value: JsonValue, limit: int) -> bool:
        """Whether checking this value to the end takes fewer steps than `limit`: each may become an error."""
        waiting: list[tuple[Any, Any]] = [(self._schema, value)]
        chars: dict[int, int] = {}
        steps = matching = 0
        while waiting and steps + len(waiting) <= limit and matching < MAX_STEPS:
            node, part = waiting.pop()
            steps += 1
            if not isinstance(node, Mapping):
                continue
            steps += self._choices.get(id(node), 0)
            if node.get("uniqueItems") is True and isinstance(part, list):
                steps += len(part) if len(part) > limit else measure_value(part, with_chars=False).parts
            if weight := self._weights.get(id(node), 0):
                if id(part) not in chars:
                    chars[id(part)] = _count_chars(part)
                matching += weight * chars[id(part)]
            waiting.extend((other, part) for other in self._list_beside(node))
            if isinstance(part, Mapping | list) and part:
                waiting.extend(islice(_pair_within(node, part), limit))
        return not waiting and matching < MAX_STEPS

    def _count(self, node: Any, levels: int | None, level: int, depth: int) -> int:
        """Count a part with all that it expands to, down to `levels` below it in a value. None: each recursion once."""
        if not isinstance(node, Mapping):
            return 1
        if depth > MAX_DEPTH:
            raise SchemaTooLarge(f"the schema is nested more than {MAX_DEPTH} deep; make it flatter")
        key = (id(node), levels)
        if key in self._counts:
            return self._counts[key]
        if id(node) in self._levels_on_path and (levels is None or self._levels_on_path[id(node)] == level):
            return self._meet_again(node, level)
        before = self._levels_on_path.get(id(node))
        self._levels_on_path[id(node)] = level
        count = 1 + sum(self._count(other, levels, level, depth + 1) for other in self._list_beside(node))
        if levels != 0:
            below = None if levels is None else levels - 1
            count += sum(self._count(other, below, level + 1, depth + 1) for other in _list_within(node))
        count += self._choices.get(id(node), 0)
        if levels is None:
            _refuse_parts(count)  # at once: what is left may be just as large
        if before is None:
            del self._levels_on_path[id(node)]
        else:
            self._levels_on_path[id(node)] = before
        self._counts[key] = count
        return count

    def _meet_again(self, node: Mapping[str, Any], level: int) -> int:
        if self._levels_on_path[id(node)] == level:
            raise SchemaTooLarge("the references of the schema lead in a circle; let each lead to an inner value")
        self._recursive[id(node)] = node
        return 1

    def _list_beside(self, node: Mapping[str, Any]) -> list[Any]:
        """List the schemas that the same value is checked against as well."""
        if id(node) not in self._beside:
            self._beside[id(node)] = list(self._find_beside(node))
        return self._beside[id(node)]

    def _find_beside(self, node: Mapping[str, Any]) -> Iterator[Any]:
        for word in _REFERENCES:
            reference = node.get(word)
            if isinstance(reference, str):
                yield from self._resolve(reference)
        for word in _BESIDE:
            yield from _list_schemas(node.get(word))
        for word in _BESIDE_MAPS:
            yield from _list_named_schemas(node.get(word))

    def _resolve(self, reference: str) -> Iterator[Any]:
        """List what a reference may lead to: where a schema holds others with an `$id`, each that has such a part."""
        address, fragment = urldefrag(reference)
        last = address.rpartition("/")[2]
        for resource in self._resources:  # MAX_RESOURCES at most
            if address and str(_identity(resource)).rstrip("#").rpartition("/")[2] != last:
                continue
            if not fragment:
                yield resource
            elif fragment.startswith("/"):
                try:
                    yield _follow_pointer(resource, unquote(fragment))
                except (LookupError, TypeError, ValueError):
                    continue  # where it leads nowhere at all, the validator says so
        yield from self._anchors.get(fragment, [])

    def _index(self) -> None:
        """Find what references may name, and weigh the patterns."""
        waiting: list[Any] = [self._schema]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Mapping):
                self._note(node)
                waiting.extend(node.values())
            elif isinstance(node, list | tuple):
                waiting.extend(node)
        if self.pattern_weight > MAX_PATTERN_WEIGHT:
            raise SchemaTooLarge(
                f"the patterns of the schema are larger than {MAX_PATTERN_WEIGHT:,} characters with their counted "
                "repeats written out; use shorter ones, or * and + instead of counts"
            )

    def _note(self, node: Mapping[str, Any]) -> None:
        if _identity(node) and node is not self._schema:
            self._resources.append(node)
            _refuse_names(self._resources)
        if choices := _count_choices(node):
            self._choices[id(node)] = choices
        for word in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(word), str):
                self._anchors.setdefault(node[word], []).append(node)
                _refuse_names(self._anchors[node[word]])
        if weight := _weigh_patterns(node):
            self._weights[id(node)] = weight
            self.pattern_weight += weight
        self.branches = self.branches or not node.keys().isdisjoint(("anyOf", "oneOf", "contains"))


def _refuse_parts(parts: int) -> None:
    if parts > MAX_PARTS:
        raise SchemaTooLarge(
            f"the schema has more than {MAX_PARTS:,} parts when its references are expanded; use fewer $ref, "
            "anyOf, oneOf and allOf in one another"
        )


def _refuse_names(parts: list[Mapping[str, Any]]) -> None:
    if len(parts) > MAX_RESOURCES:
        raise SchemaTooLarge(
            f"more than {MAX_RESOURCES} parts of the schema have an $id, or an anchor of one name; refer to them by "
            "where they stand, such as #/$defs/name"
        )


def _follow_pointer(node: Any, pointer: str) -> Any:
    """What a JSON pointer leads to. Raises LookupError, TypeError or ValueError where there is nothing."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        node = node[int(name)] if isinstance(node, list | tuple) else node[name]
    return node


def size_problem(schema: object) -> str:
    """Explain why a schema asks for too much; "" when it does not. Everything that takes a schema asks this."""
    try:
        SchemaSize(schema if isinstance(schema, Mapping) else {})
    except SchemaTooLarge as error:
        return str(error)
    return ""


def _identity(node: Mapping[str, Any]) -> str:
    name = node.get("$id", node.get("id"))
    return name if isinstance(name, str) else ""


def _has_few_parts(value: Any) -> bool:
    """Whether a value is like the arguments of most calls, by a glance: they are checked at every step."""
    return (
        type(value) is dict and len(value) <= MAX_STEPS // MAX_PARTS and _NESTED.isdisjoint(map(type, value.values()))
    )


def _count_choices(node: Mapping[str, Any]) -> int:
    """Count what a value is compared with, and the names that it must have."""
    compared = [node[word] for word in ("enum", "const") if isinstance(node.get(word), dict | list)]
    required = node.get("required")
    names = len(required) if isinstance(required, list) else 0
    among_items = UNIQUE_PARTS if node.get("uniqueItems") is True else 0
    return names + among_items + sum(measure_value(value, with_chars=False).parts for value in compared)


def _weigh_patterns(node: Mapping[str, Any]) -> int:
    patterns = [node.get("pattern"), *_keys(node.get("patternProperties"))]
    return sum(weigh_pattern(pattern) for pattern in patterns if isinstance(pattern, str))


def _count_chars(value: Any) -> int:
    """Count what patterns are matched with: a text, or the names in an object."""
    return len(value) if isinstance(value, str) else sum(map(len, map(str, _keys(value))))


def _keys(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Mapping) else []


def _list_schemas(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if isinstance(value, Mapping) else []


def _list_named_schemas(value: Any) -> list[Any]:
    return [item for item in value.values() if isinstance(item, Mapping)] if isinstance(value, Mapping) else []


def _list_within(node: Mapping[str, Any]) -> Iterator[Any]:
    """List the schemas that the items of a value are checked against."""
    for word in _WITHIN_MAPS:
        yield from _list_named_schemas(node.get(word))
    for word in _WITHIN:
        yield from _list_schemas(node.get(word))


def _pair_within(node: Mapping[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:
    """Pair the inner parts of a schema with the parts of a value that they may be about."""
    properties = node.get("properties")
    if isinstance(value, Mapping) and isinstance(properties, Mapping):
        names = min(properties, value, key=len)
        yield from ((properties.get(name), value.get(name)) for name in names)
    others = [
        *_list_named_schemas(node.get("patternProperties")),
        *(rule for word in _WITHIN for rule in _list_schemas(node.get(word))),
    ]
    for rule in others:
        yield from ((rule, item) for item in (value.values() if isinstance(value, Mapping) else value))
