"""How an argument is written into a request: the styles of OpenAPI 3, which for paths and lists are those of RFC 6570.

Separators are written as they are and encoded within values, so that a server can tell them apart. What a style has no
rule for (a list within a list, a space within a list that spaces divide) raises BadCall: it is never sent otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import quote, quote_plus

from pool_registry.actions import as_text
from pool_registry.errors import BadCall
from pool_registry.strict_model import StrictModel

Style = Literal["simple", "label", "matrix", "form", "space", "pipe", "deep", "json", "field", "file"]
SEPARATORS = {"space": "%20", "pipe": "%7C"}
# Of the reserved characters those that mean nothing in a query: & + = # [ ] stay encoded.
_RESERVED = ":/?@!$'()*,;"


class ArgumentStyle(StrictModel):
    """How one value is written. `wire` is its name in the request; `style` is OpenAPI's, `json` a JSON text, `field`
    what a field of a form is where the document says nothing: objects as JSON, lists as repeated fields; `file` the
    bytes of a file that the value names. `media_type` is that of a part of a form, or those that its file may have."""

    wire: str
    style: Style = "simple"
    explode: bool = False
    allow_reserved: bool = False
    media_type: str = ""


def write_path(value: Any, place: ArgumentStyle) -> str:
    """Write an argument of a path, with the `.` or `;` that its style has before it. Raises BadCall."""
    if _is_empty(value) or value == "":
        raise BadCall(f"{place.wire}: an argument of the path must not be empty")
    if place.style == "json":
        return quote(json.dumps(value), safe="")
    if place.style == "label":
        return "." + _join(value, place, "." if place.explode else ",")
    if place.style != "matrix":
        return _join(value, place, ",")
    name = quote(place.wire, safe="")
    if not place.explode or not isinstance(value, list | dict):
        return f";{name}={_join(value, place, ',')}"
    pairs = [(name, item) for item in value] if isinstance(value, list) else [(_encode(k), v) for k, v in value.items()]
    return "".join(f";{key}={_encode(_plain(item, place))}" for key, item in pairs)


def write_query(value: Any, place: ArgumentStyle) -> list[str]:
    """Write an argument of a query as encoded name=value parts; none for null and for what is empty. Raises BadCall."""
    safe = _RESERVED if place.allow_reserved else ""
    if _is_empty(value) and place.style != "json":
        return []
    return [
        f"{_encode(name)}={written}" for name, written in _write_pairs(value, place, lambda text: quote(text, safe))
    ]


def write_cookie(value: Any, place: ArgumentStyle) -> list[str]:
    """Write an argument of a cookie as name=value parts. Raises BadCall."""
    if place.style == "form" and place.explode and isinstance(value, list | dict):
        raise BadCall(f"{place.wire}: a cookie takes no list or object; write a text or a number")
    return write_query(value, place)


def write_header(value: Any, place: ArgumentStyle) -> str:
    """Write an argument of a header, where nothing is encoded; "" for null and for what is empty. Raises BadCall."""
    if place.style == "json":
        return json.dumps(value)
    return "" if _is_empty(value) else _join(value, place, ",", encoded=False)


def write_field(value: Any, place: ArgumentStyle) -> list[str]:
    """Write a field of a form as encoded name=value parts. Raises BadCall."""
    safe = _RESERVED if place.allow_reserved else ""
    if value is None and place.style != "json":
        return [f"{quote_plus(place.wire)}="]  # which empties the field
    if _is_empty(value) and place.style not in ("json", "field"):
        return []
    pairs = _write_pairs(value, place, lambda text: quote_plus(text, safe))
    return [f"{quote_plus(name)}={written}" for name, written in pairs]


def write_texts(value: Any, place: ArgumentStyle) -> list[tuple[str, str]]:
    """Write a field of a multipart form as names and texts, where nothing is encoded. Raises BadCall."""
    return [] if _is_empty(value) and place.style != "json" else list(_write_pairs(value, place, str))


def _write_pairs(value: Any, place: ArgumentStyle, encode: Any) -> Iterator[tuple[str, str]]:
    """Yield each name, not encoded, with its value as `encode` writes it."""
    nested = isinstance(value, list | dict)
    if place.style == "json" or (place.style == "field" and isinstance(value, dict)):
        yield place.wire, encode(json.dumps(value))
    elif place.style == "field" and nested:
        yield from ((place.wire, encode(json.dumps(v) if isinstance(v, list | dict) else _plain(v))) for v in value)
    elif place.style == "deep" and nested:
        yield from ((name, encode(_plain(item))) for name, item in _flatten(value, place.wire))
    elif nested and place.explode:
        pairs = value.items() if isinstance(value, dict) else ((place.wire, item) for item in value)
        yield from ((name, encode(_plain(item, place))) for name, item in pairs)
    elif nested:
        yield place.wire, _join_with(value, place, SEPARATORS.get(place.style, ","), encode)
    else:
        yield place.wire, encode(_plain(value))


def _flatten(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield name[key][0] for each value within objects and lists, as qs and Stripe read them."""
    if not isinstance(value, list | dict):
        yield name, value
        return
    if not value:
        raise BadCall(f"{name}: an empty list or object within an object cannot be sent; leave it out")
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if "[" in str(key) or "]" in str(key):
            raise BadCall(
                f"{name}: the name {str(key)[:60]!r} holds a bracket, which divides the names of this argument"
            )
        yield from _flatten(item, f"{name}[{key}]")


def _join(value: Any, place: ArgumentStyle, between: str, encoded: bool = True) -> str:
    """Join a list or an object; anything else as it is."""
    if not isinstance(value, list | dict):
        return _encode(_plain(value)) if encoded else _plain(value)
    return _join_with(value, place, between, _encode if encoded else str)


def _join_with(value: Any, place: ArgumentStyle, between: str, encode: Any) -> str:
    """Join parts with their separator. Raises BadCall where a part holds it and is not encoded, or holds more parts."""
    parts = value if isinstance(value, list) else [part for pair in value.items() for part in pair]
    texts = [encode(_plain(part, place)) for part in parts]
    dividers = {between, "+"} if between == "%20" else {between}
    pairs_up = isinstance(value, dict) and place.explode
    split = next((text for text in texts for divider in dividers if divider in text), None)
    split = next((name for name in texts[::2] if pairs_up and "=" in name), split)
    if split is not None:
        raise BadCall(f"{place.wire}: {split[:60]!r} holds the character that divides the parts of this argument")
    if pairs_up:
        return between.join(f"{name}={text}" for name, text in zip(texts[::2], texts[1::2], strict=True))
    return between.join(texts)


def _plain(value: Any, within: ArgumentStyle | None = None) -> str:
    """Write one value: true and not True, nothing for null. Raises BadCall for a list `within` another."""
    if within is not None and isinstance(value, list | dict):
        raise BadCall(f"{within.wire}: a list or an object within it cannot be sent; give texts and numbers")
    return "" if value is None else as_text(value)


def _encode(text: str) -> str:
    return quote(text, safe="")


def _is_empty(value: Any) -> bool:
    """Whether RFC 6570 leaves a value out."""
    return value is None or (isinstance(value, list | dict) and not value)
