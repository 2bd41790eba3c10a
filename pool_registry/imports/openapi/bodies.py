"""How the body of a request is written: the first of its media types that can be written as it is described.

JSON comes first, then forms, texts and files. What cannot be written is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pool_registry.imports.openapi.document import Document, UnfitOperation
from pool_registry.imports.openapi.files import ask_for_file, holds_file, is_text
from pool_registry.imports.openapi.schemas import Schemas
from pool_registry.imports.openapi.styles import is_json, read_field_styles, read_part_styles
from pool_registry.network.argument_styles import ArgumentStyle

Written = Literal["", "json", "form", "multipart", "text", "file"]
_SPREADABLE = {"type", "properties", "required", "title", "description", "additionalProperties"}


@dataclass(frozen=True, slots=True)
class Body:
    """`media_type` is the type that is sent, or those of a file that is, where `written` does not say it."""

    written: Written
    schema: Any
    media_type: str = ""
    styles: Mapping[str, ArgumentStyle] = field(default_factory=dict)

    @property
    def required(self) -> list[str]:
        names = self.schema.get("required") if isinstance(self.schema, dict) else None
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []

    @property
    def fields(self) -> dict[str, Any]:
        """The schemas of its fields, where they can be arguments of their own: a plain object with known fields."""
        schema = self.schema
        if self.written not in ("json", "form", "multipart") or not isinstance(schema, dict):
            return {}
        rules, is_closed = _rules(schema), schema.get("additionalProperties", False) is False
        if not schema.keys() <= _SPREADABLE or schema.get("type", "object") != "object" or not is_closed:
            return {}
        return {**rules, **{name: {} for name in self.required if name not in rules}} if rules else {}


def read_body(document: Document, schemas: Schemas, node: Mapping[str, Any]) -> Body:
    """Read how the body of a `requestBody` is written. Raises UnfitOperation where it cannot be."""
    content = node.get("content")
    media_types = content if isinstance(content, dict) else {}
    reasons, spare = list[UnfitOperation](), list[Body]()
    for kind in sorted(media_types, key=_rank):
        try:
            body = _read(document, schemas, kind, media_types[kind])
        except UnfitOperation as reason:
            reasons.append(reason)
            continue
        if body.written == "json" and holds_file(body.schema):
            spare.append(body)  # where nothing else is offered, the caller writes the file as a text
            continue
        return body
    if spare:
        return spare[0]
    raise reasons[0] if reasons else UnfitOperation("its body cannot be sent: it is nothing that the document names")


Reader: TypeAlias = Callable[[Document, str, Mapping[str, Any], Any], Body]


def _read(document: Document, schemas: Schemas, kind: str, node: Any) -> Body:
    media = document.follow(node)
    plain = _plain(kind)
    reader = next(reader for fits, reader in _READERS if fits(plain))
    if reader is not _read_json and not (kind.isascii() and kind.isprintable()):
        raise _unwritable(repr(kind), "that is no media type")
    return reader(document, kind.strip(), media, schemas.body(media.get("schema", {})))


def _read_json(_document: Document, kind: str, _media: Mapping[str, Any], schema: Any) -> Body:
    is_plain = _plain(kind) == "application/json" or not (kind.isascii() and kind.isprintable())
    return Body("json", schema, "" if is_plain else kind)


def _read_anything(document: Document, kind: str, media: Mapping[str, Any], schema: Any) -> Body:
    file = isinstance(schema, dict) and schema.get("format") == "binary"
    return _read_bytes(document, kind, media, schema) if file else Body("json", schema)


def _read_form(_document: Document, kind: str, media: Mapping[str, Any], schema: Any) -> Body:
    if holds_file(schema):
        raise _unwritable(kind, "a form of this type has no place for a file")
    return Body("form", schema, "", read_field_styles(media.get("encoding"), _rules(schema)))


def _read_multipart(document: Document, kind: str, media: Mapping[str, Any], schema: Any) -> Body:
    """Read a form of parts: files are named, fields are written as their `encoding` says."""
    rules = _rules(schema)
    if not rules or holds_file({key: value for key, value in schema.items() if key != "properties"}):
        raise _unwritable(kind, "only fields that its schema names can be written")
    styles = read_part_styles(media.get("encoding"), rules, reads_style=document.styles_parts)
    files = {name: ask_for_file(rules[name], styles[name].media_type) for name in rules if styles[name].style == "file"}
    return Body("multipart", {**schema, "properties": {**rules, **files}}, "", styles)


def _read_text(document: Document, kind: str, media: Mapping[str, Any], schema: Any) -> Body:
    if ask_for_file(schema) is not None:
        return _read_bytes(document, kind, media, schema)
    if _plain(kind) == "text/plain":
        return Body("text", schema)
    if not isinstance(schema, dict) or schema.get("type", "string") != "string":
        raise _unwritable(kind, "its fields can be written as JSON and as forms alone")
    return Body("text", {**schema, "type": "string"}, kind)


def _read_bytes(_document: Document, kind: str, _media: Mapping[str, Any], schema: Any) -> Body:
    if _plain(kind).startswith("multipart/"):
        raise _unwritable(kind, "of forms with parts multipart/form-data alone can be written")
    rule = ask_for_file({} if schema is True else schema, kind)
    if rule is None and isinstance(schema, dict) and schema.get("type") == "string":
        return Body("text", schema, kind)
    if rule is None or rule.get("type") == "array" or "anyOf" in rule:
        raise _unwritable(kind, "only a file can be sent so, and its schema describes none")
    return Body("file", rule, kind)


def _plain(kind: str) -> str:
    return kind.partition(";")[0].strip().lower()


_READERS: tuple[tuple[Callable[[str], bool], Reader], ...] = (
    (lambda kind: kind == "application/json", _read_json),
    (is_json, _read_json),
    (lambda kind: kind == "*/*", _read_anything),
    (lambda kind: kind == "application/x-www-form-urlencoded", _read_form),
    (lambda kind: kind == "multipart/form-data", _read_multipart),
    (is_text, _read_text),
    (lambda _kind: True, _read_bytes),
)


def _rank(kind: str) -> int:
    plain = _plain(kind)
    return next(place for place, (fits, _) in enumerate(_READERS) if fits(plain))


def _rules(schema: Any) -> dict[str, Any]:
    rules = schema.get("properties") if isinstance(schema, dict) else None
    return rules if isinstance(rules, dict) else {}


def _unwritable(kind: str, reason: str) -> UnfitOperation:
    return UnfitOperation(f"its body cannot be sent: it is {kind[:60]}; {reason}")
