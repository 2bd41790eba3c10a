"""Kind `openapi`: one operation of an HTTP API, as imports/openapi/ recorded it.

Arguments are checked against the recorded schema before they come here; this file puts each one where
the document says (path, query, header, cookie, body), in the style that it says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field, model_validator

from pool_registry.actions import JsonValue, as_text
from pool_registry.errors import BadCall
from pool_registry.network.address_policy import ALLOW_PRIVATE
from pool_registry.network.argument_styles import (
    ArgumentStyle,
    write_cookie,
    write_field,
    write_header,
    write_path,
    write_query,
)
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
from pool_registry.schemas.argument_schema import ArgumentsSchema, SchemaNotes
from pool_registry.schemas.result_outline import ResultSchema
from pool_registry.worker import WorkerSpec
from pool_registry.workers._http_base import HttpApi, HttpApiConfig, PreparedRequest


class ArgumentPlace(ArgumentStyle):
    """Where one argument goes, and how it is written. `wire` is its name in the request, which may differ from the
    argument's; `at: body` is one field of the body, `whole` the body itself."""

    argument: str
    at: Literal["path", "query", "header", "cookie", "body", "whole"]


class OpenApiConfig(HttpApiConfig):
    base_url: ServerUrl = Field(description="The server, without the operation's path.")
    method: Method = Field(description="GET, POST ...")
    path: str = Field(description="The operation's path, with {names} in it.")
    api_key: KeyReference = Field(default="", description="env:NAME or keyring:NAME; the key itself is never stored.")
    auth: Auth = Field(default_factory=Auth, description="Where the key goes.")
    allow_private: bool = Field(default=False, description=ALLOW_PRIVATE)
    places: list[ArgumentPlace] = Field(default_factory=list, description="Where each argument goes.")
    body: Literal["", "json", "form", "text"] = Field(default="", description="How the body is written.")
    media_type: str = Field(default="", description="The body's type, where it is JSON by another name.")
    fields: list[ArgumentStyle] = Field(default_factory=list, description="How fields of a whole form are written.")
    parameters: ArgumentsSchema
    returns: ResultSchema
    mended: SchemaNotes

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

    def __init__(self, spec: WorkerSpec, config: OpenApiConfig) -> None:
        super().__init__(spec, config)
        self.returns = config.returns

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
    path, query, cookies, fields = config.path, list[str](), list[str](), list[tuple[ArgumentStyle, Any]]()
    headers = {"accept": "application/json, text/*;q=0.8, */*;q=0.5"}
    whole = None
    for place in config.places:
        if place.argument not in arguments:
            continue
        value = arguments[place.argument]
        if place.at == "path":
            path = path.replace(f"{{{place.wire}}}", write_path(value, place))
        elif place.at == "query":
            query += write_query(value, place)
        elif place.at == "header":
            if written := write_header(value, place):
                headers[place.wire.lower()] = header_value(place.argument, written)
        elif place.at == "cookie":
            cookies += write_cookie(value, place)
        elif place.at == "body":
            fields.append((place, value))
        else:
            whole = value
    if cookies:
        headers["cookie"] = "; ".join(cookies)
    url = f"{config.base_url}{check_path(path)}" + (f"?{'&'.join(query)}" if query else "")
    return url, headers, _body(config, whole, fields, headers)


def _body(
    config: OpenApiConfig, whole: Any, fields: Sequence[tuple[ArgumentStyle, Any]], headers: dict[str, str]
) -> bytes | None:
    if not config.body or (whole is None and not fields and not any(place.at == "body" for place in config.places)):
        return None
    if config.body == "form":
        headers["content-type"] = "application/x-www-form-urlencoded"
        pairs = fields if whole is None else _name_fields(config, whole)
        return "&".join(part for style, value in pairs for part in write_field(value, _as_field(style))).encode()
    given = whole if whole is not None else {style.wire: value for style, value in fields}
    if config.body == "json":
        headers["content-type"] = config.media_type or "application/json"
        return json.dumps(given).encode()
    headers["content-type"] = "text/plain; charset=utf-8"
    return as_text(given).encode()


def _name_fields(config: OpenApiConfig, form: Any) -> list[tuple[ArgumentStyle, Any]]:
    """Pair the fields of a whole form with how they are written."""
    if not isinstance(form, dict):
        raise BadCall("the body of this operation is a form: write an object")
    styles = {style.wire: style for style in config.fields}
    return [(styles.get(name, ArgumentStyle(wire=name, style="field")), value) for name, value in form.items()]


def _as_field(style: ArgumentStyle) -> ArgumentStyle:
    """A field's style; of workers that were recorded when forms had none, the one that OpenAPI has by default."""
    return style.model_copy(update={"style": "field"}) if style.style == "simple" else style
