"""Kind `http`: one address of an HTTP API, described by hand.

`{name}` in the URL, a header, the query or the body stands for an argument. A value in the URL is
percent-encoded; a text of the body that is nothing but `{name}` takes the argument with its type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit

import jsonpointer
from pydantic import Field, field_validator, model_validator

from pool_registry.actions import JsonValue, as_text
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.network import http_client
from pool_registry.network.address_policy import ALLOW_PRIVATE, AddressPolicy
from pool_registry.network.http_values import OWN_HEADERS, READING, TOKEN, Method, check_path, header_value, reachable
from pool_registry.schemas.argument_schema import stored_schema
from pool_registry.secrets import REFERENCE, SECRET_NAME, WRITE_REFERENCE, ends_in_reference, resolve_references
from pool_registry.workers.support.http_base import HttpApi, HttpApiConfig, PreparedRequest

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]{0,63})\}")
BODIES: Mapping[str, type] = {"json": object, "form": dict, "text": str}
BODY_WORDS = {"json": "JSON", "form": "an object of texts", "text": "a text"}
CONTENT_TYPES = {
    "json": "application/json",
    "form": "application/x-www-form-urlencoded",
    "text": "text/plain; charset=utf-8",
}


class HttpConfig(HttpApiConfig):
    url: str = Field(description="With placeholders such as {city} after the host; each becomes an argument.")
    method: Method = "GET"
    headers: dict[str, str] = Field(
        default_factory=dict, description="Such as Authorization: Bearer env:NAME; keys as env:NAME or keyring:NAME."
    )
    query: dict[str, str] = Field(default_factory=dict, description="Query fields; left out when their argument is.")
    body: Any = Field(default=None, description="JSON with placeholders; null for none.")
    body_as: Literal["json", "form", "text"] = Field(
        default="json", description="How the body is sent: form takes an object of texts, text one text."
    )
    parameters: dict[str, Any] = Field(
        default_factory=dict, description="JSON Schema of the arguments; empty: every placeholder is a required text."
    )
    defaults: dict[str, Any] = Field(
        default_factory=dict, description="What an argument is where a call does not give it."
    )
    pointer: str = Field(default="", description="What to return of a JSON answer, such as /current/temperature.")
    allow_private: bool = Field(default=False, description=ALLOW_PRIVATE)

    @field_validator("url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        value = value.strip()
        if "{" in value.partition("://")[2].partition("/")[0]:
            raise ValueError("the host must not have a placeholder: a model would choose who is called")
        http_client.check_url(PLACEHOLDER.sub("x", value), AddressPolicy(private=True, typed=True))
        return value

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, values: dict[str, str]) -> dict[str, str]:
        for name, value in values.items():
            if not TOKEN.fullmatch(name) or name.lower() in OWN_HEADERS or not value.isprintable():
                raise ValueError(f"{name!r} cannot be set as a header with this value")
            if SECRET_NAME.search(name) and value and not ends_in_reference(value):
                raise ValueError(f"{name} looks like a secret: {WRITE_REFERENCE}")
        return values

    @field_validator("query")
    @classmethod
    def _holds_no_secret(cls, values: dict[str, str]) -> dict[str, str]:
        for name, value in values.items():
            if re.search(r"key|secret|token|passw", name, re.IGNORECASE) and not (
                REFERENCE.match(value) or PLACEHOLDER.search(value) or not value
            ):
                raise ValueError(f"{name} looks like a secret: {WRITE_REFERENCE}")
        return values

    @field_validator("pointer")
    @classmethod
    def _is_pointer(cls, value: str) -> str:
        try:
            jsonpointer.JsonPointer(value)
        except jsonpointer.JsonPointerException as error:
            raise ValueError("write a JSON Pointer, such as /data/0/name") from error
        return value

    @model_validator(mode="after")
    def _fits(self) -> HttpConfig:
        stored_schema(self.schema_of_arguments())
        properties = self.schema_of_arguments().get("properties") or {}
        lost = sorted(set(self.placeholders()) - set(properties))
        if lost:
            raise ValueError(f"the schema of the arguments has no {', '.join(lost)}")
        if odd := sorted(set(self.defaults) - set(properties)):
            raise ValueError(f"defaults: there is no argument {', '.join(odd)}")
        if self.body is not None and not isinstance(self.body, BODIES[self.body_as]):
            raise ValueError(f"a body that is sent as {self.body_as} must be {BODY_WORDS[self.body_as]}")
        if self.body is not None and self.method in READING:
            raise ValueError(f"a {self.method} request has no body; choose POST or PUT")
        return self

    def placeholders(self) -> list[str]:
        """List the arguments in the order of their first use."""
        texts = [self.url, *self.headers.values(), *self.query.values(), *_texts(self.body)]
        return list(dict.fromkeys(name for text in texts for name in PLACEHOLDER.findall(text)))

    def schema_of_arguments(self) -> dict[str, Any]:
        """Return the given schema, or one required text for each placeholder."""
        if self.parameters:
            return self.parameters
        names = self.placeholders()
        return {
            "type": "object",
            "properties": {name: {"type": "string", "minLength": 1} for name in names},
            "required": names,
            "additionalProperties": False,
        }


class Http(HttpApi[HttpConfig]):
    label = "HTTP endpoint"
    summary = "One address of an HTTP API, described by hand."
    icon = "M4 8h16 M16 4l4 4-4 4 M20 16H4 M8 12l-4 4 4 4"
    described_by = "name"
    Config = HttpConfig

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return self.config.schema_of_arguments()

    def request(self, arguments: Mapping[str, Any]) -> PreparedRequest:
        return request(self.config, arguments)

    def value(self, answer: JsonValue) -> JsonValue:
        """Select what the pointer names ("" is the whole answer)."""
        pointer = self.config.pointer
        try:
            part: JsonValue = jsonpointer.resolve_pointer(answer, pointer)
        except (jsonpointer.JsonPointerException, TypeError) as error:
            raise WorkerFault("invalid_response", f"the answer has nothing at {pointer}") from error
        return part

    async def check(self) -> str:
        resolve_references(self.config.headers)
        resolve_references(self.config.query)
        parts = urlsplit(self.config.url)
        return await reachable(f"{parts.scheme}://{parts.netloc}/", self.config.policy)


def request(config: HttpConfig, arguments: Mapping[str, Any]) -> PreparedRequest:
    """Build URL, headers and body. Raises BadCall for an argument that cannot be written, WorkerFault for a key."""
    arguments = {**config.defaults, **arguments}
    place, _, fixed = config.url.partition("?")
    host = place.find("/", place.index("://") + 3)
    origin, path = (place, "") if host < 0 else (place[:host], place[host:])
    empty = [name for name in PLACEHOLDER.findall(path) if arguments.get(name) in (None, "")]
    if empty:
        raise BadCall(f"{empty[0]}: an argument of the path must not be empty")
    fields = urlencode(list(_values(config.query, arguments).items()), quote_via=quote)
    query = "&".join(part for part in (_fill(fixed, arguments, quoted=True), fields) if part)
    url = f"{origin}{check_path(_fill(path, arguments, quoted=True))}" + (f"?{query}" if query else "")
    headers = {"accept": "application/json, text/*;q=0.8, */*;q=0.5"}
    for name, value in _values(config.headers, arguments).items():
        headers[name.lower()] = header_value(name, value)
    if config.body is None:
        return url, headers, None
    headers.setdefault("content-type", CONTENT_TYPES[config.body_as])
    return url, headers, WRITERS[config.body_as](_body(config.body, arguments)).encode()


def _values(templates: Mapping[str, str], arguments: Mapping[str, Any]) -> dict[str, str]:
    """Resolve secrets and fill in arguments; an argument is never read as a reference."""
    secret = resolve_references({name: value for name, value in templates.items() if ends_in_reference(value)})
    return {
        name: secret[name] if name in secret else _fill(value, arguments)
        for name, value in templates.items()
        if name in secret or _has(value, arguments)
    }


def _has(template: str, arguments: Mapping[str, Any]) -> bool:
    return all(name in arguments for name in PLACEHOLDER.findall(template))


def _fill(template: str, arguments: Mapping[str, Any], quoted: bool = False) -> str:
    """Replace every placeholder of `template`; one without an argument becomes empty."""

    def value(match: re.Match[str]) -> str:
        text = "" if arguments.get(match[1]) is None else as_text(arguments[match[1]])
        return quote(text, safe="") if quoted else text

    return PLACEHOLDER.sub(value, template)


def _body(template: Any, arguments: Mapping[str, Any]) -> Any:
    """Fill the body's template, without the fields whose argument was not given."""
    if isinstance(template, str):
        whole = PLACEHOLDER.fullmatch(template)
        return arguments.get(whole[1]) if whole else _fill(template, arguments)
    if isinstance(template, list):
        return [_body(item, arguments) for item in template]
    if isinstance(template, dict):
        return {
            name: _body(item, arguments)
            for name, item in template.items()
            if not isinstance(item, str) or _has(item, arguments)
        }
    return template


def _write_form(fields: Mapping[str, Any]) -> str:
    return urlencode({name: as_text(value) for name, value in fields.items() if value is not None}, quote_via=quote)


WRITERS: Mapping[str, Callable[[Any], str]] = {"json": json.dumps, "form": _write_form, "text": as_text}


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict | list):
        for item in node.values() if isinstance(node, dict) else node:
            yield from _texts(item)
