"""What an OpenAPI document offers: one worker of kind `openapi` for each operation.

The document's structure is checked by openapi-pydantic, its schemas by the validator that checks calls;
here is only how an operation becomes a name, a description, a schema and the places of its arguments.
An operation that cannot be called is offered with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pool_registry import secrets
from pool_registry.actions import JsonValue
from pool_registry.errors import InvalidPool
from pool_registry.imports import FreeNames, Offer
from pool_registry.imports.openapi.bodies import Body, read_body
from pool_registry.imports.openapi.document import MAX_CHARS, Document, UnfitOperation, read
from pool_registry.imports.openapi.schemas import Schemas
from pool_registry.imports.openapi.servers import Given, first_problem, security_of, server_of
from pool_registry.imports.openapi.styles import is_json, read_content_style, read_parameter_style
from pool_registry.network import http_client
from pool_registry.network.address_policy import AddressPolicy
from pool_registry.network.argument_styles import ArgumentStyle
from pool_registry.network.http_values import OWN_HEADERS, TOKEN, decode_text
from pool_registry.schemas.mend_schema import mend_schema
from pool_registry.schemas.result_outline import outline_result
from pool_registry.worker import WorkerSpec

if TYPE_CHECKING:
    from openapi_pydantic.v3.v3_1 import Operation

FETCH_S = 30.0
MAX_OPERATIONS = 2_000
MAX_DESCRIPTION = 1_000
METHODS = ("get", "put", "post", "delete", "patch", "head")  # options and trace are for browsers and proxies


async def fetch(url: str, allow_private: bool = False) -> str:
    """Fetch the document at a URL that a person typed. Raises InvalidPool for the URL, WorkerFault for the peer."""
    policy = AddressPolicy(private=allow_private, typed=True)
    try:
        http_client.check_url(url, policy)
    except ValueError as error:
        raise InvalidPool([("url", str(error))]) from error
    answer = await http_client.ask("GET", url, timeout_s=FETCH_S, policy=policy, follow=3, max_bytes=MAX_CHARS)
    return decode_text(http_client.demand(answer).body, "utf-8")


def list_operations(
    text: str | bytes,
    *,
    base_url: str = "",
    api_key: str = "",
    key_header: str = "",
    source: str = "",
    allow_private: bool = False,
) -> list[Offer]:
    """Return one offer for each operation of a document, JSON or YAML, in its order.

    `base_url` takes the place of the document's servers, `source` is the URL that it came from (for servers
    without a host), `api_key` a reference to the key, `key_header` the header for it where the document's
    own rule is wrong. Raises InvalidPool saying what to correct in the document or in these settings.
    """
    _check_settings(base_url, api_key, key_header, AddressPolicy(private=allow_private, typed=True))
    document = read(text)
    given = Given(base_url.rstrip("/"), api_key, key_header, source, allow_private)
    names, results = FreeNames(), list[Offer]()
    for path, method, item, operation in _operations(document):
        if len(results) == MAX_OPERATIONS:
            raise InvalidPool([("document", f"it has more than {MAX_OPERATIONS:,} operations; cut it down first")])
        suggestion = operation.get("operationId") if isinstance(operation, dict) else None
        name = names.choose(suggestion if isinstance(suggestion, str) and suggestion else f"{method} {path}")
        results.append(_Reading(document, given, path, method, item).offer(name, operation))
    if not results:
        raise InvalidPool([("document", "its `paths` hold no operation, so there is nothing to call")])
    return results


def _check_settings(base_url: str, api_key: str, key_header: str, policy: AddressPolicy) -> None:
    problems = []
    try:
        if base_url:
            http_client.check_url(base_url, policy)
    except ValueError as error:
        problems.append(("base_url", str(error)))
    try:
        if api_key:
            secrets.check_reference(api_key)
    except ValueError as error:
        problems.append(("api_key", str(error)))
    if key_header and not TOKEN.fullmatch(key_header):
        problems.append(("key_header", "a header's name has letters, digits and - only"))
    if problems:
        raise InvalidPool(problems)


def _operations(document: Document) -> Iterator[tuple[str, str, dict[str, Any], Any]]:
    for path, item in document.root["paths"].items():
        try:
            followed = document.follow(item)
        except UnfitOperation:
            continue  # not even its methods are known
        for method in METHODS:
            if method in followed:
                yield path, method, followed, followed[method]


class _Reading:
    """One operation on its way to an offer."""

    def __init__(self, document: Document, given: Given, path: str, method: str, item: dict[str, Any]) -> None:
        self._document, self._given = document, given
        self._path, self._method, self._item = path, method, item
        self._schemas = Schemas(document)
        self._properties: dict[str, Any] = {}
        self._required: list[str] = []
        self._together: dict[str, list[str]] = {}  # fields of an optional body, with those that it must have then
        self._places: list[dict[str, Any]] = []
        self._notes: list[str] = []
        self._forgotten: list[str] = []  # notes on parameters that are not described

    def offer(self, name: str, raw: Any) -> Offer:
        description, config, problem = f"{self._method.upper()} {self._path}", dict[str, Any](), ""
        try:
            raw = self._document.follow(raw)
            operation = _check_operation(raw)
            description = _description(operation) or description
            config = self._config(operation, raw)
        except UnfitOperation as reason:
            problem = str(reason)
        description = description[:MAX_DESCRIPTION]
        return Offer(WorkerSpec(name=name, kind="openapi", description=description, config=config), problem)

    def _config(self, operation: Operation, raw: Mapping[str, Any]) -> dict[str, Any]:
        for parameter in self._parameters(raw):
            self._add_parameter(parameter)
        self._add_undeclared()
        body = self._add_body(raw.get("requestBody"))
        config = {
            "base_url": server_of(self._document, self._given, (raw, self._item)),
            "method": self._method.upper(),
            "path": self._path,
            "places": self._places,
            **body,
            "parameters": self._parameters_schema(),
            **security_of(self._document, self._given, operation.security),
        }
        if self._notes:
            config["mended"] = self._notes
        if returns := self._read_returns(raw.get("responses")):
            config["returns"] = returns
        if self._given.allow_private:
            config["allow_private"] = True
        return config

    def _parameters(self, raw: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the path's parameters and the operation's own, which override them. Raises UnfitOperation."""
        every: dict[tuple[Any, Any], dict[str, Any]] = {}
        for listed in (self._item.get("parameters", []), raw.get("parameters", [])):
            if not isinstance(listed, list):
                raise UnfitOperation("its `parameters` are no list")
            for entry in map(self._document.follow, listed):
                every[str(entry.get("name")), str(entry.get("in"))] = entry
        return list(every.values())

    def _add_parameter(self, raw: dict[str, Any]) -> None:
        from openapi_pydantic.v3.v3_1 import Parameter

        try:
            parameter = Parameter.model_validate(_keep_texts({k: raw[k] for k in _PARAMETER_FIELDS & raw.keys()}))
        except ValidationError as error:
            name = str(raw.get("name"))[:60]
            sentence = f"parameter {name}: it needs a name, and a place: in path, query, header or cookie"
            raise UnfitOperation(sentence) from error
        at, wire = parameter.param_in.value, parameter.name
        if at == "header" and wire.lower() in ("accept", "content-type", "authorization"):
            return  # OpenAPI says that these are not parameters
        if at == "header" and (wire.lower() in OWN_HEADERS or not TOKEN.fullmatch(wire)):
            raise UnfitOperation(f"its header {wire[:60]!r} cannot be set by a caller")
        if at == "path" and f"{{{wire}}}" not in self._path:
            raise UnfitOperation(f"its path has no {{{wire[:60]}}}, although a parameter is called so")
        content = raw.get("content")
        if isinstance(content, dict) and content:
            media = self._document.follow(next(iter(content.values())))
            schema = self._schemas.argument(wire, media.get("schema", {}), typed=True)
            style = read_content_style(wire, content)
        else:
            schema = self._schemas.argument(wire, raw.get("schema", {}), typed=True)
            style = read_parameter_style(wire, at, raw, schema)
        argument = wire if wire not in self._properties else f"{wire}_in_{at}"
        if argument in self._properties:
            raise UnfitOperation(f"two of its parameters are called {argument[:60]}")
        self._add(argument, schema, parameter.description, parameter.required or at == "path")
        self._places.append({"argument": argument, "at": at, **_record(style)})

    def _add_undeclared(self) -> None:
        """Add the names in the path that the document forgot to describe."""
        declared = {place["wire"] for place in self._places if place["at"] == "path"}
        for wire in dict.fromkeys(_PATH_NAME.findall(self._path)):
            if wire not in declared:
                self._add_parameter({"name": wire, "in": "path", "required": True, "schema": {"type": "string"}})
                self._forgotten.append(f"{wire} stands in the path and is not described: it was read as text")

    def _add_body(self, node: Any) -> dict[str, Any]:
        """Add the request's body to the schema; return how it is written, for the configuration. Raises
        UnfitOperation."""
        if node is None:
            return {"body": ""}
        described = self._document.follow(node)
        body = read_body(self._document, self._schemas, described)
        config = {"body": body.written, **({"media_type": body.media_type} if body.media_type else {})}
        if body.fields and not body.fields.keys() & self._properties.keys():
            self._demand_fields(body, described.get("required"))
            for name, rule in body.fields.items():
                self._properties[name] = rule
                self._places.append({"argument": name, "at": "body", **_record(_style_of(body, name))})
            is_optional = bool(body.required) and described.get("required") is False
            return {**config, "may_lack_body": True} if is_optional else config
        words = ("file", "file_to_send") if body.written == "file" else ("body", "request_body")
        argument = next((word for word in words if word not in self._properties), words[-1])
        self._add(argument, body.schema, described.get("description"), described.get("required") is True)
        self._places.append({"argument": argument, "at": "whole", "wire": ""})
        return {**config, "fields": list(map(_record, body.styles.values()))} if body.styles else config

    def _demand_fields(self, body: Body, required: Any) -> None:
        """Ask for the fields that a body must have: always, or where `requestBody.required` is false with any other.

        A document that says nothing of `required` has forgotten it: by OpenAPI's default its body is optional, but an
        operation that names fields it must have does nothing without them.
        """
        if required is False:
            self._together = {name: others for name in body.fields if (others := _others(body.required, name))}
        else:
            self._required += body.required

    def _read_returns(self, responses: Any) -> dict[str, JsonValue]:
        """The fields of the JSON that a call which went well returns; {} where the document says nothing of them."""
        replies = responses if isinstance(responses, dict) else {}
        good = [status for status in replies if str(status).upper().startswith("2")]
        for status in [*sorted(good, key=str), *(["default"] if "default" in replies else [])]:
            try:
                content = self._document.follow(replies[status]).get("content")
                media = [media for kind, media in (content or {}).items() if is_json(kind)]
                schema = self._document.follow(media[0]).get("schema") if media else None
            except (UnfitOperation, AttributeError):
                continue
            if outline := outline_result(schema, self._resolve):
                return outline
        return {}

    def _resolve(self, reference: str) -> object:
        try:
            return self._document.at(reference)
        except UnfitOperation as error:
            raise LookupError(reference) from error

    def _add(self, argument: str, schema: Any, description: str | None, required: bool) -> None:
        self._properties[argument] = _add_description(schema, description)
        if required:
            self._required.append(argument)

    def _parameters_schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "object", "properties": self._properties, "additionalProperties": False}
        if self._required:
            schema["required"] = self._required
        if self._together:
            schema["dependentRequired"] = self._together
        if self._schemas.definitions:
            schema["$defs"] = self._schemas.definitions
        mended = mend_schema(schema)
        if mended.problem:
            raise UnfitOperation(mended.problem)
        self._notes = [*self._forgotten, *dict.fromkeys(self._schemas.notes), *mended.notes]
        return mended.schema


