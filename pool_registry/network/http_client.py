"""The one door to the network: HTTP with a deadline, a size limit, checked addresses and no surprises.

Nothing else in the product imports an HTTP client (a test looks). A peer that drips, floods, redirects or
lies ends in a WorkerFault with a code, within the time the caller gives; a connection goes to the very
address that address_policy.py has checked. Measured against 22 kinds of misbehaviour in the project's notes.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import urljoin
from weakref import WeakKeyDictionary

import httpcore
import httpx

from pool_registry.actions import JsonValue
from pool_registry.errors import WorkerFault
from pool_registry.network import address_policy, provider_errors
from pool_registry.network.address_policy import CONFIGURED, AddressPolicy, AddressRefused
from pool_registry.network.cancel_once import cancel_once

MAX_BYTES = 4 * 2**20
MAX_REDIRECTS = 5
CONNECT_S = 5.0
REDIRECTS = (301, 302, 303, 307, 308)
# All that may follow a redirect to another origin: keys travel in too many headers to name them.
_HARMLESS = frozenset({"accept", "accept-language", "accept-encoding", "user-agent"})

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[AddressPolicy, httpx.AsyncClient]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a peer, whatever its status; header names in small letters, `url` after redirects."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


def check_url(url: str, policy: AddressPolicy = CONFIGURED) -> str:
    """Return `url` if it is http(s) with an allowed host and no user info. Raises ValueError otherwise.

    Names are looked up when the request is made, and their addresses checked then.
    """
    try:
        parts = httpx.URL(url)
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise ValueError(f"this is not a URL: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.host:
        raise ValueError("write a URL that starts with http:// or https://")
    if parts.userinfo:
        raise ValueError("a URL must not hold a user name or password; give a key as env:NAME")
    address = address_policy.literal_address(parts.host)
    if address is not None:
        address_policy.check(parts.host, address, policy)
    return url


async def ask(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout_s: float,
    policy: AddressPolicy = CONFIGURED,
    follow: int = 0,
    max_bytes: int = MAX_BYTES,
) -> Answer:
    """Send one request and return its answer, whatever its status (`demand` turns refusals into faults).

    At most `follow` redirects are followed, each to an address that is checked again, and without the keys once the
    origin changes. Raises WorkerFault: bad_url, address_refused, connection, invalid_response,
    output_too_large, timeout (after `timeout_s` seconds in all).
    """
    request = _Request(method.upper(), url, dict(headers or {}), body, policy)
    try:
        async with asyncio.timeout(timeout_s):
            for _ in range(min(follow, MAX_REDIRECTS) + 1):
                answer = await cancel_once(_exchange(request, max_bytes))
                target = answer.headers.get("location")
                if not follow or answer.status not in REDIRECTS or target is None:
                    return answer
                request = _follow_redirect(request, answer.status, target)
    except TimeoutError as error:
        raise WorkerFault("timeout", f"{_host(url)} did not answer within {timeout_s:g} s") from error
    raise WorkerFault("invalid_response", f"{_host(url)} redirects more than {min(follow, MAX_REDIRECTS)} times")


async def ask_json(
    method: str,
    url: str,
    headers: Mapping[str, str],
    timeout_s: float,
    body: JsonValue = None,
    policy: AddressPolicy = CONFIGURED,
) -> JsonValue:
    """Send a JSON document (or none) and return the JSON of the answer. Raises WorkerFault."""
    return parse_json(demand(await _ask_for_json(method, url, headers, timeout_s, body, policy)))


async def post_text(url: str, body: JsonValue, headers: Mapping[str, str], timeout_s: float) -> str:
    """POST `body` to a peer that answers in plain text. Raises WorkerFault."""
    answer = demand(await _ask_for_json("POST", url, headers, timeout_s, body, CONFIGURED))
    return answer.body.decode("utf-8", "replace")


def demand(answer: Answer) -> Answer:
    """Return `answer` if its status is a success. Raises WorkerFault with the code of the refusal."""
    if answer.ok:
        return answer
    raise provider_errors.fault(_host(answer.url), answer.url, answer.status, answer.headers, answer.body)


def parse_json(answer: Answer) -> JsonValue:
    """Parse the JSON in an answer's body. Raises WorkerFault."""
    try:
        parsed: JsonValue = json.loads(answer.body.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        sentence = f"{_host(answer.url)} did not answer with JSON: {error}"
        raise WorkerFault("invalid_response", sentence) from error
    return parsed


async def _ask_for_json(
    method: str, url: str, headers: Mapping[str, str], timeout_s: float, body: JsonValue, policy: AddressPolicy
) -> Answer:
    sent = {"accept": "application/json"}
    raw = None
    if body is not None:
        sent["content-type"] = "application/json"
        raw = json.dumps(body).encode()
    return await ask(method, url, headers={**sent, **headers}, body=raw, timeout_s=timeout_s, policy=policy)


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    policy: AddressPolicy


async def _exchange(request: _Request, max_bytes: int) -> Answer:
    """Send one request without following redirects."""
    url, headers = request.url, {"accept-encoding": "identity", **_lower(request.headers)}
    try:
        check_url(url, request.policy)
        async with _client(request.policy).stream(
            request.method, url, content=request.body, headers=headers
        ) as response:
            body = await _read(response, max_bytes)
    except AddressRefused as error:
        raise WorkerFault("address_refused", str(error)) from error
    except (ValueError, httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError) as error:
        raise WorkerFault("bad_url", f"{url[:200]}: {error}") from error
    except (httpx.RemoteProtocolError, httpx.DecodingError) as error:
        raise WorkerFault("invalid_response", f"{_host(url)} broke off: {error}", retryable=True) from error
    except (httpx.TransportError, OSError) as error:
        sentence = f"{_host(url)} cannot be reached: {str(error) or type(error).__name__}"
        raise WorkerFault("connection", sentence, retryable=True) from error
    return Answer(response.status_code, _lower(response.headers), body, url)


async def _read(response: httpx.Response, max_bytes: int) -> bytes:
    parts, size = [], 0
    async for part in response.aiter_raw():
        parts.append(part)
        size += len(part)
        if size > max_bytes:
            raise _too_large(max_bytes)
    return _unpack(b"".join(parts), response.headers.get("content-encoding", ""), max_bytes)


def _unpack(raw: bytes, encoding: str, max_bytes: int) -> bytes:
    """Decompress a body up to the limit: a small one may unpack to gigabytes, also unasked."""
    if not raw or encoding.strip().lower() in ("", "identity"):
        return raw
    if encoding.strip().lower() not in ("gzip", "x-gzip", "deflate"):
        raise WorkerFault("invalid_response", f"the answer is packed as {encoding[:40]!r}, which was not asked for")
    unpacker = zlib.decompressobj(wbits=47)  # gzip or zlib, as its first bytes say
    try:
        plain = unpacker.decompress(raw, max_bytes + 1)
    except zlib.error as error:
        raise WorkerFault("invalid_response", f"the answer cannot be unpacked: {error}") from error
    if len(plain) > max_bytes:
        raise _too_large(max_bytes)
    return plain


def _too_large(max_bytes: int) -> WorkerFault:
    return WorkerFault("output_too_large", f"the answer is larger than {max_bytes:,} bytes")


def _follow_redirect(request: _Request, status: int, location: str) -> _Request:
    """Build the request that a redirect asks for, without headers meant for the first origin alone."""
    try:
        target = urljoin(request.url, location)
    except ValueError as error:
        raise _astray(location) from error
    method, body = request.method, request.body
    if status == 303 or (status in (301, 302) and method == "POST"):
        method, body = ("HEAD" if method == "HEAD" else "GET"), None
    if _origin(target) == _origin(request.url):
        return replace(request, method=method, url=target, body=body)
    if body is not None:
        raise WorkerFault("invalid_response", f"{_host(request.url)} redirects a request's body to {_host(target)}")
    headers = {name: value for name, value in _lower(request.headers).items() if name in _HARMLESS}
    policy = AddressPolicy(private=request.policy.private)  # this URL was not typed by a person
    return _Request(method, target, headers, None, policy)


def _origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise _astray(url) from error
    return parts.scheme, parts.host, parts.port


def _astray(location: str) -> WorkerFault:
    return WorkerFault("invalid_response", f"a redirect leads to what is no URL: {location[:200]!r}")


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


class _CheckedNetwork(httpcore.AnyIOBackend):
    """Connects to addresses that were checked, never to a name: what a name means may change in between."""

    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's interface
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                addresses = await address_policy.addresses(host, port, self._policy)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"the name {host} was not resolved within {timeout} s") from error
        except (UnicodeError, OSError) as error:
            raise httpcore.ConnectError(f"{host}: {error}") from error
        for address in addresses[:-1]:
            try:
                return await super().connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await super().connect_tcp(addresses[-1], port, timeout, local_address, socket_options)


