"""Reads values that data sets hold as text: JSON, or what Python prints for it."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator

from pool_registry.actions import JsonValue, storable

MAX_PRINTED_CHARS = 100_000  # of what Python prints: its parser takes far more memory than JSON's
_DECODER = json.JSONDecoder()


def load_loose(text: str) -> JsonValue:
    """The value that a text holds. Raises ValueError where it is neither JSON nor what Python prints for it."""
    try:
        return storable(json.loads(text))
    except (ValueError, RecursionError):
        pass
    if len(text) > MAX_PRINTED_CHARS:
        raise ValueError("this is no JSON")
    try:
        return storable(ast.literal_eval(text.strip()))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError("this is no JSON") from error


def load_objects(text: str) -> list[JsonValue]:
    """The items of a list, or values that stand one after another. Raises ValueError."""
    try:
        value = load_loose(text)
    except ValueError:
        return list(_split_values(text.strip()))
    return value if isinstance(value, list) else [value]


def load_output(text: str) -> JsonValue:
    """What a tool returned: the value where its text is an object, a list or a number, else the text."""
    stripped = text.strip()
    if stripped[:1] not in ("{", "[") and not stripped.lstrip("-")[:1].isdigit():
        return stripped or None
    try:
        value = storable(json.loads(stripped))
    except (ValueError, RecursionError):
        return stripped
    return value


def _split_values(text: str) -> Iterator[JsonValue]:
    place = 0
    while place < len(text):
        try:
            value, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise ValueError("this is no JSON") from error
        yield storable(value)
        place = end
        while place < len(text) and text[place] in " \t\r\n,":
            place += 1
