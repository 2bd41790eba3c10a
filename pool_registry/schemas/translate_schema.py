"""A schema as it was written, keyword by keyword, as JSON Schema of draft 2020-12: types by other names, keywords of
older drafts, values of the wrong type. What is changed is noted with its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pool_registry.schemas.argument_schema import schema_problem
from pool_registry.schemas.type_names import JSON_TYPES, describe_type, join_types, read_type_name
from pool_registry.text import shorten

MAX_DEPTH = 60
MAX_NOTES = 8
SHOWN_PLACES = 4

_TEXTS = frozenset(("title", "description", "format", "$comment", "contentEncoding", "contentMediaType"))
_COUNTS = frozenset(
    ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains")
)
_NUMBERS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
_FLAGS = frozenset(("uniqueItems", "deprecated", "readOnly", "writeOnly"))
_SCHEMAS = frozenset(
    (
        *("not", "if", "then", "else", "contains", "propertyNames", "additionalProperties", "additionalItems"),
        *("unevaluatedItems", "unevaluatedProperties", "items"),
    )
)
_LISTS = frozenset(("anyOf", "oneOf", "allOf", "prefixItems"))
_MAPS = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"))
_DATA = frozenset(("default", "const"))  # null is a value there
_KNOWN_DIALECT = re.compile(r"json-schema\.org/(draft-0[467]|draft/20(19-09|20-12))/schema")
_SWITCHES = {"true": True, "false": False}


@dataclass(slots=True)
class Notes:
    """What was changed, with the places where."""

    places: dict[str, list[str]] = field(default_factory=dict)

    def add(self, sentence: str, path: str) -> None:
        self.places.setdefault(sentence, []).append(path or "the arguments")

    def write(self) -> tuple[str, ...]:
        lines = []
        for sentence, paths in list(self.places.items())[:MAX_NOTES]:
            more = f" and {len(paths) - SHOWN_PLACES} more" if len(paths) > SHOWN_PLACES else ""
            lines.append(f"{', '.join(paths[:SHOWN_PLACES])}{more}: {sentence}")
        left = len(self.places) - MAX_NOTES
        return (*lines, f"{left} more changes of such kinds") if left > 0 else tuple(lines)


class Translator:
    """Translates one schema, keyword by keyword."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._root: Any = {}

    def read(self, schema: object) -> dict[str, Any] | None:
        """The schema of the arguments themselves; None where it does not say that they are an object."""
        if isinstance(schema, list):  # of fields with their names
            schema = {"type": "object", "properties": schema} if _are_fields(schema) else None
        if not isinstance(schema, dict):
            return None
        self._root = schema
        self._note_dialect(schema.get("$schema"))
        rule = self._schema(self._unwrap(schema), "", 0)
        kind = rule.get("type", "object")
        return {**rule, "type": "object"} if "object" in (kind if isinstance(kind, list) else [kind]) else None

    def _note_dialect(self, dialect: object) -> None:
        if dialect is not None and not _KNOWN_DIALECT.search(str(dialect)):
            self._notes.add(f"the $schema {_quote(dialect)} is not known; it was read as draft 2020-12", "")

    def _unwrap(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Follow a reference that is the whole schema, so that its arguments can be seen; take plain fields without a
        frame around them as the arguments."""
        target = self._follow(schema.get("$ref"))
        if "properties" not in schema and isinstance(target, dict):
            return {**{key: value for key, value in schema.items() if key != "$ref"}, **target}
        frame = _KEYWORDS | {"type", "required", "$ref", "enum", "$schema", "$id", "id", "extends"}
        if schema and schema.keys().isdisjoint(frame) and all(isinstance(rule, dict | str) for rule in schema.values()):
            self._notes.add("these fields were read as the arguments", "")
            return {"type": "object", "properties": schema}
        return schema

    def _follow(self, reference: object) -> Any:
        """What a reference within the schema leads to; None where there is no such part."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        node = self._root
        for part in filter(None, reference[1:].split("/")):
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and name in node:
                node = node[name]
            elif isinstance(node, list) and name.isdigit() and int(name) < len(node):
                node = node[int(name)]
            else:
                return None
        return node

    def _schema(self, node: object, path: str, depth: int) -> Any:
        if isinstance(node, bool):
            return node
        if depth > MAX_DEPTH:
            self._notes.add("it is nested too deep and takes any value", path)
            return {}
        if isinstance(node, str):  # {"city": "string"}
            return self._type(node, path)
        if not isinstance(node, dict):
            if node is not None:
                self._notes.add("it is described by no schema and takes any value", path)
            return {}
        rule: dict[str, Any] = {}
        for key, value in node.items():
            if isinstance(key, str):
                self._keyword(rule, key, value, path, depth)
        self._take_required(rule, node, path)
        return _finish(rule, node)

    def _keyword(self, rule: dict[str, Any], key: str, value: Any, path: str, depth: int) -> None:
        """Put one keyword into the rule, translated, or leave it out."""
        if key in _DATA:
            rule[key] = value
        elif key == "type":
            rule |= {name: part for name, part in self._type(value, path, depth).items() if name not in rule}
        elif value is None and key in _KEYWORDS:
            self._notes.add(f"{key}, which was null, is left out", path)
        elif key in _SCHEMAS:
            self._put_schema(rule, key, value, path, depth)
        elif key in _LISTS:
            self._put_list(rule, key, value, path, depth)
        elif key in _MAPS:
            rule[key] = self._map(key, value, path, depth)
        elif key in _READERS:
            if (read := _READERS[key](value)) is not None:
                rule[key] = read
            elif not isinstance(value, bool):  # the bounds of draft 4: see _finish
                self._notes.add(f"{key} {_quote(value)} is left out", path)
        elif key in _OLDER:
            self._put_older(rule, key, value, path, depth)
        elif key == "$ref":
            self._put_reference(rule, value, path)
        elif key not in ("$schema", "$id", "id", "$anchor", "required", "nullable", "$dynamicAnchor"):
            rule[key] = value

    def _type(self, value: Any, path: str, depth: int = 0) -> dict[str, Any]:
        """A type by any name, a list of them, or a schema in the place of one."""
        if isinstance(value, dict):
            inner: dict[str, Any] = self._schema(value, path, depth + 1)
            return inner
        if isinstance(value, list):
            rules = [self._type(item, path, depth + 1) for item in value]
            return join_types(rules) if rules else {}
        name = str(value)
        if name in JSON_TYPES:
            return {"type": name}
        rule = read_type_name(name) if value is not None else None
        if rule is None:
            self._notes.add(f"the type {_quote(value)} is not known and takes any value", path)
        elif name.lower() not in JSON_TYPES:
            self._notes.add(f"the type {name[:60]} was read as {describe_type(rule)}", path)
        return rule or {}

    def _put_schema(self, rule: dict[str, Any], key: str, value: Any, path: str, depth: int) -> None:
        if isinstance(value, str) and value.lower() in _SWITCHES:
            value = _SWITCHES[value.lower()]
        where = f"{path}[]" if key in ("items", "contains") else path
        if key == "items" and isinstance(value, list):  # a tuple, up to draft 2019-09
            rule["prefixItems"] = [self._schema(item, where, depth + 1) for item in value]
            if not value:
                del rule["prefixItems"]
        elif key == "additionalItems":
            rule.setdefault("items", self._schema(value, where, depth + 1))
        else:
            rule[key] = self._schema(value, where, depth + 1)

    def _put_list(self, rule: dict[str, Any], key: str, value: Any, path: str, depth: int) -> None:
        choices = value if isinstance(value, list) else [value]
        if choices:
            rule[key] = [*rule.get(key, []), *(self._schema(item, path, depth + 1) for item in choices)]
        else:
            self._notes.add(f"{key}, which was empty, is left out", path)

    def _map(self, key: str, value: Any, path: str, depth: int) -> dict[str, Any]:
        """Schemas by name; a list of fields that have a `name` is such a map."""
        if isinstance(value, list):
            value = {item["name"]: _without_name(item) for item in value if _are_fields([item])}
            self._notes.add(f"{key}, which was a list, was read by the names in it", path)
        if not isinstance(value, dict):
            self._notes.add(f"{key} {_quote(value)} is left out", path)
            return {}
        if key == "patternProperties":
            value = {name: inner for name, inner in value.items() if _read_pattern(name) is not None}
        inside = key == "properties"
        return {
            name: self._schema(inner, ".".join(filter(None, (path, name))) if inside else path, depth + 1)
            for name, inner in value.items()
        }

    def _put_older(self, rule: dict[str, Any], key: str, value: Any, path: str, depth: int) -> None:
        """A keyword of an older draft, by its name today."""
        self._notes.add(f"{key}, of another draft, was translated", path)
        match key:
            case "divisibleBy":
                self._keyword(rule, "multipleOf", value, path, depth)
            case "extends":
                self._put_list(rule, "allOf", value, path, depth)
            case "disallow":
                rule["not"] = self._type(value, path, depth)
            case "$recursiveRef" | "$dynamicRef":
                self._put_reference(rule, "#" if key == "$recursiveRef" else value, path)
            case "dependencies" if isinstance(value, dict):
                names = {name: item for name, item in value.items() if isinstance(item, list)}
                rules = {
                    name: self._schema(item, path, depth + 1) for name, item in value.items() if isinstance(item, dict)
                }
                rule |= {"dependentRequired": names} if names else {}
                rule |= {"dependentSchemas": rules} if rules else {}

    def _put_reference(self, rule: dict[str, Any], value: Any, path: str) -> None:
        if self._follow(value) is not None:
            rule["$ref"] = value
        else:
            self._notes.add(f"it refers to {_quote(value)}, which is not there, and takes any value", path)

    def _take_required(self, rule: dict[str, Any], node: Mapping[str, Any], path: str) -> None:
        """The names of required fields: those of a list, and those that say `required: true` themselves (draft 3)."""
        listed = node.get("required")
        names = [listed] if isinstance(listed, str) and listed in (rule.get("properties") or {}) else listed
        required = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
        inner = node.get("properties")
        named = [(item["name"], item) for item in inner] if isinstance(inner, list) and _are_fields(inner) else ()
        fields = inner.items() if isinstance(inner, dict) else named
        marked = [name for name, field_ in fields if isinstance(field_, dict) and _is_true(field_.get("required"))]
        if marked:
            self._notes.add("required, written at the field, was read as a list of names", path)
        if required or marked:
            rule["required"] = list(dict.fromkeys((*required, *marked)))


def _finish(rule: dict[str, Any], node: Mapping[str, Any]) -> dict[str, Any]:
    """The exclusive bounds of draft 4, null where OpenAPI 3.0 says `nullable`, and no reference beside a type that it
    contradicts."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if node.get(exclusive) is True and bound in rule:
            rule[exclusive] = rule.pop(bound)
    if _is_true(node.get("nullable")) and isinstance(rule.get("type"), str) and rule["type"] != "null":
        rule["type"] = [rule["type"], "null"]
        if "enum" in rule and None not in rule["enum"]:
            rule["enum"] = [*rule["enum"], None]
    return rule


def _are_fields(items: list[Any]) -> bool:
    return all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in items) and bool(items)


def _without_name(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != "name"}


def _is_true(value: object) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


def _quote(value: object) -> str:
    return shorten(json.dumps(value, ensure_ascii=False), 60)


def _read_text(value: Any) -> str | None:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    return str(value) if isinstance(value, str | int | float) else None


def _read_number(value: Any) -> int | float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?", value.strip()):
        value = float(value) if "." in value else int(value)
    return value if isinstance(value, int | float) else None


def _read_factor(value: Any) -> int | float | None:
    number = _read_number(value)
    return number if number is not None and number > 0 else None


def _read_count(value: Any) -> int | None:
    number = _read_number(value)
    return int(number) if number is not None and number >= 0 and number == int(number) else None


def _read_flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else _SWITCHES.get(str(value).lower())


def _read_choices(value: Any) -> list[Any] | None:
    if isinstance(value, dict | bool) or value == []:
        return None
    listed = isinstance(value, str) and re.search(r"[,|]", value)  # in words, which say no single value
    return value if isinstance(value, list) else None if listed else [value]


def _read_pattern(value: Any) -> str | None:
    usable = isinstance(value, str) and not schema_problem({"type": "object", "patternProperties": {value: {}}})
    return value if usable else None


def _read_examples(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


_READERS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_TEXTS, _read_text),
    **dict.fromkeys(_COUNTS, _read_count),
    **dict.fromkeys(_NUMBERS, _read_number),
    **dict.fromkeys(_FLAGS, _read_flag),
    "multipleOf": _read_factor,
    "enum": _read_choices,
    "pattern": _read_pattern,
    "examples": _read_examples,
}
_OLDER = frozenset(("divisibleBy", "extends", "disallow", "dependencies", "$recursiveRef", "$dynamicRef"))
_KEYWORDS = frozenset((*_READERS, *_SCHEMAS, *_LISTS, *_MAPS, *_OLDER, "$ref", "required", "$schema"))
