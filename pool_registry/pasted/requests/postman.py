"""A collection of Postman (its formats 2.0 and 2.1): a worker for each request, read as a curl line that sends it.

Variables that the collection holds are put in. One that it does not is an argument of the worker, a reference where a
key is meant, or, at the beginning of an address, the server that a person names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode, urlsplit

from pool_registry.errors import InvalidPool
from pool_registry.imports import FreeNames, Offer
from pool_registry.pasted.base import ImportSettings, PastedText, Recognition, UnfitText, check_address, refuse
from pool_registry.pasted.requests.curl import FORM, make_worker
from pool_registry.pasted.requests.curl_words import REFUSED, CurlRequest

MAX_REQUESTS = 1000
MAX_FOLDERS = 20  # within each other
MAX_VARIABLES = 8  # within the value of another one
MAX_CHARS = 100_000  # of an address, and of a text with its variables put in
MAX_VALUE_CHARS = 2000  # of a variable
MAX_FILLED = 200  # variables in one text
_VARIABLE = re.compile(r"\{\{([^{}\n]{1,100})\}\}")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a request stands: the variables and the way to sign in that it gets from its folders."""

    variables: Mapping[str, str]
    auth: Any = None


def is_collection(pasted: PastedText) -> bool:
    """Whether a text is a collection."""
    return bool(_find_collection(pasted.document))


def read_collection(pasted: PastedText, settings: ImportSettings) -> Recognition:
    """A worker for each request; one that cannot be sent is offered with the reason. Raises InvalidPool."""
    collection = _find_collection(pasted.document)
    place = _enter(_Place({}), collection)
    requests = list(_list_requests(collection.get("item"), place, MAX_FOLDERS))
    if not requests:
        raise InvalidPool([("text", "this collection of Postman holds no request")])
    if len(requests) > MAX_REQUESTS:
        raise InvalidPool([("text", f"it holds more than {MAX_REQUESTS:,} requests; export some of its folders")])
    names = FreeNames()
    return Recognition(tuple(_make_offer(item, at, names, settings) for item, at in requests))


def _find_collection(document: Any) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        return {}
    inner = document.get("collection")
    collection = inner if isinstance(inner, Mapping) else document
    info = collection.get("info")
    is_one = isinstance(info, Mapping) and ("getpostman.com" in str(info.get("schema")) or "_postman_id" in info)
    return collection if is_one and isinstance(collection.get("item"), list) else {}


def _enter(place: _Place, folder: Mapping[str, Any]) -> _Place:
    """The place within a folder, whose own variables and way to sign in come first."""
    entries = [entry for entry in _list(folder.get("variable")) if not entry.get("disabled")]
    values = {_read_name(entry): str(entry["value"]) for entry in entries if entry.get("value")}
    own = {name: value for name, value in values.items() if name and len(value) <= MAX_VALUE_CHARS}
    return _Place({**place.variables, **own}, folder.get("auth") or place.auth)


def _read_name(entry: Mapping[str, Any]) -> str:
    return str(entry.get("key") or entry.get("id") or "")


def _list_requests(items: Any, place: _Place, depth: int) -> Iterator[tuple[Mapping[str, Any], _Place]]:
    for item in _list(items):
        if item.get("request"):
            yield item, place
        elif depth:
            yield from _list_requests(item.get("item"), _enter(place, item), depth - 1)


def _make_offer(item: Mapping[str, Any], place: _Place, names: FreeNames, settings: ImportSettings) -> Offer:
    title = str(item.get("name") or "request")[:200]
    entry = item["request"] if isinstance(item["request"], Mapping) else {"url": item["request"]}
    try:
        request = _read_request(entry, place, settings)
        settings = _sign_in(request, entry.get("auth") or place.auth, place, settings)
        purpose = f"{title.rstrip('.')}. {_read_text(entry.get('description') or item.get('description'))}".strip()
        return Offer(make_worker(request, settings, names, title, purpose))
    except UnfitText as reason:
        return refuse(names.choose(title), "http", str(reason))


def _read_request(entry: Mapping[str, Any], place: _Place, settings: ImportSettings) -> CurlRequest:
    """Raises UnfitText."""
    url, query = _read_url(entry.get("url"), place, settings)
    pairs = _list_pairs(entry.get("header"), place)
    request = CurlRequest(url=check_address(url), method=str(entry.get("method") or "GET").upper(), query=query)
    request.headers = {name: value for name, value in pairs if value.strip()}
    body = entry.get("body")
    if isinstance(body, Mapping) and not body.get("disabled") and request.method not in ("GET", "HEAD"):
        _read_body(request, body, place)
    return request


def _read_url(url: Any, place: _Place, settings: ImportSettings) -> tuple[str, list[str]]:
    """The address without its query, and the fields of that. Raises UnfitText."""
    raw = url.get("raw") if isinstance(url, Mapping) else url
    if not isinstance(raw, str) or not raw.strip() or len(raw) > MAX_CHARS:
        raise UnfitText("it has no address")
    address, _, texts = raw.strip().partition("?")
    query = [texts] if texts else []
    if isinstance(url, Mapping) and isinstance(url.get("query"), list):
        query = [urlencode({name: value}) for name, value in _list_pairs(url["query"], place)]
    else:
        query = [_fill(text, place) for text in query]
    return _reach(_fill(address, place), settings), query


