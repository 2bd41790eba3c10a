"""Where an OpenAPI operation is called, and where the key goes: its `servers` and its `security`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from pydantic import ValidationError

from pool_registry.imports.openapi.document import Document, UnfitOperation
from pool_registry.network import http_client
from pool_registry.network.address_policy import AddressPolicy, literal_address
from pool_registry.network.http_values import OWN_HEADERS, TOKEN
from pool_registry.validation_words import field_problems

SIGNED = "awssigv4"  # of x-amazon-apigateway-authtype: no key can be sent as it is


@dataclass(frozen=True, slots=True)
class Given:
    """The settings of a person for the whole document; `source` is the URL that it came from."""

    base_url: str
    api_key: str
    key_header: str
    source: str
    allow_private: bool


def server_of(document: Document, given: Given, places: Sequence[Mapping[str, Any]]) -> str:
    """The server's URL: the person's, or the first one named in `places` (the operation, its path) or the document,
    its variables at their defaults. Raises UnfitOperation."""
    from openapi_pydantic.v3.v3_1 import Server

    if given.base_url:
        return given.base_url
    listed = next((holder["servers"] for holder in (*places, document.root) if holder.get("servers")), None)
    first = listed[0] if isinstance(listed, list) else {"url": "/"}
    try:
        server = Server.model_validate(first)
    except ValidationError as error:
        raise UnfitOperation(f"its server: {first_problem(error)}") from error
    url = server.url
    for name, variable in (server.variables or {}).items():
        url = url.replace(f"{{{name}}}", variable.default)
    if "{" in url:
        raise UnfitOperation(f"its server {url[:120]!r} has a variable without a value; give the base URL")
    try:
        url = urljoin(given.source, url) if given.source else f"https:{url}" if url.startswith("//") else url
        policy = AddressPolicy(private=given.allow_private, typed=True)
        http_client.check_url(url, policy)
    except ValueError as error:
        raise UnfitOperation(f"its server {url[:120]!r} cannot be used ({error}); give the base URL") from error
    if given.source and _names_this_machine(url) and not _names_this_machine(given.source):
        raise UnfitOperation(f"a document from elsewhere names {urlsplit(url).netloc} as its server; give the base URL")
    return url.rstrip("/")


def security_of(document: Document, given: Given, rule: Sequence[Any] | None) -> dict[str, Any]:
    """`auth` and `api_key` of the configuration. Raises UnfitOperation when a key is missing or cannot be sent."""
    if given.key_header and given.api_key:
        return {"api_key": given.api_key, "auth": {"kind": "header", "name": given.key_header}}
    ways = rule if rule is not None else document.root.get("security") or []
    if not isinstance(ways, list):
        raise UnfitOperation("its `security` is no list")
    if not ways or (not given.api_key and {} in ways):
        return {"api_key": given.api_key} if given.api_key else {}
    reasons = []
    for way in ways:
        try:
            auth = _auth(document, way)
        except UnfitOperation as reason:
            reasons.append(str(reason))
            continue
        if not given.api_key:
            raise UnfitOperation("it needs a key; give a reference to it, such as env:NAME")
        return {"api_key": given.api_key, "auth": auth}
    raise UnfitOperation(reasons[0] if reasons else "its security cannot be read")


def _auth(document: Document, way: Any) -> dict[str, str]:
    """Return where one security scheme wants the key. Raises UnfitOperation."""
    from openapi_pydantic.v3.v3_1 import SecurityScheme

    if not isinstance(way, dict) or len(way) != 1:
        raise UnfitOperation("it needs more than one key in a request, which is not supported")
    name = next(iter(way))
    components = document.root.get("components")
    schemes = components.get("securitySchemes") if isinstance(components, dict) else None
    if not isinstance(schemes, dict) or name not in schemes:
        raise UnfitOperation(f"its security scheme {name[:60]!r} is not described")
    raw = document.follow(schemes[name])
    if str(raw.get("x-amazon-apigateway-authtype")).casefold() == SIGNED:
        raise UnfitOperation(
            f"its security scheme {name[:60]!r} wants every request signed (AWS), which is not supported"
        )
    try:
        scheme = SecurityScheme.model_validate({key: value for key, value in raw.items() if key != "flows"})
    except ValidationError as error:
        raise UnfitOperation(f"its security scheme {name[:60]!r}: {first_problem(error)}") from error
    if scheme.type in ("oauth2", "openIdConnect"):
        return {"kind": "bearer"}  # the person brings a token
    if scheme.type == "http" and (scheme.scheme or "").lower() in ("bearer", "basic"):
        return {"kind": str(scheme.scheme).lower()}
    where = str(scheme.security_scheme_in)
    if scheme.type == "apiKey" and where in ("header", "query", "cookie") and scheme.name:
        if where != "query" and (not TOKEN.fullmatch(scheme.name) or scheme.name.lower() in OWN_HEADERS):
            raise UnfitOperation(f"its key belongs in {scheme.name[:60]!r}, which is no name for a {where}")
        return {"kind": where, "name": scheme.name}
    raise UnfitOperation(f"its security scheme {name[:60]!r} ({scheme.type}) is not supported")


def _names_this_machine(url: str) -> bool:
    host = (urlsplit(url).hostname or "").rstrip(".")
    address = literal_address(host)
    return host == "localhost" or host.endswith(".localhost") or (address is not None and address.is_loopback)


def first_problem(error: ValidationError) -> str:
    """Return what is wrong with the first field."""
    return ": ".join(filter(None, field_problems(error)[0]))[:300]
