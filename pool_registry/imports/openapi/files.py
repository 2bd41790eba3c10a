"""Where a body takes a file: the argument then names one in the worker's folder of files, and its bytes are sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pool_registry.imports.openapi.merge import NOTES

_NOTE = "The path of a file in this worker's folder of files."
# How the types of files begin that no caller can write as a text.
_PACKED = tuple(f"application/{name}" for name in ("octet-stream", "pdf", "zip", "gzip", "x-", "vnd.", "ms", "epub"))
_BINARY = ("image/", "audio/", "video/", "font/", *_PACKED)
_TEXT_TYPES = ("json", "xml", "yaml", "x-yaml", "graphql", "javascript", "x-ndjson", "jwt")  # of application/...


def ask_for_file(schema: Any, media_types: str = "") -> dict[str, Any] | None:
    """The schema of the argument that names a file, or a list of them; None where `schema` takes no file. `media_types`
    are those that the document has for it, joined by commas."""
    rule, may_be_null = _without_null(schema)
    choice = rule.get("anyOf", rule.get("oneOf"))
    options = [ask_for_file(option, media_types) for option in choice] if isinstance(choice, list) else []
    if options and None not in options:
        return {**{key: value for key, value in rule.items() if key in NOTES}, "anyOf": options}
    if _is_file(rule, media_types):
        about = f"{str(rule.get('description', '')).rstrip()} {_NOTE}".strip()
        file_type: Any = ["string", "null"] if may_be_null else "string"
        kept = {key: value for key, value in rule.items() if key in NOTES}
        return {**kept, "type": file_type, "minLength": 1, "description": about}
    if rule.get("type") != "array" or (items := ask_for_file(rule.get("items"), media_types)) is None:
        return None
    return {**rule, "items": items, **({"type": ["array", "null"]} if may_be_null else {})}


def holds_file(schema: Any) -> bool:
    """Whether a file is asked for anywhere in a schema."""
    if isinstance(schema, list):
        return any(map(holds_file, schema))
    if not isinstance(schema, Mapping):
        return False
    return schema.get("format") == "binary" or any(map(holds_file, schema.values()))


def is_text(media_type: str) -> bool:
    """Whether bodies of a media type are text that a caller can write."""
    main, _, sub = media_type.partition(";")[0].strip().lower().partition("/")
    return main == "text" or (main == "application" and sub.rpartition("+")[2] in _TEXT_TYPES)


def _is_file(rule: Mapping[str, Any], media_types: str) -> bool:
    if rule.get("type", "string") != "string" or rule.get("format") == "byte" or "contentEncoding" in rule:
        return False
    kinds = [kind for kind in (media_types or str(rule.get("contentMediaType") or "")).split(",") if kind.strip()]
    if rule.get("format") == "binary" or not kinds:
        return rule.get("format") == "binary"
    if "type" in rule:  # a string is a text, unless only a file can be of its type
        return any(kind.strip().lower().startswith(_BINARY) and not is_text(kind) for kind in kinds)
    return not any(map(is_text, kinds))


def _without_null(schema: Any) -> tuple[Mapping[str, Any], bool]:
    """A schema, and whether it may be null besides."""
    if not isinstance(schema, Mapping):
        return {}, False
    types, options = schema.get("type"), schema.get("anyOf")
    if isinstance(types, list) and len(types) == 2 and "null" in types:
        return {**schema, "type": next(item for item in types if item != "null")}, True
    rest = [option for option in options if option != {"type": "null"}] if isinstance(options, list) else []
    if len(rest) == 1 and isinstance(rest[0], Mapping) and isinstance(options, list) and len(options) == 2:
        return {**rest[0], **{key: value for key, value in schema.items() if key in NOTES}}, True
    return schema, False
