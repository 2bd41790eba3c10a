"""Find the model servers on this machine at the loopback ports where they usually listen.

Ollama, vLLM, LM Studio and llama.cpp all list their models at `/v1/models`; who answers is told by the
list itself (`owned_by`), and by the port where the list does not say. Nothing but 127.0.0.1 is asked, and
what a server says about itself is data: names are cut, odd entries are left out.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pool_registry.actions import JsonValue
from pool_registry.errors import WorkerFault
from pool_registry.network import http_client

PORTS_VARIABLE = "PODIUM_DISCOVER_PORTS"  # more ports, such as "8001,9000"
PROBE_S = 2.0  # loopback answers or refuses within milliseconds, unless the machine is very busy
MAX_MODELS = 200
MAX_NAME_CHARS = 200
_EMBEDS = re.compile(r"embed|rerank", re.IGNORECASE)  # these cannot chat
_OWNERS = {"vllm": "vLLM", "llamacpp": "llama.cpp", "organization_owner": "LM Studio", "library": "Ollama"}


@dataclass(frozen=True, slots=True)
class ServerPort:
    """A port of this machine and the server that usually listens there."""

    port: int
    usual: str = "OpenAI-compatible server"

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


OWN_NAME = "podium"  # what `podium serve` says of its models


@dataclass(frozen=True, slots=True)
class DetectedServer:
    """A server that answered, and the chat models it lists."""

    server: str
    base_url: str
    models: tuple[str, ...]


USUAL_PORTS = (
    ServerPort(11434, "Ollama"),
    ServerPort(8000, "vLLM"),
    ServerPort(1234, "LM Studio"),
    ServerPort(8080, "llama.cpp"),
)


def list_ports(environment: Mapping[str, str] = os.environ) -> tuple[ServerPort, ...]:
    """List the usual ports and those of `PODIUM_DISCOVER_PORTS`, without what is no port there."""
    extra = re.findall(r"\d{1,5}", environment.get(PORTS_VARIABLE, ""))
    usual_ports = {place.port for place in USUAL_PORTS}
    more = dict.fromkeys(port for port in map(int, extra) if 0 < port < 65536 and port not in usual_ports)
    return (*USUAL_PORTS, *map(ServerPort, more))


async def discover_servers(
    where: Sequence[ServerPort] | None = None, timeout_s: float | None = None
) -> list[DetectedServer]:
    """Return the servers that answer within `timeout_s` seconds (by default PROBE_S), all asked at once.

    They come in the order of `where`, by default `list_ports()`.
    """
    limit_s = PROBE_S if timeout_s is None else timeout_s
    servers = await asyncio.gather(*(_probe(place, limit_s) for place in (list_ports() if where is None else where)))
    return [server for server in servers if server is not None]


async def _probe(place: ServerPort, timeout_s: float) -> DetectedServer | None:
    """Ask what listens at `place`; None when nothing does, or something that is no model server."""
    try:
        async with asyncio.timeout(timeout_s):
            listing = await http_client.ask_json("GET", f"{place.base_url}/models", {}, timeout_s)
    except (WorkerFault, TimeoutError):
        return None
    if any(entry.get("owned_by") == OWN_NAME for entry in _entries(listing)):  # a pool that is served here calls itself
        return None
    return read_listing(listing, place.base_url, place.usual)


def read_listing(listing: JsonValue, base_url: str, usual: str) -> DetectedServer | None:
    """The server behind a list of models, by its own words or else the `usual` one; None where it is no such list."""
    if not isinstance(listing, dict) or "data" not in listing:
        return None
    entries = _entries(listing)  # none: it runs, but holds no model yet
    return DetectedServer(_server(entries, usual), base_url, _names(entries))


def _entries(listing: JsonValue) -> list[dict[str, JsonValue]]:
    data = listing.get("data") if isinstance(listing, dict) else None
    entries = data if isinstance(data, list) else []
    return [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]


def _server(entries: list[dict[str, JsonValue]], usual: str) -> str:
    owners = (_OWNERS.get(str(entry.get("owned_by"))) for entry in entries)
    return next((owner for owner in owners if owner), usual)


def _names(entries: list[dict[str, JsonValue]]) -> tuple[str, ...]:
    names = (str(entry["id"]) for entry in entries)
    fit = (
        name for name in names if 0 < len(name) <= MAX_NAME_CHARS and name.isprintable() and not _EMBEDS.search(name)
    )
    return tuple(dict.fromkeys(fit))[:MAX_MODELS]
