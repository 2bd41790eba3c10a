"""A curl line: a worker that sends its request. What a call may change becomes an argument, as pasted by default: the
fields of the query, of a form and of a JSON body. A line that asks a language model becomes an agent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

from pool_registry.actions import JsonValue
from pool_registry.imports import FreeNames, Offer
from pool_registry.literal_keys import find_literal_keys
from pool_registry.pasted.base import ImportSettings, PastedText, Recognition, UnfitText, refuse
from pool_registry.pasted.keys import VARIABLE, is_key, read_variable, variable_name
from pool_registry.pasted.requests.chat_request import read_chat_request
from pool_registry.pasted.requests.curl_words import CURL, CurlRequest, read_curl, split_lines
from pool_registry.worker import WorkerSpec

MAX_LINES = 100
FORM = "application/x-www-form-urlencoded"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
SET_BY_CLIENT = frozenset({"accept-encoding", "content-length", "host", "connection", "user-agent"})
_PLACES = re.compile(r"(?<=/)(?::([A-Za-z_]\w{0,60})|<([A-Za-z_]\w{0,60})>)(?=/|$)")


def is_curl(pasted: PastedText) -> bool:
    return bool(CURL.match(pasted.text))


def read_curl_lines(pasted: PastedText, settings: ImportSettings) -> Recognition:
    """A worker for each line; one that cannot be sent is offered with the reason."""
    names = FreeNames()
    lines = split_lines(pasted.text)[:MAX_LINES]
    return Recognition(tuple(_make_offer(line, names, settings) for line in lines))


def _make_offer(line: str, names: FreeNames, settings: ImportSettings) -> Offer:
    try:
        request = read_curl(line)
        return Offer(make_worker(request, settings, names))
    except UnfitText as reason:
        return refuse(names.choose(settings.name or "curl"), "http", str(reason))


def make_worker(
    request: CurlRequest, settings: ImportSettings, names: FreeNames, name: str = "", purpose: str = ""
) -> WorkerSpec:
    """The worker that sends a request; its purpose comes first in its description. Raises UnfitText."""
    return read_chat_request(request, names, settings) or _Reading(request, settings).make_worker(names, name, purpose)


class _Reading:
    """One request on its way to a worker: `properties` are its arguments, `defaults` their values as pasted."""

    def __init__(self, request: CurlRequest, settings: ImportSettings) -> None:
        self._request = request
        self._settings = settings
        self._names = FreeNames()
        self._properties: dict[str, Any] = {}
        self._defaults: dict[str, JsonValue] = {}
        self._required: list[str] = []
        self._host = urlsplit(request.url).hostname or ""

    def make_worker(self, names: FreeNames, name: str, purpose: str) -> WorkerSpec:
        """Raises UnfitText."""
        request = self._request
        url, query = self._read_url()
        body, body_as = self._read_body(query)
        method = request.method or ("GET" if body is None else "POST")
        if method not in METHODS:
            raise UnfitText(f"its method {method[:20]} is none of {', '.join(METHODS)}")
        if body is not None and method in ("GET", "HEAD"):
            raise UnfitText(f"it sends a body with {method}, which a worker does not; use -G for fields of the query")
        config: dict[str, JsonValue] = {
            "url": url,
            "method": method,
            "headers": dict(self._read_headers(body_as)),
            "query": dict(query),
        }
        config |= {"body": body, "body_as": body_as} if body is not None else {}
        config |= {"parameters": self._write_schema(), "defaults": self._defaults} if self._properties else {}
        config |= {"allow_private": True} if self._settings.private else {}
        place = urlsplit(url)
        name = self._settings.name or name or f"{_shorten_host(self._host)} {_last_word(place.path)}".strip() or "http"
        takes = f" Takes {', '.join(self._properties)}." if self._properties else ""
        sends = f"Sends {method} to {self._host}{unquote(place.path)}.{takes}"
        description = f"{purpose[:1500]} {sends}" if purpose else sends
        return WorkerSpec(name=names.choose(name), kind="http", description=description[:2000], config=config)

    def _read_url(self) -> tuple[str, dict[str, str]]:
        """The address with {placeholders}, and the fields of its query."""
        address, _, _ = self._request.url.partition("#")
        place, _, query = address.partition("?")
        if "@" in place.partition("://")[2].partition("/")[0]:
            raise UnfitText("its address holds a user name or a password; give them with -u")
        place = _PLACES.sub(lambda match: f"{{{match[1] or match[2]}}}", place)
        place = VARIABLE.sub(lambda match: f"{{{read_variable(match)}}}", place)
        for argument in re.findall(r"\{([A-Za-z_]\w{0,63})\}", place):
            self._require(argument)
        if any(find_literal_keys(place)):
            raise UnfitText("its address holds a key, which cannot be kept there; give it as a header or in the query")
        texts = [query, *self._request.query]
        pairs = [pair for text in texts for pair in parse_qsl(text, keep_blank_values=True)]
        names = [name for name, _ in pairs]
        if repeated := next((name for name in names if names.count(name) > 1), ""):
            raise UnfitText(f"its query names {repeated[:60]} more than once, which a worker of one address does not")
        return place, {name: self._read_field(name, value) for name, value in pairs}

    def _read_field(self, name: str, value: str) -> str:
        """One field of a query or a form: a reference where it is a key, else the placeholder of its argument."""
        if is_key(name, value) or any(find_literal_keys({"query": {name: value}})):
            return self._settings.keys.refer_setting(f"{self._host} {name}", "key", value)
        if match := VARIABLE.fullmatch(value) or re.fullmatch(r"\{([A-Za-z_]\w{0,63})\}", value):
            return self._require(read_variable(match) if match.re is VARIABLE else match[1])
        return self._place(name, _read_value(value))

    def _read_body(self, query: dict[str, str]) -> tuple[JsonValue, str]:
        """The body's template and how it is written. With --get its fields go into the query. Raises UnfitText."""
        request = self._request
        if not request.data:
            return None, "json"
        if any(option == "--json" for option, _ in request.data):
            request.add_type("application/json")
        type_of_body = request.content_type
        text = _join_data(request)
        document = _parse(text)
        if isinstance(document, dict) and "form" not in type_of_body and not request.in_query:
            request.add_type("application/json")
            return self._read_fields(document), "json"
        if request.in_query or not type_of_body or FORM in type_of_body:
            fields = _split_form(request)
            written = {name: self._read_field(name, value) for name, value in fields.items()}
            if request.in_query:
                query |= written
                return None, "json"
            if kept := next((name for name, value in written.items() if value.startswith(("env:", "keyring:"))), ""):
                raise UnfitText(_in_body(kept))
            return written, "form"
        if any(find_literal_keys(text)):
            raise UnfitText(_in_body("a key"))
        if document is not None:
            return self._place("body", document), "json"
        return self._place("body", text), "text"

    def _read_fields(self, document: Mapping[str, Any]) -> dict[str, JsonValue]:
        if problem := next(find_literal_keys(dict(document)), None):
            raise UnfitText(_in_body(problem[0]))
        return {str(name): self._read_json(str(name), value) for name, value in document.items()}

    def _read_json(self, name: str, value: JsonValue) -> JsonValue:
        if isinstance(value, str) and (match := VARIABLE.fullmatch(value)):
            return self._require(read_variable(match))
        return self._place(name, value)

    def _read_headers(self, body_as: str) -> dict[str, str]:
        """Raises UnfitText."""
        settings = self._settings
        kept = {key: value for key, value in self._request.headers.items() if key.lower() not in SET_BY_CLIENT}
        kept = {k: v for k, v in kept.items() if body_as == "text" or k.lower() != "content-type" or "json" in v}
        if settings.key or settings.headers:
            kept = {key: value for key, value in kept.items() if key.lower() != "authorization"}
        kept |= dict(settings.headers)
        if settings.key:
            kept["Authorization"] = f"Bearer {settings.key}"
        elif self._request.user:
            hint = "export {0}=$(printf 'USER:PASSWORD' | base64 | tr -d '\\n')".format
            name = f"{self._host} basic"
            kept["Authorization"] = (
                f"Basic {settings.keys.refer(name, _encode(self._request.user), hint(variable_name(name)))}"
            )
        token = {"authorization": "token"}
        return {
            key: settings.keys.refer_setting(f"{self._host} {token.get(key.lower(), key)}", key, value)
            for key, value in kept.items()
        }

    def _place(self, name: str, value: JsonValue) -> str:
        """A new argument, which is `value` where a call does not give it; its placeholder."""
        argument = self._add(name, {"type": _type_of(value), "default": value} if value is not None else {})
        self._defaults[argument] = value
        return f"{{{argument}}}"

    def _require(self, name: str) -> str:
        if name not in self._properties:
            self._required.append(self._add(name, {"type": "string", "minLength": 1}))
        return f"{{{name}}}"

    def _add(self, name: str, rule: dict[str, Any]) -> str:
        plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")[:60] or "value"
        argument = plain if plain[0].isalpha() else f"_{plain}"
        number, stem = 1, argument
        while argument in self._properties:
            number += 1
            argument = f"{stem}_{number}"
        self._properties[argument] = rule
        return argument

    def _write_schema(self) -> dict[str, Any]:
        schema = {"type": "object", "properties": self._properties, "additionalProperties": False}
        return schema | ({"required": self._required} if self._required else {})


