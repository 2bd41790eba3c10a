"""What the Pool page shows, as JSON: a pool, its workers with their lights, the kinds and their forms."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from orchestrator.traces.store import WorkerStats
from pool_registry.errors import InvalidPool
from pool_registry.kinds import KINDS, icon_of, kind_of, load_config, role_of
from pool_registry.pool import Limits, Pool
from pool_registry.pool_diff import diff, summary
from pool_registry.storage.pool_store import StoredPool
from pool_registry.worker import WorkerSpec
from studio.runtime import Runtime

# What a worker points at, by the field of its configuration that says it.
POINTERS = ("base_url", "database", "corpus", "path", "url", "space", "target", "orchestrator")
COMMON = ("name", "kind", "description", "config", "enabled")
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def build_page_state(runtime: Runtime, names: list[str], stored: StoredPool | None) -> dict[str, Any]:
    """Everything that the page draws."""
    return {
        "pools": names,
        "pool": build_pool_document(runtime, stored) if stored else None,
        "kinds": [describe_kind(name) for name in KINDS],
        "limits_schema": build_limits_schema(),
        "advanced_schema": build_rare_fields_schema(),
    }


def build_limits_schema() -> dict[str, Any]:
    """The form of the limits; the failure memory has a drawer of its own."""
    schema = Limits.model_json_schema()
    return {**schema, "properties": {name: rule for name, rule in schema["properties"].items() if name != "memory"}}


def build_pool_document(runtime: Runtime, stored: StoredPool) -> dict[str, Any]:
    """One version of a pool."""
    pool, pools = stored.pool, runtime.store.pools
    stats = runtime.store.traces.worker_stats()
    return {
        "name": pool.name,
        "description": pool.description,
        "version": stored.version,
        "current": pools.latest(pool.name).version,
        "hash": pool.hash[:12],
        "limits": pool.limits.model_dump(),
        "workers": [build_worker_card(runtime, pool, spec, stats.get(spec.name)) for spec in pool.workers],
        "versions": list_versions(pools.versions(pool.name)),
    }


def build_worker_card(runtime: Runtime, pool: Pool, spec: WorkerSpec, stats: WorkerStats | None) -> dict[str, Any]:
    """One card."""
    kind = KINDS.get(spec.kind)
    seen = stats or WorkerStats()
    return {
        **spec.model_dump(mode="json"),
        "role": role_of(spec.kind),
        "icon": icon_of(spec.kind),
        "label": kind.label if kind else spec.kind,
        "points_at": describe_target(spec),
        "remote": kind.load().remote if kind else False,
        "place": find_place(spec),
        "runs_program": runs_program(spec),
        "isolated": kind.load().sandboxed if kind else False,  # its card says how well
        "light": runtime.worker_health(spec, pool.name).document(),
        "calls": seen.calls,
        "success": seen.ok / seen.calls if seen.calls else None,
        "median_latency_s": seen.median_latency_s,
    }


def describe_target(spec: WorkerSpec) -> str:
    """Where a worker's answers come from, in one line; keys are references and may be shown."""
    config = spec.config
    parts = [str(config[name]) for name in POINTERS if config.get(name)]
    if config.get("model"):
        parts.insert(0, str(config["model"]))
    server = config.get("server")
    if isinstance(server, dict):
        arguments = server.get("args")
        command = [str(server.get("command", "")), *(arguments if isinstance(arguments, list) else [])]
        parts.append(str(server.get("url") or " ".join(map(str, command))))
    return " · ".join(parts)


def find_place(spec: WorkerSpec) -> str:
    """Where a call goes: "here" (this process), "machine" (a server on it), or "remote"."""
    kind = KINDS.get(spec.kind)
    if kind is None or not kind.load().remote:
        return "here"
    server = spec.config.get("server")
    settings = server if isinstance(server, dict) else spec.config
    if settings.get("transport") == "stdio":
        return "machine"
    url = str(settings.get("base_url") or settings.get("url") or "")
    return "machine" if urlsplit(url).hostname in LOOPBACK else "remote"


def runs_program(spec: WorkerSpec) -> str:
    """What a call starts on this machine outside the sandbox, or "" (also when it is configured wrongly)."""
    try:
        return kind_of(spec).load().runs(load_config(spec))
    except InvalidPool:
        return ""


def describe_kind(name: str) -> dict[str, Any]:
    """A kind and the JSON Schema of its configuration, from which the page builds the form."""
    kind = KINDS[name]
    return {
        "name": name,
        "label": kind.label,
        "role": kind.role,
        "icon": kind.icon,
        "summary": kind.summary,
        "schema": kind.load().Config.model_json_schema(),
    }


def build_rare_fields_schema() -> dict[str, Any]:
    """The common fields of a worker that most people leave alone."""
    schema = WorkerSpec.model_json_schema()
    properties = {name: rule for name, rule in schema["properties"].items() if name not in COMMON}
    return {"type": "object", "properties": properties, "$defs": schema.get("$defs", {})}


def list_versions(versions: list[StoredPool]) -> list[dict[str, Any]]:
    """Every version, newest first, with what it changed against the one before."""
    older = [*versions[1:], None]
    return [
        {
            "version": stored.version,
            "created_at": stored.created_at.isoformat(),
            "hash": stored.pool.hash[:12],
            "workers": len(stored.pool.workers),
            "changes": summary(diff(before.pool, stored.pool)) if before else "first version",
        }
        for stored, before in zip(versions, older, strict=True)
    ]
