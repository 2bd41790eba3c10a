"""The part of a pool that can leave this machine: which workers travel, and the secrets they need where they go.

A worker stays when it needs a file, a program or an address of this machine. References become `env:` names of
the Space's own secrets; no worker may reach private addresses there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from pool_registry.kinds import KINDS
from pool_registry.network.address_policy import OPEN_WEB, OutOfReach, check, literal_address
from pool_registry.pool import Pool
from pool_registry.secrets import REFERENCE
from pool_registry.worker import WorkerSpec

# Computed in the Space itself, from packages and from data that our code generates.
SELF_CONTAINED = frozenset(
    {"calculator", "units", "calendar", "airports", "great_circle", "clock", "elements", "extractor", "memos",
     "python", "web_fetch", "orchestrator"}
)  # fmt: skip
URL_FIELDS = {"chat": "base_url", "http": "url", "openapi": "base_url", "space": "space"}
PRIVATE_NAMES = re.compile(r"(^|\.)(localhost|local|lan|home|internal|intranet|corp)$")


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret that the Space needs: its name there, the reference here, and who uses it."""

    name: str
    reference: str
    workers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Travellers:
    """What goes and what stays; `stays` is (worker, reason)."""

    pool: Pool
    stays: tuple[tuple[str, str], ...]
    secrets: tuple[Secret, ...]

    @property
    def modules(self) -> tuple[str, ...]:
        """The adapters of the workers that go, as module names."""
        kinds = {spec.kind for spec in self.pool.workers} | set(filter(None, map(_inner_kind, self.pool.workers)))
        return tuple(sorted(KINDS[kind].target.partition(":")[0] for kind in kinds))


def travellers(pool: Pool) -> Travellers:
    """Split a pool's enabled workers into those that can go and those that stay."""
    stays = [(spec.name, "it is switched off") for spec in pool.workers if not spec.enabled]
    going: list[WorkerSpec] = []
    secrets: dict[str, Secret] = {}
    for spec in pool.enabled:
        reason = stays_because(spec)
        if reason:
            stays.append((spec.name, reason))
        else:
            going.append(_dressed(spec, secrets))
    names = {spec.name for spec in going}
    whole = [spec if spec.fallback in names else spec.model_copy(update={"fallback": ""}) for spec in going]
    return Travellers(pool.model_copy(update={"workers": tuple(whole)}), tuple(stays), tuple(secrets.values()))


def stays_because(spec: WorkerSpec) -> str:
    """Why a worker cannot leave this machine; "" when it can."""
    config = spec.config
    if spec.kind in SELF_CONTAINED:
        return ""
    if spec.kind in URL_FIELDS:
        return _private(str(config.get(URL_FIELDS[spec.kind]) or "http://127.0.0.1"))
    if spec.kind == "mcp":
        server = config.get("server")
        table = server if isinstance(server, Mapping) else {}
        if table.get("transport", "stdio") == "stdio":
            return "its MCP server is a program on this machine"
        return _private(str(table.get("url")))
    if spec.kind == "sql":
        shipped = config.get("database") == "starter:ledger"
        return "" if shipped else "its database is a file on this machine, or a server that the Space cannot be given"
    if spec.kind == "search":
        return "" if config.get("corpus", "starter:factbook") == "starter:factbook" else "its corpus is a file here"
    if spec.kind == "documents":
        return "its documents are files on this machine"
    if spec.kind == "function":
        return "it runs a Python file of this machine"
    if spec.kind == "local_model":
        return _local_model(str(config.get("model", "")), str(config.get("adapter", "")))
    if spec.kind == "flaky":
        inner = _inner(spec)
        return stays_because(inner) if inner else "its inner tool cannot be read"
    return f"workers of kind {spec.kind} have not been taught to travel"


def _local_model(model: str, adapter: str) -> str:
    if model.startswith("hub:") and not adapter:
        return ""
    if model.startswith("starter:"):
        return "its model is converted from a package on this machine; use a model of the hub (hub:owner/name)"
    return "its model lies in a folder of this machine; publish it first and use hub:owner/name"


def _private(url: str) -> str:
    """Why a Space cannot reach this URL; "" when it can. A bare owner/name is a Space at Hugging Face."""
    host = urlsplit(url).hostname if "://" in url else "huggingface.co"
    if not host:
        return "its address cannot be read"
    address = literal_address(host)
    if address is not None:
        try:
            check(host, address, OPEN_WEB)
        except OutOfReach:
            return f"its endpoint {host} is on this machine or its network"
        return ""
    name = host.lower().rstrip(".")
    if "." not in name or PRIVATE_NAMES.search(name):
        return f"its endpoint {host} is on this machine or its network"
    return ""


def _dressed(spec: WorkerSpec, secrets: dict[str, Secret]) -> WorkerSpec:
    """A worker as the Space holds it: references to its secrets, no private addresses."""
    config = _rewritten(spec.config, spec.name, secrets)
    assert isinstance(config, dict)
    return spec.model_copy(update={"config": config})


def _rewritten(value: Any, worker: str, secrets: dict[str, Secret]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: False if key == "allow_private" else _rewritten(item, worker, secrets) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_rewritten(item, worker, secrets) for item in value]
    if isinstance(value, str):
        head, _, reference = value.rpartition(" ")
        if REFERENCE.match(reference):
            name = _secret_for(reference, worker, secrets)
            return f"{head} env:{name}" if head else f"env:{name}"
    return value


def _secret_for(reference: str, worker: str, secrets: dict[str, Secret]) -> str:
    known = next((secret for secret in secrets.values() if secret.reference == reference), None)
    if known is None:
        base = re.sub(r"[^A-Za-z0-9_]", "_", reference.partition(":")[2])
        name, count = base, 2
        while name in secrets:  # env:KEY and keyring:KEY are two secrets
            name, count = f"{base}_{count}", count + 1
        known = Secret(name, reference, ())
    if worker not in known.workers:
        known = replace(known, workers=(*known.workers, worker))
    secrets[known.name] = known
    return known.name


def _inner(spec: WorkerSpec) -> WorkerSpec | None:
    try:
        return WorkerSpec.model_validate(spec.config.get("inner"))
    except ValueError:
        return None


def _inner_kind(spec: WorkerSpec) -> str | None:
    inner = _inner(spec) if spec.kind == "flaky" else None
    return inner.kind if inner else None