class _CheckedTransport(httpx.AsyncHTTPTransport):
    """httpx's transport on `_CheckedNetwork`; it has no setting for that, so the pool is put in its place.

    Host header, SNI and certificate check stay those of the name in the URL.
    """

    def __init__(self, policy: AddressPolicy) -> None:
        context = httpx.create_ssl_context(trust_env=False)
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=1000,
            max_keepalive_connections=100,
            keepalive_expiry=5.0,
            network_backend=_CheckedNetwork(policy),
        )


def _client(policy: AddressPolicy) -> httpx.AsyncClient:
    """Return the client of this event loop and policy: a kept connection serves only callers that may open it."""
    loop = asyncio.get_running_loop()
    clients = _clients.get(loop)
    if clients is None:
        for closed in [other for other in _clients if other.is_closed()]:  # a client keeps its loop alive
            del _clients[closed]
        clients = _clients[loop] = {}
    if policy not in clients:
        timeout = httpx.Timeout(None, connect=CONNECT_S)
        clients[policy] = httpx.AsyncClient(
            transport=_CheckedTransport(policy),
            follow_redirects=False,
            trust_env=False,
            timeout=timeout,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # one worker's cookies are not another's
        )
    return clients[policy]


def _host(url: str) -> str:
    try:
        return httpx.URL(url).netloc.decode("ascii", "replace")
    except (httpx.InvalidURL, ValueError):
        return url[:80]