def _in_body(name: str) -> str:
    return f"its body holds a key ({name[:60]}), which cannot be kept there; use a header or a field of the query"


def _join_data(request: CurlRequest) -> str:
    if len(request.data) == 1 or any(option == "--json" for option, _ in request.data):
        return "".join(text for _, text in request.data)
    return "&".join(text for _, text in request.data)


def _split_form(request: CurlRequest) -> dict[str, str]:
    """The fields of a form by name, decoded. Raises UnfitText where it is none."""
    fields: dict[str, str] = {}
    for option, text in request.data:
        parts = [text] if option == "--data-urlencode" else text.split("&")
        for part in parts:
            name, equals, value = part.partition("=")
            if not equals or not name or "\n" in name:
                raise UnfitText("its body is neither JSON nor a form of NAME=value; say its type with a Content-Type")
            if unquote_plus(name) in fields:
                raise UnfitText(f"its form names {name[:60]} more than once, which a worker of one address does not")
            fields[unquote_plus(name)] = value if option == "--data-urlencode" else unquote_plus(value)
    return fields


def _parse(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return None
    return value


def _read_value(text: str) -> JsonValue:
    """A number where the text is how one is written, else the text."""
    value = _parse(text) if re.fullmatch(r"-?(?:0|[1-9]\d{0,15})(?:\.\d{1,15})?", text) else text
    return value if json.dumps(value) == text else text


def _type_of(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _shorten_host(host: str) -> str:
    """`api.open-meteo.com` is "open-meteo"; an address of this machine or a number has no name."""
    parts = [part for part in host.split(".") if part not in ("www", "api", "localhost")]
    return "" if ":" in host or host.replace(".", "").isdigit() else "".join(parts[-2:-1] or parts)


def _last_word(path: str) -> str:
    words = [part for part in path.split("/") if re.fullmatch(r"[A-Za-z][\w-]{2,40}", part)]
    return words[-1] if words else ""


def _encode(user: str) -> str:
    import base64

    return base64.b64encode(user.encode()).decode()
