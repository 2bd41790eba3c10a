"""An address, alone or with its key: an OpenAPI document, the models of a server, an MCP server, or an agent's card.
What it is only its answers say, so it is asked one after another."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from pool_registry.errors import InvalidPool, WorkerFault
from pool_registry.gallery.discover_servers import USUAL_PORTS, read_listing
from pool_registry.gallery.found_models import make_model_worker
from pool_registry.gallery.providers import provider_of
from pool_registry.imports import FreeNames, Offer, worker_name
from pool_registry.language_models import endpoints
from pool_registry.literal_keys import find_literal_keys
from pool_registry.mcp_client.server import McpServer
from pool_registry.network import http_client
from pool_registry.network.address_policy import AddressPolicy, is_own_host
from pool_registry.pasted.base import ImportSettings, PastedText, Recognition, Source, check_address
from pool_registry.secrets import REFERENCE

ReadText = Callable[[str, ImportSettings], Recognition | None]  # what a text at an address is, by the safe rows

LIST_S = 10.0
_URL = re.compile(
    r"\A(https?://\S+|(?:localhost|\d{1,3}(?:\.\d{1,3}){3}|[\w-]+(?:\.[\w-]+)+):\d{2,5}(?:/\S*)?)(?:\s|\Z)"
)
_HEADER = re.compile(r"\A(?:-H\s+)?['\"]?([A-Za-z][\w-]{0,60}):\s*([^'\"\n]{1,2000})['\"]?\Z")
_KEY_LABEL = re.compile(r"\A(?:with\s+)?(?:the\s+)?(?:api[ _-]?)?(?:key|token)\s*[:=]?\s*", re.IGNORECASE)
# What people copy along with the address of a server of models.
_ENDPOINTS = re.compile(
    r"(?:/chat/completions|/completions|/models|/embeddings|/responses|/api/(?:tags|chat|generate))\Z"
)
_DOCUMENT = re.compile(r"openapi|swagger|api-docs|\.(?:json|ya?ml)\Z", re.IGNORECASE)
_MCP = re.compile(r"/(?:mcp|sse)/?\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Address:
    """A URL with the reference to its key and the header that holds it; "" for none."""

    url: str
    settings: ImportSettings

    @property
    def policy(self) -> AddressPolicy:
        return AddressPolicy(private=self.settings.private, typed=True)


def is_address(pasted: PastedText) -> bool:
    """A URL, with at most a key behind it."""
    match = _URL.match(pasted.text)
    return match is not None and len(pasted.text[match.end() :].split()) <= 8 and len(pasted.text) <= 4000


def read_address(pasted: PastedText, settings: ImportSettings, read_text: ReadText) -> Recognition:
    """Raises InvalidPool and UnfitText where the URL or what stands behind it cannot be used."""
    match = _URL.match(pasted.text)
    url = match[1] if match else pasted.text
    rest = pasted.text[match.end() :].strip() if match else ""
    url = check_address((url if "://" in url else f"http://{url}").rstrip(",;").strip("<>\"'"))
    if any(find_literal_keys(url)):
        raise InvalidPool([("text", "this address holds a key; take it out there and write it behind the address")])
    address = Address(url, _add_key(url, rest, settings))
    try:
        http_client.check_url(url, address.policy)
    except ValueError as error:
        raise InvalidPool([("text", str(error))]) from error
    key, headers = address.settings.key, dict(address.settings.headers)
    reach = {"allow_private": True} if settings.private else {}
    fields = {"source": "openapi", "url": url, "api_key": key, "server": {"headers": headers}, **reach}
    name = urlsplit(url).netloc

    async def list_offers() -> Sequence[Offer]:
        return await _ask(address, read_text)

    return Recognition(sources=(Source(name, f"Asks {url}", fields, list_offers),))


def _add_key(url: str, rest: str, settings: ImportSettings) -> ImportSettings:
    """The settings with the key that stands behind an address: a reference, a header, or the key itself."""
    text = _KEY_LABEL.sub("", rest).strip("\"'` ")
    if not text:
        return settings
    host = urlsplit(url).hostname or ""
    if REFERENCE.match(text):
        return replace(settings, key=settings.key or text)
    if header := _HEADER.match(rest):
        name, value = header[1], settings.keys.refer_setting(f"{host} {header[1]}", header[1], header[2])
        return replace(settings, headers={name: value, **settings.headers})
    provider = provider_of(url)
    usual = provider.key if provider and provider.key else f"{host} key"
    return replace(settings, key=settings.key or settings.keys.refer_setting(usual, "key", text).rpartition(" ")[2])


async def _ask(address: Address, read_text: ReadText) -> list[Offer]:
    """What an address offers. Raises InvalidPool or WorkerFault: what the likeliest way to ask it came to."""
    first: WorkerFault | InvalidPool | None = None
    for ask in _order_ways(address.url):
        try:
            if offers := await ask(address, read_text):
                return offers
        except WorkerFault as fault:
            first = first or fault
            if fault.code in ("connection", "address_refused", "bad_url", "timeout"):
                break  # nothing else answers there either
        except InvalidPool as error:
            first = first or error
    kinds = "an OpenAPI document, a list of models (/v1/models), an MCP server or an A2A agent card"
    reason = str(first) if first else "its answers are none of these"
    raise InvalidPool([("text", f"{address.url} gives neither {kinds}: {reason}")])


def _order_ways(url: str) -> list[Callable[[Address, ReadText], Awaitable[list[Offer]]]]:
    path = urlsplit(url).path
    if _MCP.search(path):
        return [_list_tools, _read_document, _list_models]
    if _DOCUMENT.search(path):
        return [_read_document, _list_models, _list_tools]
    return [_list_models, _read_document, _read_usual_document, _read_card, _list_tools]


async def _read_document(address: Address, read_text: ReadText) -> list[Offer]:
    from pool_registry.imports.openapi.operations import fetch

    text = await fetch(address.url, address.settings.private)
    recognition = read_text(text, replace(address.settings, source=address.url))
    return list(recognition.offers) if recognition is not None else []


async def _read_usual_document(address: Address, read_text: ReadText) -> list[Offer]:
    url = f"{address.url.rstrip('/')}/openapi.json"
    return await _read_document(Address(url, address.settings), read_text)


async def _read_card(address: Address, read_text: ReadText) -> list[Offer]:
    place = urlsplit(address.url)
    url = f"{place.scheme}://{place.netloc}/.well-known/agent-card.json"
    return await _read_document(Address(url, address.settings), read_text)


async def _list_models(address: Address, _read_text: ReadText) -> list[Offer]:
    place = _ENDPOINTS.sub("", address.url.partition("?")[0].rstrip("/")).rstrip("/")
    base = place if re.search(r"/v\d[\w.]*(?:/openai)?\Z", place) or provider_of(place) else f"{place}/v1"
    headers = dict(endpoints.key_header(address.settings.key))
    listing = await http_client.ask_json("GET", f"{base}/models", headers, LIST_S, policy=address.policy)
    server = read_listing(listing, base, _guess_server(base))
    if server is None:
        return []
    key, private = address.settings.key, address.settings.private
    names = FreeNames()
    specs = [make_model_worker(model, base, server.server, key, private) for model in server.models]
    named = [spec.model_copy(update={"name": names.choose(spec.name)}) for spec in specs]
    if not named:
        raise InvalidPool(
            [("text", f"{server.server} answers at {base}, but holds no model yet; load one there first")]
        )
    return [Offer(spec) for spec in named]


def _guess_server(base: str) -> str:
    place = urlsplit(base)
    if is_own_host(place.hostname or ""):
        return next((usual.usual for usual in USUAL_PORTS if usual.port == place.port), "")
    provider = provider_of(base)
    return provider.label if provider else ""


async def _list_tools(address: Address, _read_text: ReadText) -> list[Offer]:
    from pool_registry.imports.mcp import list_tools

    settings = address.settings
    name = settings.name or worker_name(urlsplit(address.url).hostname or "server")[:24].rstrip("_-")
    headers = dict(settings.headers) | ({"Authorization": f"Bearer {settings.key}"} if settings.key else {})
    server = McpServer(name=name, transport="http", url=address.url, headers=headers, allow_private=settings.private)
    return await list_tools(server)
