"""What an OpenAI-compatible endpoint is asked for besides chats: the list of its models. And how it gets its key."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from pool_registry.network import http_client
from pool_registry.network.address_policy import CONFIGURED, AddressPolicy
from pool_registry.network.http_values import resolve_key

LIST_S = 10.0  # seconds that an endpoint may take to list its models
ANTHROPIC = "api.anthropic.com"


async def models(base_url: str, api_key: str = "", policy: AddressPolicy = CONFIGURED) -> list[str]:
    """List the models of an OpenAI-compatible endpoint, in its order; `api_key` is a reference.

    Raises WorkerFault: `auth` when the key does not resolve or is refused, or what egress says.
    """
    base_url = base_url.rstrip("/")
    native = urlsplit(base_url).netloc == ANTHROPIC
    headers = key_header(api_key)
    if native and api_key:
        # Chat completions take a bearer there, the list of models does not (and has 20 entries a page).
        headers = {"x-api-key": headers["authorization"].removeprefix("Bearer "), "anthropic-version": "2023-06-01"}
    url = f"{base_url}/models{'?limit=1000' if native else ''}"
    return _names(await http_client.ask_json("GET", url, headers, LIST_S, policy=policy))


def key_header(api_key: str) -> dict[str, str]:
    """Return the header with the key behind a reference, or none. Raises WorkerFault `auth`."""
    return {"authorization": f"Bearer {resolve_key(api_key)}"} if api_key else {}


def _names(listing: Any) -> list[str]:
    """Normalize ids: Gemini lists `models/NAME`, but takes NAME."""
    entries = listing.get("data") if isinstance(listing, dict) else None
    if not isinstance(entries, list):
        return []
    named = [entry["id"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
    return [name.removeprefix("models/") for name in named if name]
