"""The card of an agent that speaks A2A: one worker, which sends it messages where the card says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from pool_registry.actions import JsonValue
from pool_registry.imports import Offer, worker_name
from pool_registry.network.address_policy import is_own_host
from pool_registry.pasted.base import ImportSettings, PastedText, Recognition, UnfitText, check_address, refuse
from pool_registry.text import shorten
from pool_registry.worker import WorkerSpec

MAX_DESCRIPTION = 2000
BINDING = "JSONRPC"
NEEDS_KEY = "it needs a key: give a reference to it, such as env:NAME"


def is_agent_card(pasted: PastedText) -> bool:
    card = pasted.document
    if not isinstance(card, Mapping) or not isinstance(card.get("skills"), list):
        return False
    reached = card.keys() & {"url", "supportedInterfaces", "additionalInterfaces"}
    return bool(reached) and bool(card.keys() & {"protocolVersion", "capabilities", "defaultInputModes"})


def read_agent_card(pasted: PastedText, settings: ImportSettings) -> Recognition:
    card = pasted.document if isinstance(pasted.document, Mapping) else {}
    name = settings.name or str(card.get("name") or "agent")
    try:
        return Recognition((Offer(_make_worker(name, card, settings)),))
    except UnfitText as reason:
        return Recognition((refuse(name, "a2a", str(reason)),))


def _make_worker(name: str, card: Mapping[str, Any], settings: ImportSettings) -> WorkerSpec:
    """Raises UnfitText."""
    url, version = _choose_interface(card)
    source = settings.source
    if source and is_own_host(urlsplit(url).hostname or "") and not is_own_host(urlsplit(source).hostname or ""):
        raise UnfitText(f"a card from elsewhere names {urlsplit(url).netloc} as its address; paste the card itself")
    config: dict[str, JsonValue] = {"url": url, "version": version}
    auth = _read_auth(card)
    if auth is not None and not settings.key:
        raise UnfitText(NEEDS_KEY)
    config |= {"api_key": settings.key, "auth": dict(auth or {"kind": "bearer"})} if settings.key else {}
    config |= {"allow_private": True} if settings.private else {}
    described = " ".join(part for part in _list_words(card) if part) or f"The agent {name}."
    return WorkerSpec(
        name=worker_name(name),
        kind="a2a",
        description=shorten(described, MAX_DESCRIPTION),
        config=config,
        timeout_s=180,
    )


def _choose_interface(card: Mapping[str, Any]) -> tuple[str, str]:
    """The address for JSON-RPC and the version that is spoken there. Raises UnfitText."""
    interfaces = list(_list_interfaces(card))
    for url, binding, version in interfaces:
        if binding.upper() == BINDING:
            return check_address(url), "1.0" if version.startswith("1") else "0.3"
    others = ", ".join(dict.fromkeys(binding for _, binding, _ in interfaces)) or "none"
    raise UnfitText(f"it has no address for JSON-RPC, the only way that a worker speaks A2A; it has: {others}")


def _list_interfaces(card: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The address, binding and version of each interface, the preferred one first."""
    spoken = str(card.get("protocolVersion") or "0.3")
    if isinstance(card.get("url"), str):
        yield card["url"], str(card.get("preferredTransport") or BINDING), spoken
    for field in ("supportedInterfaces", "additionalInterfaces"):
        entries = card.get(field)
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, Mapping) and isinstance(entry.get("url"), str):
                binding = str(entry.get("protocolBinding") or entry.get("transport") or "")
                usual = "1.0" if field == "supportedInterfaces" else spoken
                yield entry["url"], binding, str(entry.get("protocolVersion") or usual)


def _read_auth(card: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Where the card wants its key; None where it wants none. Raises UnfitText for one that cannot be sent."""
    needed = card.get("security") or card.get("securityRequirements")
    schemes = card.get("securitySchemes")
    if not needed or not isinstance(schemes, Mapping) or not schemes:
        return {"kind": "bearer"} if needed else None
    ways = [way for scheme in schemes.values() if (way := _read_scheme(scheme)) is not None]
    if not ways:
        raise UnfitText("it wants to be signed in to in a way that a worker cannot")
    return ways[0]


def _read_scheme(scheme: Any) -> Mapping[str, str] | None:
    """A scheme as 0.3 writes it (as OpenAPI does), or as 1.0 does; None for one that a key alone does not meet."""
    if not isinstance(scheme, Mapping):
        return None
    key = scheme.get("apiKeySecurityScheme", scheme if scheme.get("type") == "apiKey" else None)
    if isinstance(key, Mapping):
        place = str(key.get("location") or key.get("in") or "header").lower()
        return {"kind": place, "name": str(key.get("name") or "")} if place in ("header", "query", "cookie") else None
    http = scheme.get("httpAuthSecurityScheme", scheme if scheme.get("type") == "http" else None)
    if isinstance(http, Mapping):
        kind = str(http.get("scheme") or "").lower()
        return {"kind": kind} if kind in ("bearer", "basic") else None
    tokens = {"oauth2SecurityScheme", "openIdConnectSecurityScheme"} & scheme.keys()
    return {"kind": "bearer"} if tokens or scheme.get("type") in ("oauth2", "openIdConnect") else None


def _list_words(card: Mapping[str, Any]) -> Iterator[str]:
    """What the card says of the agent and of each skill."""
    yield " ".join(str(card.get("description") or "").split())
    for skill in card["skills"]:
        if isinstance(skill, Mapping) and isinstance(skill.get("name"), str):
            about = " ".join(str(skill.get("description") or "").split())
            yield f"{skill['name']}: {about}" if about else skill["name"]
