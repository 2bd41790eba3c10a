"""Agents on models of a server that answers: on this machine, or at an address that a person gives."""

from __future__ import annotations

from urllib.parse import urlsplit

from pool_registry.actions import JsonValue
from pool_registry.gallery.providers import provider_of
from pool_registry.imports import worker_name
from pool_registry.network.address_policy import is_own_host
from pool_registry.text import shorten
from pool_registry.worker import WorkerSpec

MAX_DESCRIPTION = 2000


def make_model_worker(
    model: str, base_url: str, server: str = "", api_key: str = "", private: bool = False
) -> WorkerSpec:
    """An agent on one model; `server` is what answers there, `api_key` a reference."""
    provider = provider_of(base_url)
    config: dict[str, JsonValue] = {**(provider.settings if provider else {}), "base_url": base_url, "model": model}
    config |= {"api_key": api_key} if api_key else {}
    config |= {"allow_private": True} if private else {}
    return WorkerSpec(
        name=worker_name(model.rpartition("/")[2]),
        kind="chat",
        description=describe_model(model, base_url, server),
        config=config,
        timeout_s=180,
    )


def describe_model(model: str, base_url: str, server: str = "") -> str:
    host = urlsplit(base_url).hostname or ""
    place = "on this machine" if is_own_host(host) else f"at {host}"
    return shorten(f"A language model {place} ({model}{f', {server}' if server else ''}).", MAX_DESCRIPTION)
