"""Kind `openapi`: one operation of an HTTP API, as imports/openapi/ recorded it.

Arguments are checked against the recorded schema before they come here; this file puts each one where
the document says (path, query, header, cookie, body), in the style that it says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from email.message import Message
from typing import Any, Literal, TypeAlias

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
    write_texts,
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
from pool_registry.network.multipart import Part, write_multipart
from pool_registry.network.sent_files import open_folder, read_file
from pool_registry.schemas.argument_schema import ArgumentsSchema, SchemaNotes
from pool_registry.schemas.result_outline import ResultSchema
from pool_registry.worker import WorkerSpec
from pool_registry.workers.support.http_base import HttpApi, HttpApiConfig, PreparedRequest


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
    files: str = Field(
        default="", description="The folder on this machine that files are sent from. Empty: no file can be sent."
    )
    places: list[ArgumentPlace] = Field(default_factory=list, description="Where each argument goes.")
    body: Literal["", "json", "form", "multipart", "text", "file"] = Field(
        default="", description="How the body is written."
    )
    media_type: str = Field(
        default="", description="The body's type, where that is no plain JSON or text, or those that its file may have."
    )
    fields: list[ArgumentStyle] = Field(default_factory=list, description="How fields of a whole form are written.")
    may_lack_body: bool = Field(default=False, description="No body is sent where no field of it is named.")
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
    described_by = "name"
    Config = OpenApiConfig

    def __init__(self, spec: WorkerSpec, config: OpenApiConfig) -> None:
        super().__init__(spec, config)
        self.returns = config.returns

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return self.config.parameters

    @classmethod
    def reads(cls, config: OpenApiConfig) -> tuple[str, ...]:
        return (f"and sends files of the folder {config.files}",) if config.files else ()

    @classmethod
    def stays_because(cls, config: OpenApiConfig) -> str:
        return "it sends files of this machine" if config.files else super().stays_because(config)

    def request(self, arguments: Mapping[str, Any]) -> PreparedRequest:
        url, headers, body = request(self.config, arguments)
        return *authorize(url, headers, self.config.auth, self.config.api_key), body

    async def check(self) -> str:
        if self.config.files or _needs_file(self.config):
            open_folder(self.config.files)
        authorize(self.config.base_url, {}, self.config.auth, self.config.api_key)
        return await reachable(self.config.base_url, self.config.policy)


def _needs_file(config: OpenApiConfig) -> bool:
    """Whether no call can do without a file."""
    required: Any = config.parameters.get("required", [])
    files = [place for place in config.places if place.style == "file" or (place.at, config.body) == ("whole", "file")]
    return any(place.argument in required for place in files)


def request(config: OpenApiConfig, arguments: Mapping[str, Any]) -> PreparedRequest:
    """Build URL, headers and body of a call, without the key. Raises BadCall when an argument cannot be written."""
    path, query, cookies, fields = _drop_mark(config.path), list[str](), list[str](), list[tuple[ArgumentStyle, Any]]()
    headers = {"accept": "application/json, text/*;q=0.8, */*;q=0.5"}
    whole = _ABSENT
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
    path, _, fixed = path.partition("?")  # some documents write a part of the query into the path
    query = [fixed, *query] if fixed else query
    url = f"{config.base_url}{check_path(path)}" + (f"?{'&'.join(query)}" if query else "")
    return url, headers, _body(config, whole, fields, headers)


def _drop_mark(path: str) -> str:
    """A path without the part behind # by which documents tell operations of one path apart; no server gets it."""
    return path.partition("#")[0]


_ABSENT: Any = object()  # null is a body of JSON, and of that alone
Fields: TypeAlias = Sequence[tuple[ArgumentStyle, Any]]


def _body(config: OpenApiConfig, whole: Any, fields: Fields, headers: dict[str, str]) -> bytes | None:
    may_be_empty = not config.may_lack_body and any(place.at == "body" for place in config.places)
    if whole is None and config.body != "json":
        whole = _ABSENT
    if not config.body or (whole is _ABSENT and not fields and not may_be_empty):
        return None
    headers["content-type"], body = _WRITERS[config.body](config, whole, fields)
    return body


def _write_json(config: OpenApiConfig, whole: Any, fields: Fields) -> tuple[str, bytes]:
    value = whole if whole is not _ABSENT else {style.wire: value for style, value in fields}
    return config.media_type or "application/json", json.dumps(value).encode()


def _write_form(config: OpenApiConfig, whole: Any, fields: Fields) -> tuple[str, bytes]:
    pairs = fields if whole is _ABSENT else _name_fields(config, whole)
    written = "&".join(part for style, value in pairs for part in write_field(value, _as_field(style)))
    return "application/x-www-form-urlencoded", written.encode()


def _write_parts(config: OpenApiConfig, whole: Any, fields: Fields) -> tuple[str, bytes]:
    pairs = fields if whole is _ABSENT else _name_fields(config, whole)
    return write_multipart([part for style, value in pairs for part in _list_parts(config, _as_field(style), value)])


def _list_parts(config: OpenApiConfig, style: ArgumentStyle, value: Any) -> list[Part]:
    """The parts of one field of a form: one for each file or entry of a list; none for null."""
    if style.style != "file":
        values = value if style.style == "field" and isinstance(value, list) else [value]
        return [_write_part(style, item, name, text) for item in values for name, text in write_texts(item, style)]
    names = value if isinstance(value, list) else [value]
    files = [read_file(config.files, name, style.media_type, style.wire) for name in names if name is not None]
    return [Part(style.wire, file.content, file.media_type, file.name) for file in files]


def _write_part(style: ArgumentStyle, value: Any, name: str, text: str) -> Part:
    is_json = style.style == "json" or (style.style == "field" and isinstance(value, list | dict))
    return Part(name, text.encode(), style.media_type or ("application/json" if is_json else ""))


def _write_text(config: OpenApiConfig, whole: Any, _fields: Fields) -> tuple[str, bytes]:
    kind, text = config.media_type or "text/plain", as_text(whole)
    header = Message()
    header["content-type"] = kind
    charset = header.get_content_charset()
    try:
        return kind if charset else f"{kind}; charset=utf-8", text.encode(charset or "utf-8")
    except (LookupError, UnicodeEncodeError) as error:
        raise BadCall(f"the body of this operation is {kind[:60]}, in which this text cannot be written") from error


def _write_file(config: OpenApiConfig, whole: Any, _fields: Fields) -> tuple[str, bytes]:
    argument = next(place.argument for place in config.places if place.at == "whole")
    file = read_file(config.files, whole, config.media_type, argument)
    return file.media_type, file.content


_WRITERS = {
    "json": _write_json,
    "form": _write_form,
    "multipart": _write_parts,
    "text": _write_text,
    "file": _write_file,
}


def _name_fields(config: OpenApiConfig, form: Any) -> list[tuple[ArgumentStyle, Any]]:
    """Pair the fields of a whole form with how they are written."""
    if not isinstance(form, dict):
        raise BadCall("the body of this operation is a form: write an object")
    styles = {style.wire: style for style in config.fields}
    return [(styles.get(name, ArgumentStyle(wire=name, style="field")), value) for name, value in form.items()]


def _as_field(style: ArgumentStyle) -> ArgumentStyle:
    """A field's style; of workers that were recorded when forms had none, the one that OpenAPI has by default."""
    return style.model_copy(update={"style": "field"}) if style.style == "simple" else style