_PATH_NAME = re.compile(r"\{([^{}/]+)\}")
_PARAMETER_FIELDS = {"name", "in", "description", "required"}


def _check_operation(raw: Mapping[str, Any]) -> Operation:
    """Parse the operation itself; schemas are checked elsewhere, answers are not used. Raises UnfitOperation."""
    from openapi_pydantic.v3.v3_1 import Operation

    kept = _keep_texts({key: raw[key] for key in ("summary", "description", "security") if key in raw})
    try:
        return Operation.model_validate(kept)
    except ValidationError as error:
        raise UnfitOperation(first_problem(error)) from error


def _keep_texts(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Without words that are none, and with `required` as a switch: they cost no operation."""
    words = {"summary", "description"}
    kept = {name: value for name, value in fields.items() if name not in words or isinstance(value, str)}
    return kept | ({"required": str(kept["required"]).lower() == "true"} if "required" in kept else {})


def _description(operation: Operation) -> str:
    """Join summary and description; the description alone when it starts with the summary."""
    summary, more = (operation.summary or "").strip(), (operation.description or "").strip()
    if not summary or more.startswith(summary):
        return more or summary
    return f"{summary.rstrip('.')}. {more}" if more else summary


def _add_description(schema: Any, description: Any) -> Any:
    if not isinstance(description, str) or not description or not isinstance(schema, dict) or "description" in schema:
        return schema
    return {**schema, "description": description[:MAX_DESCRIPTION]}


def _record(style: ArgumentStyle) -> dict[str, Any]:
    return style.model_dump(exclude_defaults=True)


def _style_of(body: Body, name: str) -> ArgumentStyle:
    return body.styles.get(name, ArgumentStyle(wire=name))


def _others(names: list[str], name: str) -> list[str]:
    return [other for other in names if other != name]
