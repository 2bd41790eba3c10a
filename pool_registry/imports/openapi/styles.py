"""How a document wants its arguments written. What no rule of OpenAPI says how to write is refused with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pool_registry.imports.openapi.document import UnfitOperation
from pool_registry.imports.openapi.files import ask_for_file, holds_file, is_text
from pool_registry.imports.openapi.merge import NOTES
from pool_registry.network.argument_styles import ArgumentStyle, Style

_STYLES: dict[str, Style] = {
    "simple": "simple",
    "label": "label",
    "matrix": "matrix",
    "form": "form",
    "spaceDelimited": "space",
    "pipeDelimited": "pipe",
    "deepObject": "deep",
}
_STYLE_WORDS = ("style", "explode", "allowReserved")
_OF_QUERY = ("form", "spaceDelimited", "pipeDelimited", "deepObject")
_OF_PLACE = {"path": ("simple", "label", "matrix"), "query": _OF_QUERY, "header": ("simple",), "cookie": ("form",)}


def read_parameter_style(wire: str, at: str, raw: Mapping[str, Any], schema: Any) -> ArgumentStyle:
    """How a parameter is written that is described by `style`. Raises UnfitOperation."""
    try:
        style = _read_style(wire, raw, _OF_PLACE[at])
        _check_writable(style, at, schema)
    except UnfitOperation as reason:
        raise UnfitOperation(f"parameter {wire[:60]}: cannot be sent: {reason}") from reason
    return style


def read_content_style(wire: str, content: Mapping[str, Any]) -> ArgumentStyle:
    """How a parameter is written that is described by `content`. Raises UnfitOperation unless that is JSON."""
    media_type = next(iter(content))
    if not is_json(media_type):
        reason = f"its content is {media_type[:60]}; only application/json can be written"
        raise UnfitOperation(f"parameter {wire[:60]}: cannot be sent: {reason}")
    return ArgumentStyle(wire=wire, style="json")


def read_field_styles(encoding: Any, properties: Mapping[str, Any]) -> dict[str, ArgumentStyle]:
    """How the fields of a form are written, by name: those that it knows or says something about."""
    if encoding is not None and not isinstance(encoding, Mapping):
        raise UnfitOperation("the `encoding` of its body is no object")
    names = dict.fromkeys([*properties, *(encoding or {})])
    return {name: _read_field(name, (encoding or {}).get(name), properties.get(name, {})) for name in names}


def read_part_styles(encoding: Any, properties: Mapping[str, Any], reads_style: bool) -> dict[str, ArgumentStyle]:
    """How the fields of a multipart form are written, by name. OpenAPI 3.0 does not read the `style` of a part."""
    if encoding is not None and not isinstance(encoding, Mapping):
        raise UnfitOperation("the `encoding` of its body is no object")
    return {name: _read_part(name, (encoding or {}).get(name), rule, reads_style) for name, rule in properties.items()}


def is_json(media_type: str) -> bool:
    plain = media_type.partition(";")[0].strip().lower()
    return plain == "application/json" or plain.endswith("+json")


def _read_field(name: str, encoding: Any, schema: Any) -> ArgumentStyle:
    raw = encoding if isinstance(encoding, Mapping) else {}
    try:
        if any(word in raw for word in _STYLE_WORDS):  # then `contentType` says nothing
            style = _read_style(name, raw, _OF_QUERY)
            _check_writable(style, "form", schema)
            return style
        return ArgumentStyle(wire=name, style=_read_content_type(raw.get("contentType"), schema))
    except UnfitOperation as reason:
        raise UnfitOperation(f"field {name[:60]} of its form: cannot be sent: {reason}") from reason


def _read_part(name: str, encoding: Any, schema: Any, reads_style: bool) -> ArgumentStyle:
    raw = encoding if isinstance(encoding, Mapping) else {}
    try:
        if any(isinstance(rule, Mapping) and rule.get("required") is True for rule in _headers(raw)):
            raise UnfitOperation("its part needs headers of its own, which a call cannot name")
        if reads_style and any(word in raw for word in _STYLE_WORDS):
            style = _read_style(name, raw, ("form", "deepObject"))
            _check_writable(style, "multipart", schema)
            return style
        return _read_part_type(name, str(raw.get("contentType") or ""), schema, reads_style)
    except UnfitOperation as reason:
        raise UnfitOperation(f"field {name[:60]} of its form: cannot be sent: {reason}") from reason


def _read_part_type(name: str, content_type: str, schema: Any, is_31: bool) -> ArgumentStyle:
    has_no_type = is_31 and not content_type and isinstance(schema, Mapping) and not schema.keys() - NOTES
    kinds = (
        "application/octet-stream" if has_no_type else content_type
    )  # as OpenAPI 3.1 has it for a part without a type
    if not (kinds.isascii() and kinds.isprintable()):
        raise UnfitOperation(f"its content type {kinds[:60]!r} is none")
    if ask_for_file(schema, kinds) is not None:
        return ArgumentStyle(wire=name, style="file", media_type=kinds or _name_content(schema))
    if holds_file(schema):
        raise UnfitOperation("a file within an object or a nested list has no way to be written")
    if not content_type:
        return ArgumentStyle(wire=name, style="field")
    if _is_type(schema, "string") and not any(map(is_text, content_type.split(","))):
        return ArgumentStyle(wire=name, style="field", media_type=content_type.partition(",")[0].strip())
    style = _read_content_type(content_type, schema)
    fits = is_json if style == "json" else is_text
    kind = next(part.strip() for part in content_type.split(",") if fits(part.strip()))
    return ArgumentStyle(wire=name, style=style, media_type=kind)


def _name_content(schema: Any) -> str:
    """The type of content that a file, or each file of a list, has by its own schema."""
    items = schema.get("items") if isinstance(schema.get("items"), Mapping) else {}
    return str(schema.get("contentMediaType") or items.get("contentMediaType") or "")


def _headers(encoding: Mapping[str, Any]) -> list[Any]:
    headers = encoding.get("headers")
    return list(headers.values()) if isinstance(headers, Mapping) else []


def _read_content_type(content_type: Any, schema: Any) -> Style:
    if content_type is None:
        return "field"
    types = [part.strip() for part in str(content_type).split(",")]
    if any(map(is_json, types)):
        return "json"
    if any(map(is_text, types)) and not _is_type(schema, "object"):
        return "field"
    raise UnfitOperation(f"its content type is {str(content_type)[:60]}; only JSON and plain text can be written")


def _read_style(wire: str, raw: Mapping[str, Any], allowed: tuple[str, ...]) -> ArgumentStyle:
    name = str(raw.get("style", allowed[0]))
    if name not in _STYLES:
        raise UnfitOperation(f"the style {name[:40]!r} is not supported")
    if name not in allowed:
        raise UnfitOperation(f"the style {name!r} has no meaning there; use {' or '.join(allowed)}")
    style = _STYLES[name]
    explode = raw["explode"] if isinstance(raw.get("explode"), bool) else style == "form"
    return ArgumentStyle(wire=wire, style=style, explode=explode, allow_reserved=raw.get("allowReserved") is True)


def _check_writable(style: ArgumentStyle, place: str, schema: Any) -> None:
    """Raise UnfitOperation for what the style has no rule for. What the schema leaves open is refused at the call."""
    is_list, is_object = _is_type(schema, "array"), _is_type(schema, "object")
    if place == "cookie" and style.explode and (is_list or is_object):
        raise UnfitOperation("a cookie has no rule for a list or an object that explodes; `explode: false` has one")
    if style.style in ("space", "pipe") and style.explode and is_object:
        raise UnfitOperation("lists alone can be divided by spaces and pipes where `explode` is true")
    inner = [schema.get("items")] if is_list else list((schema.get("properties") or {}).values()) if is_object else []
    nested = any(_is_type(part, kind) for part in inner for kind in ("array", "object"))
    if nested and style.style != "deep":
        raise UnfitOperation("its style has no rule for lists and objects within it; deepObject, or JSON, has one")


def _is_type(schema: Any, kind: str) -> bool:
    """Whether a schema says that a value is of this kind, null aside."""
    types = schema.get("type") if isinstance(schema, Mapping) else None
    return [item for item in (types if isinstance(types, list) else [types]) if item != "null"] == [kind]
