"""What the kinds that call HTTP APIs (openapi, http) share: keys, header values, repeating, and answers as values."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from typing import Annotated, Literal
from urllib.parse import quote, unquote, urlsplit

from pydantic import AfterValidator, Field, model_validator

from pool_registry import secrets
from pool_registry.actions import JsonValue
from pool_registry.errors import BadCall, SecretNotFound, WorkerFault
from pool_registry.network import http_client
from pool_registry.network.address_policy import AddressPolicy
from pool_registry.network.http_client import Answer
from pool_registry.strict_model import StrictModel

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE"})  # RFC 9110, 9.2.2: may be sent again
READING = frozenset({"GET", "HEAD"})  # an equal call may be answered from the cache
CHECK_S = 10.0
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a header's name: RFC 9110, 5.6.2
OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"})
_TEXT_TYPES = ("application/xml", "application/javascript", "application/yaml", "application/x-yaml")
_SHOWN_OF_HEAD = ("content-type", "content-length", "last-modified", "etag", "location")


def _check_reference(value: str) -> str:
    return secrets.check_reference(value) if value else value


def _check_server(value: str) -> str:
    return http_client.check_url(value.rstrip("/"), AddressPolicy(private=True, typed=True))


KeyReference = Annotated[str, AfterValidator(_check_reference)]  # env:NAME or keyring:NAME, or "" for none
ServerUrl = Annotated[str, AfterValidator(_check_server)]  # without a last slash; private ones are refused at the call


class Auth(StrictModel):
    """Where a key is sent: as a bearer token, basic (`user:password`), or a named header, query field or cookie."""

    kind: Literal["bearer", "basic", "header", "query", "cookie"] = "bearer"
    name: str = Field(default="", max_length=200, description="Of the header, query field or cookie.")

    @model_validator(mode="after")
    def _is_named(self) -> Auth:
        if self.kind in ("header", "cookie") and not TOKEN.fullmatch(self.name):
            raise ValueError(f"name the {self.kind}: letters, digits and - _ only")
        if self.kind == "query" and not self.name:
            raise ValueError("name the query field")
        return self


def authorize(url: str, headers: Mapping[str, str], auth: Auth, reference: str) -> tuple[str, dict[str, str]]:
    """Add the key to URL or headers; without one both stay as they are. Raises WorkerFault `auth`."""
    sent = dict(headers)
    if not reference:
        return url, sent
    key = resolve_key(reference)
    if auth.kind == "bearer":
        sent["authorization"] = f"Bearer {key}"
    elif auth.kind == "basic":
        sent["authorization"] = f"Basic {base64.b64encode(key.encode()).decode()}"
    elif auth.kind == "header":
        sent[auth.name.lower()] = key
    elif auth.kind == "cookie":
        sent["cookie"] = "; ".join(part for part in (sent.get("cookie"), f"{auth.name}={quote(key)}") if part)
    else:
        url += f"{'&' if urlsplit(url).query else '?'}{quote(auth.name, safe='')}={quote(key, safe='')}"
    return url, sent


def resolve_key(reference: str) -> str:
    """Return the secret behind a reference. Raises WorkerFault `auth` saying how to set it."""
    try:
        return secrets.resolve(reference).get_secret_value()
    except SecretNotFound as error:
        raise WorkerFault("auth", str(error)) from error


def header_value(argument: str, value: str) -> str:
    """Return `value` if a header can hold it. Raises BadCall: a line break in it would start a new header."""
    if not (value.isascii() and value.isprintable()):
        raise BadCall(f"{argument}: a header takes printable ASCII in one line only")
    return value


def check_path(path: str) -> str:
    """Return `path`. Raises BadCall when it would lead elsewhere: `.` or `..` as a part, or a name not filled in."""
    if "{" in path or "}" in path:
        raise BadCall(f"the path {path} needs every one of its arguments")
    if any(unquote(part) in (".", "..") for part in path.split("/")):
        raise BadCall("an argument of the path must not be `.` or `..`")
    return path


SERVER_ERRORS = 500


@contextmanager
def once(method: str) -> Iterator[None]:
    """Faults of a call that must not be made twice are not retried, except when the peer says that it did
    nothing (429)."""
    try:
        yield
    except WorkerFault as fault:
        if method not in IDEMPOTENT and fault.code != "rate_limited":
            fault.retryable = False
        raise


async def reachable(url: str, policy: AddressPolicy) -> str:
    """Check that something answers at `url`, without calling any operation. Raises WorkerFault.

    Whatever status it answers with says nothing of an operation; only an error of the server itself is told.
    """
    answer = await http_client.ask("GET", url, timeout_s=CHECK_S, policy=policy)
    error = f", but with the error {answer.status}" if answer.status >= SERVER_ERRORS else ""
    return f"{urlsplit(url).netloc} is there{error}; no operation of it was called"


def value_of(method: str, answer: Answer) -> JsonValue:
    """Convert an answer to a worker's value: JSON, text, null when it is empty, a note for anything else.

    Raises WorkerFault when it says that it is JSON and is not.
    """
    if method == "HEAD":
        headers = {name: answer.headers[name] for name in _SHOWN_OF_HEAD if name in answer.headers}
        return {"status": answer.status, "headers": headers}
    if not answer.body:
        return None
    kind, charset = content_type(answer)
    if kind == "application/json" or kind.endswith("+json"):
        return http_client.parse_json(answer)
    if kind.startswith("text/") or kind in _TEXT_TYPES or kind.endswith("+xml"):
        return decode_text(answer.body, charset)
    if not kind:
        try:
            return answer.body.decode("utf-8")
        except UnicodeDecodeError:
            pass  # the note below says what there is
    return f"(not text: {kind or 'no type given'}, {len(answer.body):,} bytes)"


def content_type(answer: Answer) -> tuple[str, str]:
    """Return media type (lower case) and character set, "" where the answer does not say."""
    message = Message()
    message["content-type"] = answer.headers.get("content-type", "")
    if not message["content-type"]:
        return "", ""
    return message.get_content_type(), str(message.get_param("charset") or "")


def decode_text(raw: bytes, charset: str) -> str:
    """Decode text in the given character set, or UTF-8; what does not fit becomes U+FFFD."""
    try:
        return raw.decode(charset or "utf-8", "replace")
    except LookupError:  # an unknown character set
        return raw.decode("utf-8", "replace")