def _reach(address: str, settings: ImportSettings) -> str:
    """The address at the server that a person names, or at its own. Raises UnfitText where it has none."""
    begin = _VARIABLE.match(address)
    if begin is None and "://" not in address:
        address = f"https://{address}"
    if settings.server:
        path = address[begin.end() :] if begin else urlsplit(check_address(address)).path
        return f"{settings.server.rstrip('/')}/{path.lstrip('/')}" if path else settings.server
    if begin is not None:
        raise UnfitText(f"its address begins with {begin[0][:60]}, which the collection does not hold; name the server")
    return address


def _fill(text: str, place: _Place) -> str:
    """The text with the variables of its place; the names of others as arguments are called."""
    for _ in range(MAX_VARIABLES):
        filled = _VARIABLE.sub(lambda match: place.variables.get(match[1].strip(), match[0]), text, MAX_FILLED)
        if filled == text or len(filled) > MAX_CHARS:
            break
        text = filled
    return _VARIABLE.sub(lambda match: f"{{{{{_write_argument(match[1])}}}}}", text)


def _write_argument(name: str) -> str:
    plain = re.sub(r"\W+", "_", name.strip().lstrip("$"), flags=re.ASCII).strip("_") or "value"
    return plain if plain[0].isalpha() else f"_{plain}"


def _list_pairs(entries: Any, place: _Place) -> list[tuple[str, str]]:
    """Names and values of what is not switched off."""
    listed = [entry for entry in _list(entries) if not entry.get("disabled") and entry.get("key")]
    return [(str(entry["key"]), _fill(_read_text(entry.get("value")), place)) for entry in listed]


def _read_body(request: CurlRequest, body: Mapping[str, Any], place: _Place) -> None:
    """Raises UnfitText."""
    mode = str(body.get("mode") or "")
    read = BODIES.get(mode)
    if read is None:
        raise UnfitText(REFUSED["--form"] if mode == "formdata" else f"its body is of the kind {mode[:20]}")
    read(request, body, place)


def _read_raw(request: CurlRequest, body: Mapping[str, Any], place: _Place) -> None:
    text = _fill(_read_text(body.get("raw")), place)
    options = body.get("options")
    raw = options.get("raw") if isinstance(options, Mapping) else None
    is_json = isinstance(raw, Mapping) and raw.get("language") == "json"
    if text.strip():
        request.add_type("application/json" if is_json else "text/plain")
        request.data = [("--data-raw", text)]


def _read_form(request: CurlRequest, body: Mapping[str, Any], place: _Place) -> None:
    request.headers["Content-Type"] = FORM
    request.data = [
        ("--data-urlencode", f"{name}={value}") for name, value in _list_pairs(body.get("urlencoded"), place)
    ]


def _read_graphql(request: CurlRequest, body: Mapping[str, Any], place: _Place) -> None:
    graphql = body.get("graphql")
    parts = graphql if isinstance(graphql, Mapping) else {}
    try:
        variables = json.loads(_fill(_read_text(parts.get("variables")), place) or "{}")
    except (ValueError, RecursionError) as error:
        raise UnfitText("the variables of its GraphQL query are no JSON") from error
    document = {"query": _fill(_read_text(parts.get("query")), place), "variables": variables}
    request.add_type("application/json")
    request.data = [("--data-raw", json.dumps(document))]


BODIES: Mapping[str, Callable[[CurlRequest, Mapping[str, Any], _Place], None]] = {
    "raw": _read_raw,
    "urlencoded": _read_form,
    "graphql": _read_graphql,
}


def _sign_in(request: CurlRequest, auth: Any, place: _Place, settings: ImportSettings) -> ImportSettings:
    """Put the way to sign in into a request; the settings without what has gone into it. Raises UnfitText."""
    kind = str(auth.get("type") or "noauth") if isinstance(auth, Mapping) else "noauth"
    fields = dict(_list_pairs(auth.get(kind), place)) if kind != "noauth" else {}
    if kind == "apikey":
        name, value = fields.get("key") or "X-API-Key", settings.key or fields.get("value") or "{{api_key}}"
        if fields.get("in") == "query":
            request.query.append(urlencode({name: value}))
        else:
            request.headers[name] = value
        return replace(settings, key="")
    if kind == "bearer" and not settings.key:
        request.headers["Authorization"] = f"Bearer {fields.get('token') or '{{token}}'}"
    elif kind == "basic" and not settings.key:
        user = f"{fields.get('username', '')}:{fields.get('password', '')}"
        if _VARIABLE.search(user) or user == ":":
            request.headers["Authorization"] = "Basic {{basic_auth}}"
        else:
            request.user = user
    elif kind not in ("noauth", "bearer", "basic") and not settings.key and not settings.headers:
        raise UnfitText(f"it signs in by {kind[:20]}; give a token that you have as the key")
    return settings


def _read_text(value: Any) -> str:
    if isinstance(value, Mapping):  # a description with its type
        value = value.get("content")
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _list(entries: Any) -> list[Mapping[str, Any]]:
    if isinstance(entries, Mapping):  # format 2.0 writes auth as an object
        return [{"key": key, "value": value} for key, value in entries.items()]
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
