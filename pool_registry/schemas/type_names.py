"""The types of arguments by the names that people, languages and training data give them, as JSON Schema's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

JSON_TYPES = frozenset(("string", "number", "integer", "boolean", "array", "object", "null"))
_NAMES = {
    "string": "str text char character varchar symbol date datetime date-time time timestamp duration uuid guid uri "
    "url email path file filepath bytes byte[] binary base64 regex enum literal",
    "number": "float double decimal numeric real float32 float64 bigdecimal",
    "integer": "int long short byte bigint biginteger int8 int16 int32 int64 uint uint8 uint32 uint64",
    "boolean": "bool",
    "array": "list tuple set frozenset sequence iterable collection vector arraylist",
    "object": "dict dictionary map mapping hash hashmap struct record json jsonobject",
    "null": "none nil nonetype void undefined",
}
_ANY = frozenset(("any", "anything", "mixed", "unknown", "variant", "dynamic", "*", "typing.any"))
_BY_NAME = {name: kind for kind, names in _NAMES.items() for name in names.split()} | {
    kind: kind for kind in JSON_TYPES
}
_PARTS_OF = re.compile(r"(?:typing\.)?([a-z]+)\s*[\[<(](.+)[\]>)]")
_LISTS = frozenset(("list", "array", "set", "sequence", "iterable", "tuple"))
_UNIONS = frozenset(("union", "optional"))
MAX_NAME_CHARS = 200


def read_type_name(name: str) -> dict[str, Any] | None:
    """What a type's name means as JSON Schema, in any case: `Int` is an integer, `list[str]`, `Optional[int]` and
    `str | None` are read as Python does, `string[]` as TypeScript does; {} is any value. None where it means nothing.
    """
    text = name.strip().lower()[:MAX_NAME_CHARS]
    if text in _BY_NAME:
        return {"type": _BY_NAME[text]}
    if text in _ANY:
        return {}
    return _read_compound(text)


def _read_compound(text: str) -> dict[str, Any] | None:
    if len(text) > MAX_NAME_CHARS:
        return None
    if text.endswith("?"):
        return _join([text[:-1], "null"])
    match = _PARTS_OF.fullmatch(text)
    if match is None:
        parts = _split(text, "|") if "|" in text else re.split(r"\s+or\s+|/", text)
        if len(parts) > 1:
            return _join(parts)
        return _list_of(text[:-2]) if text.endswith("[]") else None
    outer, inner = match[1], match[2]
    if outer in _UNIONS:
        return _join([*_split(inner, ","), *(["null"] if outer == "optional" else [])])
    if outer in _LISTS:
        return _list_of(inner) if len(_split(inner, ",")) == 1 else {"type": "array"}
    return {"type": _BY_NAME[outer]} if outer in _BY_NAME else None


def _list_of(inner: str) -> dict[str, Any] | None:
    items = read_type_name(inner)
    return None if items is None else {"type": "array", **({"items": items} if items else {})}


def _join(names: list[str]) -> dict[str, Any] | None:
    """One of several types."""
    choices = [read_type_name(name) for name in names]
    rules = [choice for choice in choices if choice is not None]
    if len(rules) != len(choices):
        return None
    return join_types(rules)


def join_types(rules: list[dict[str, Any]]) -> dict[str, Any]:
    """The schema of a value that fits one of these."""
    if not all(rules):
        return {}
    if all(rule.keys() == {"type"} and isinstance(rule["type"], str) for rule in rules):
        kinds = list(dict.fromkeys(rule["type"] for rule in rules))
        return {"type": kinds if len(kinds) > 1 else kinds[0]}
    return {"anyOf": rules}


def _split(text: str, sign: str) -> list[str]:
    """Split at a sign that stands in no brackets."""
    ends, depth = [-1], 0
    for place, char in enumerate(text):
        depth += (char in "[<(") - (char in "]>)")
        if char == sign and not depth:
            ends.append(place)
    ends.append(len(text))
    return [text[start + 1 : end].strip() for start, end in pairwise(ends)]


def describe_type(rule: Mapping[str, Any]) -> str:
    """A type in words: "number", "string or null", "any value"."""
    kind = rule.get("type")
    if isinstance(kind, str):
        return kind
    if isinstance(kind, list):
        return " or ".join(map(str, kind))
    return "one of several types" if "anyOf" in rule else "any value"
