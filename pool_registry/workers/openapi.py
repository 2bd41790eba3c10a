"""Kind `openapi`: one operation of an HTTP API, as imports/openapi/ recorded it.

Arguments are checked against the recorded schema before they come here; this file puts each one where
the document says (path, query, header, cookie, body), in the style that it says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal
from urllib.parse import quote, urlencode

from pydantic import Field, model_validator

from pool_registry.actions import JsonValue, as_text
from pool_registry.errors import BadCall
from pool_registry.network.address_policy import ALLOW_PRIVATE
from pool_registry.network.http_values import (
    Auth,
    KeyReference,
    Method,
    ServerUrl,
    authorize,
    check_path,
    header_value,
    reachable,
)
from pool_registry.schemas.argument_schema import ArgumentsSchema
from pool_registry.strict_model import StrictModel
from pool_registry.workers._http_base import HttpApi, HttpApiConfig, PreparedRequest

Style = Literal["simple", "form", "space", "pipe", "deep", "json"]


class ArgumentPlace(StrictModel):
    """Where one argument goes. `wire` is its name in the request, which may differ from the argument's;
    `at: body` is one field of the body, `whole` the body itself. `style` is OpenAPI's, `json` a JSON text."""

    argument: str
    at: Literal["path", "query", "header", "cookie", "body", "whole"]
    wire: str
    style: Style = "simple"
    explode: bool = False


class OpenApiConfig(HttpApiConfig):
    base_url: ServerUrl = Field(description="The server, without the operation's path.")
    method: Method = Field(description="GET, POST ...")
    path: str = Field(description="The operation's path, with {names} in it.")
    api_key: KeyReference = Field(default="", description="env:NAME or keyring:NAME; the key itself is never stored.")
    auth: Auth = Field(default_factory=Auth, description="Where the key goes.")
    allow_private: bool = Field(default=False, description=ALLOW_PRIVATE)
    places: list[ArgumentPlace] = Field(default_factory=list, description="Where each argument goes.")
    body: Literal["", "json", "form", "text"] = Field(default="", description="How the body is written.")
    parameters: ArgumentsSchema

    @model_validator(mode="after")
    def _fits(self) -> OpenApiConfig:
        properties = self.parameters.get("properties") or {}
        lost = [place.argument for place in self.places if place.argument not in properties]
        if lost:
            raise ValueError(f"no argument of the schema is called {', '.join(lost)}")
        return self


class OpenApi(HttpApi[OpenApiConfig]):
    label = "OpenAPI operation"
    summary = "One operation of an HTTP API."
    icon = "M8 4c-3 0-3 3-3 5s-1 3-2 3c1 0 2 1 2 3s0 5 3 5 M16 4c3 0 3 3 3 5s1 3 2 3c-1 0-2 1-2 3s0 5-3 5"
    Config = OpenApiConfig

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return self.config.parameters

    def request(self, arguments: Mapping[str, Any]) -> PreparedRequest:
        url, headers, body = request(self.config, arguments)
        return *authorize(url, headers, self.config.auth, self.config.api_key), body

    async def check(self) -> str:
        authorize(self.config.base_url, {}, self.config.auth, self.config.api_key)
        return await reachable(self.config.base_url, self.config.policy)


def request(config: OpenApiConfig, arguments: Mapping[str, Any]) -> PreparedRequest:
    """Build URL, headers and body of a call, without the key. Raises BadCall when an argument cannot be written."""
    path, query, cookies, fields = config.path, list[tuple[str, str]](), list[str](), dict[str, Any]()
    headers = {"accept": "application/json, text/*;q=0.8, */*;q=0.5"}
    whole = None
    for place in config.places:
        if place.argument not in arguments:
            continue
        value = arguments[place.argument]
        if place.at == "path":
            written = _join_parts(value, place, _quote)
            if not written:
                raise BadCall(f"{place.argument}: an argument of the path must not be empty")
            path = path.replace(f"{{{place.wire}}}", written)
        elif place.at == "query":
            query.extend(_pairs(value, place))
        elif place.at == "header":
            headers[place.wire.lower()] = header_value(place.argument, _join_parts(value, place))
        elif place.at == "cookie":
            cookies.extend(f"{quote(name)}={quote(text)}" for name, text in _pairs(value, place))
        elif place.at == "body":
            fields[place.wire] = value
        else:
            whole = value
    if cookies:
        headers["cookie"] = "; ".join(cookies)
    url = f"{config.base_url}{check_path(path)}" + (f"?{urlencode(query, quote_via=quote)}" if query else "")
    return url, headers, _body(config, whole, fields, headers)


def _body(config: OpenApiConfig, whole: Any, fields: dict[str, Any], headers: dict[str, str]) -> bytes | None:
    given = whole if whole is not None else fields
    if not config.body or (whole is None and not fields and not any(place.at == "body" for place in config.places)):
        return None
    if config.body == "json":
        headers["content-type"] = "application/json"
        return json.dumps(given).encode()
    if config.body == "text":
        headers["content-type"] = "text/plain; charset=utf-8"
        return as_text(given).encode()
    headers["content-type"] = "application/x-www-form-urlencoded"
    if not isinstance(given, dict):
        raise BadCall("the body of this operation is a form: write an object")
    form = ArgumentPlace(argument="body", at="body", wire="", style="form", explode=True)
    return urlencode(
        [pair for name, value in given.items() for pair in _pairs(value, form.model_copy(update={"wire": name}))]
    ).encode()


def _plain(value: Any) -> str:
    """Write a value for a URL: true and not True, nothing for null."""
    return "" if value is None else as_text(value)


def _quote(value: Any) -> str:
    """Percent-encode a value as one part of a path, slashes included."""
    return quote(_plain(value), safe="")


def _pairs(value: Any, place: ArgumentPlace) -> Iterator[tuple[str, str]]:
    """Yield the name=value pairs of one argument in a query, a cookie or a form."""
    if place.style == "json" or value is None:
        yield place.wire, "" if value is None else json.dumps(value)
    elif isinstance(value, dict) and place.style == "deep":
        yield from ((f"{place.wire}[{name}]", _plain(item)) for name, item in value.items())
    elif isinstance(value, dict) and place.explode:
        yield from ((name, _plain(item)) for name, item in value.items())
    elif isinstance(value, list) and place.explode:
        yield from ((place.wire, _plain(item)) for item in value)
    else:
        yield place.wire, _join_parts(value, place)


def _join_parts(value: Any, place: ArgumentPlace, written: Callable[[Any], str] = _plain) -> str:
    """Join a list or object with the separator of its style, each part written by `written`."""
    if place.style == "json":
        return written(json.dumps(value))
    between = {"space": " ", "pipe": "|"}.get(place.style, ",")
    if isinstance(value, list):
        return between.join(map(written, value))
    if isinstance(value, dict):
        equals = "=" if place.explode else between
        return between.join(f"{written(name)}{equals}{written(item)}" for name, item in value.items())
    return written(value)
