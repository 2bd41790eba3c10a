"""The one door to the network: JSON over HTTP with a deadline, a size limit and no surprises.

Nothing else in the product imports an HTTP client (a test looks). A peer that drips, floods, redirects or
lies ends in a WorkerFault with a code, within the time the caller gives. Measured against 22 kinds of
misbehaviour in the project's notes.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx

from pool_registry.actions import JsonValue
from pool_registry.errors import WorkerFault

MAX_BYTES = 4 * 2**20
MAX_RETRY_AFTER_S = 60.0
CONNECT_S = 5.0

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()


def check_url(url: str) -> str:
    """`url` itself, or ValueError: http(s), a host, no user info, never a link-local (metadata) address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("write a URL that starts with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a URL must not hold a user name or password; give a key as env:NAME")
    address = _literal_address(parts.hostname)
    if address is not None and (address.is_link_local or address.is_multicast or address.is_unspecified):
        raise ValueError(f"{parts.hostname} is a link-local, multicast or empty address")
    return url


def _literal_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that `host` spells, also as one number, in hex or wrapped in IPv6; None for a name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except OSError:
            return None
    return getattr(address, "ipv4_mapped", None) or address


async def post_json(url: str, body: JsonValue, headers: Mapping[str, str], timeout_s: float) -> JsonValue:
    """POST `body` and return the answer's JSON. Raises WorkerFault."""
    return _parse(await _ask("POST", url, headers, timeout_s, json.dumps(body).encode()), url)


async def post_text(url: str, body: JsonValue, headers: Mapping[str, str], timeout_s: float) -> str:
    """POST `body` to a peer that answers in plain words. Raises WorkerFault."""
    return (await _ask("POST", url, headers, timeout_s, json.dumps(body).encode())).decode("utf-8", "replace")


async def get_json(url: str, headers: Mapping[str, str], timeout_s: float) -> JsonValue:
    """GET a JSON document. Raises WorkerFault."""
    return _parse(await _ask("GET", url, headers, timeout_s, None), url)


async def _ask(method: str, url: str, headers: Mapping[str, str], timeout_s: float, content: bytes | None) -> bytes:
    try:
        check_url(url)
    except ValueError as error:
        raise WorkerFault("bad_url", str(error)) from error
    sent = {"accept": "application/json", "accept-encoding": "identity", "content-type": "application/json"}
    try:
        async with (
            asyncio.timeout(timeout_s),
            _client().stream(method, url, content=content, headers={**sent, **headers}) as response,
        ):
            raw = await _read(response)
    except TimeoutError:
        raise
    except httpx.InvalidURL as error:
        raise WorkerFault("bad_url", f"{url}: {error}") from error
    except (httpx.RemoteProtocolError, httpx.DecodingError) as error:
        raise WorkerFault("invalid_response", f"{_host(url)} broke off: {error}", retryable=True) from error
    except httpx.TransportError as error:
        sentence = f"{_host(url)} cannot be reached: {str(error) or type(error).__name__}"
        raise WorkerFault("connection", sentence, retryable=True) from error
    _raise_for_status(response, raw, url)
    return raw


async def _read(response: httpx.Response) -> bytes:
    parts, size = [], 0
    async for part in response.aiter_raw():
        parts.append(part)
        size += len(part)
        if size > MAX_BYTES:
            raise WorkerFault("output_too_large", f"the answer is larger than {MAX_BYTES:,} bytes")
    return b"".join(parts)


def _raise_for_status(response: httpx.Response, raw: bytes, url: str) -> None:
    status = response.status_code
    if 200 <= status < 300:
        return
    said = _error_text(raw)
    if 300 <= status < 400:
        raise WorkerFault("invalid_response", f"{_host(url)} redirects; give the final URL")
    if status in (401, 403):
        raise WorkerFault("auth", f"{_host(url)} refuses the key ({status}): {said}")
    if status == 404:
        raise WorkerFault("not_found", f"{url} is not there (404): {said}")
    if status in (408, 429):
        raise WorkerFault(
            "rate_limited",
            f"{_host(url)} asks to slow down ({status}): {said}",
            retryable=True,
            retry_after_s=_retry_after(response.headers.get("retry-after")),
        )
    if status >= 500:
        raise WorkerFault("server_error", f"{_host(url)} failed ({status}): {said}", retryable=True)
    raise WorkerFault(_client_error_code(said), f"{_host(url)} refuses the request ({status}): {said}")


def _client_error_code(said: str) -> str:
    lower = said.lower()
    if "context" in lower and ("length" in lower or "window" in lower or "exceed" in lower):
        return "context_overflow"
    return "content_filtered" if "content" in lower and "filter" in lower else "bad_request"


def _error_text(raw: bytes) -> str:
    """The message in an API's error body, or the start of whatever it is."""
    text = raw[:4000].decode("utf-8", "replace")
    try:
        body: Any = json.loads(text)
        error = body.get("error", body)
        text = str(error.get("message", error)) if isinstance(error, dict) else str(error)
    except (ValueError, AttributeError, RecursionError):
        pass
    return " ".join(text.split())[:300]


def _retry_after(header: str | None) -> float | None:
    """Seconds to wait as the peer asked, in either form of the header; None when absent, odd or too long."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return seconds if 0 <= seconds <= MAX_RETRY_AFTER_S else None


def _parse(raw: bytes, url: str) -> JsonValue:
    try:
        parsed: JsonValue = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise WorkerFault("invalid_response", f"{_host(url)} did not answer with JSON: {error}") from error
    return parsed


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _client() -> httpx.AsyncClient:
    """One pooled client per event loop."""
    loop = asyncio.get_running_loop()
    client = _clients.get(loop)
    if client is None:
        for closed in [other for other in _clients if other.is_closed()]:  # a client keeps its loop alive
            del _clients[closed]
        client = _clients[loop] = httpx.AsyncClient(
            follow_redirects=False, trust_env=False, timeout=httpx.Timeout(None, connect=CONNECT_S)
        )
    return client


def _host(url: str) -> str:
    return urlsplit(url).netloc
