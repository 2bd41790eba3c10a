"""An OpenAPI document: its operations, by the importer of documents."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pool_registry.errors import InvalidPool
from pool_registry.pasted.base import ImportSettings, PastedText, Recognition
from pool_registry.secrets import REFERENCE

_YAML = re.compile(r"^['\"]?(?:openapi|swagger)['\"]?:[ \t]*['\"]?\d", re.MULTILINE)


def is_openapi(pasted: PastedText) -> bool:
    """Swagger 2 is recognised, too: the importer says what to do with it."""
    if isinstance(pasted.document, Mapping):
        return isinstance(pasted.document.get("openapi", pasted.document.get("swagger")), str)
    return bool(_YAML.search(pasted.text[:20_000])) or bool(re.match(r'\{\s*"(?:openapi|swagger)"', pasted.text))


def read_openapi(pasted: PastedText, settings: ImportSettings) -> Recognition:
    """Raises InvalidPool saying what to correct."""
    from pool_registry.imports.openapi.operations import list_operations

    key, header = read_key_header(settings)
    offers = list_operations(
        pasted.text,
        base_url=settings.server,
        api_key=key,
        key_header=header,
        source=settings.source,
        allow_private=settings.private,
    )
    return Recognition(tuple(offers))


def read_key_header(settings: ImportSettings) -> tuple[str, str]:
    """The reference to the key, and the header that it goes into where a person names one. Raises InvalidPool."""
    if not settings.headers:
        return settings.key, ""
    if len(settings.headers) > 1:
        raise InvalidPool([("headers", "an operation takes one header of yours: the one that holds the key")])
    [(name, value)] = settings.headers.items()
    reference = value.removeprefix("Bearer ").strip()
    if name.lower() == "authorization" and value.startswith("Bearer ") and REFERENCE.match(reference):
        return reference, ""
    if not REFERENCE.match(value):
        raise InvalidPool([("headers", f"write {name}: env:NAME; the header holds the reference to the key")])
    return value, name
