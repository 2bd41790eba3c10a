"""Write a JSON value for a person: numbers rounded and with their unit, objects and lists in words or lines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from orchestrator.presentation.units import PLURALS, UNITS, split_unit, split_words
from pool_registry.actions import JsonValue, as_text

MAX_DECIMALS = 6  # a number with more of them was left by a computation
MIN_DECIMALS, MIN_FIGURES = 2, 4  # that stay of a number that is rounded
GROUPED_FROM = 7  # figures of a number without a unit: shorter ones may be a port, a postcode, an order's number
MAX_INLINE = 3  # fields of an object in one line; more have a line each
MAX_INLINE_ITEMS = 6  # of a list
MAX_ITEMS = 20
MAX_DEPTH = 4  # of objects and lists in words; deeper ones stay JSON
NOTHING = "nothing"
_UNIT_FIELDS = ("unit", "units", "currency")  # that say the unit of the one number beside them


def write_number(number: float, unit: str = "") -> str:
    """A number as a person reads it: "15,499,478", "≈ 22.05 pounds", "-3 °C". "≈" where it was rounded."""
    if isinstance(number, float) and not math.isfinite(number):
        return str(number)
    figures, is_rounded = _round(number)
    whole, point, decimals = figures.partition(".")
    if len(whole.lstrip("-")) >= (5 if unit or point else GROUPED_FROM) and whole.lstrip("-").isdigit():
        whole = f"{int(whole):,}" if len(whole) < 300 else whole
    name = unit.removesuffix("s") if number == 1 and unit in PLURALS else unit
    return f"{'≈ ' if is_rounded else ''}{whole}{point}{decimals}{f' {name}' if name else ''}"


def _round(number: float) -> tuple[str, bool]:
    """The figures of a number, and whether they stand for another one."""
    if isinstance(number, int):
        return str(number) if abs(number) < 10**300 else f"{number:#x}", False
    if not (number == 0 or 1e-6 <= abs(number) < 1e15):
        figures = f"{number:.{MIN_FIGURES}g}"
        return figures, float(figures) != number
    for decimals in (MAX_DECIMALS, max(MIN_DECIMALS, MIN_FIGURES - 1 - math.floor(math.log10(abs(number) or 1)))):
        figures = f"{number:.{decimals}f}".rstrip("0").rstrip(".")
        if math.isclose(float(figures), number, rel_tol=1e-12):
            return figures, False
    return figures, True


def write_scalar(value: JsonValue, unit: str = "") -> str:
    """A value that is no object and no list; yes and no come from a boolean alone."""
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, int | float):
        return write_number(value, unit)
    return NOTHING if value is None or value == "" else as_text(value)


def is_number(value: JsonValue) -> TypeGuard[int | float]:
    """Whether a value is a number; JSON's true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_scalar(value: JsonValue) -> bool:
    """Whether a value is neither an object nor a list."""
    return not isinstance(value, Mapping | list | tuple)


def write_fields(fields: Mapping[str, JsonValue], depth: int = MAX_DEPTH) -> list[str]:
    """The fields of an object, each in words: "distance: 5 km", "19.9 euros". A field `unit` or `currency` is that of
    the one number beside it."""
    numbers = [name for name, value in fields.items() if is_number(value)]
    beside = [name for name in fields if name.casefold() in _UNIT_FIELDS]
    text = fields[beside[0]] if len(numbers) == len(beside) == 1 else None
    unit = UNITS.get(text.casefold(), text) if isinstance(text, str) else ""
    return [write_field(name, value, unit, depth) for name, value in fields.items() if not (unit and name == beside[0])]


def write_field(name: str, value: JsonValue, beside: str = "", depth: int = MAX_DEPTH) -> str:
    """A field of an object in words; `beside` is the unit that a field beside it declares."""
    label, unit = split_unit(name)
    if not is_number(value):
        return f"{' '.join(split_words(name))}: {write_inline(value, depth - 1)}"
    text = write_number(value, beside or unit)
    return f"{label}: {text}" if label else text


def write_inline(value: JsonValue, depth: int = MAX_DEPTH) -> str:
    """Any value in one line; an object inside another stands in brackets."""
    if is_scalar(value) or depth <= 0:
        return write_scalar(value) if is_scalar(value) else as_text(value)
    if not value:
        return NOTHING
    if isinstance(value, Mapping):
        text = _join(write_fields(value, depth))
        return text if depth == MAX_DEPTH else f"({text})"
    assert isinstance(value, list | tuple), "a JSON value is an object, a list or a scalar"
    return _join([*(write_inline(item, depth - 1) for item in value[:MAX_ITEMS]), *_count_rest(value)])


def write_lines(value: JsonValue) -> list[str]:
    """Any value: in one line where it is short, else a line for each field or item."""
    if isinstance(value, Mapping) and (len(value) > MAX_INLINE or not all(map(is_scalar, value.values()))):
        return [f"- {line}" for line in write_fields(value, MAX_DEPTH + 1)]
    if isinstance(value, list | tuple) and (len(value) > MAX_INLINE_ITEMS or not all(map(is_scalar, value))):
        return [f"- {line}" for line in (*map(_write_item, value[:MAX_ITEMS]), *_count_rest(value))]
    return [write_inline(value)]


def _write_item(item: JsonValue) -> str:
    """An item of a list in one line; an object is headed by its first field where that is a text."""
    head, *rest = item.items() if isinstance(item, Mapping) and item else [("", None)]
    if rest and isinstance(head[1], str) and head[1].strip():
        return f"{head[1]}: {_join(write_fields(dict(rest)))}"
    return write_inline(item)


def _join(texts: Sequence[str]) -> str:
    return ("; " if any("," in text for text in texts) else ", ").join(texts)


def _count_rest(items: Sequence[JsonValue]) -> list[str]:
    return [f"and {len(items) - MAX_ITEMS} more"] if len(items) > MAX_ITEMS else []


def read_printed(value: JsonValue) -> JsonValue:
    """The object or list that a text holds as JSON, as tools of MCP return them; else the value itself."""
    if not isinstance(value, str) or value.strip()[:1] not in ("{", "["):
        return value
    try:
        parsed: JsonValue = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return parsed
