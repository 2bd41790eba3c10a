"""Builds what the Pool page shows: a pool, its workers with their lights, the kinds and their forms."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from pydantic import ValidationError

from orchestrator.traces.agent_track_record import SHOWN_EPISODES, build_track_record
from orchestrator.traces.store import WorkerStats
from pool_registry.actions import JsonValue
from pool_registry.calls.worker_state import has_effects
from pool_registry.deployment_mode import DeploymentMode
from pool_registry.errors import InvalidPool
from pool_registry.kinds import KINDS, icon_of, kind_of, load_config, open_worker, role_of
from pool_registry.pool import Limits, Pool
from pool_registry.pools.pool_diff import diff, summary
from pool_registry.processes.function_process import FunctionPermissions
from pool_registry.storage.pool_store import StoredPool
from pool_registry.worker import WorkerSpec
from studio.access.roles import current_rights
from studio.pages.pool.facts import build_facts
from studio.pages.pool.schema import (
    KindDocument,
    Place,
    PoolDocument,
    PoolPageState,
    VersionLine,
    WorkerCard,
    WorkerFacts,
)
from studio.runtime import Runtime
from studio.worker_health import WorkerHealth
from trainer.evaluation.judging import make_judge_key
from trainer.results.judge_agreement import describe_judges

# What a worker points at, by the field of its configuration that says it.
MEMORY_LIMITS = frozenset({"memory", "memory_retry"})  # of the limits, with a drawer of their own
POINTERS = ("base_url", "database", "corpus", "path", "url", "space", "target", "orchestrator")
COMMON = ("name", "kind", "description", "config", "enabled")
MAX_SUMMARIES = 2_000
_summaries: dict[tuple[str, str], str] = {}
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def build_page_state(
    runtime: Runtime, names: list[str], stored: StoredPool | None, read_only: bool = False
) -> PoolPageState:
    """Build everything that the page draws. `read_only`: only owners change this pool."""
    return PoolPageState(
        pools=names,
        pool=build_pool_document(runtime, stored) if stored else None,
        read_only=read_only,
        role=current_rights.get().role,
        kinds=[describe_kind(name) for name in KINDS],
        limits_schema=build_limits_schema(),
        mode_schema=DeploymentMode.model_json_schema(),
        advanced_schema=build_rare_fields_schema(),
    )


def build_limits_schema() -> dict[str, JsonValue]:
    """The form of the limits; the failure memory has a drawer of its own."""
    schema = Limits.model_json_schema()
    properties = {name: rule for name, rule in schema["properties"].items() if name not in MEMORY_LIMITS}
    return {**schema, "properties": properties}


def build_pool_document(runtime: Runtime, stored: StoredPool) -> PoolDocument:
    """One version of a pool."""
    pool, pools = stored.pool, runtime.store.pools
    versions, latest = pools.versions(pool.name), pools.latest(pool.name)
    health = runtime.list_health(pool)
    stats = runtime.store.traces.pool_stats(_list_alike(pool, versions))
    record = build_track_record(runtime.store.engine, pool.name, SHOWN_EPISODES)
    priced = [spec.name for spec in pool.workers if spec.has_price]
    averages = runtime.store.traces.read_call_averages(priced, pool.name)
    return PoolDocument(
        name=pool.name,
        description=pool.description,
        version=stored.version,
        current=latest.version,
        hash=pool.hash[:12],
        based_on=pool.hash,
        current_hash=latest.pool.hash,
        limits=pool.limits,
        mode=pool.mode,
        workers=[
            build_worker_card(
                spec,
                health[spec.name],
                stats.get(spec.name),
                build_facts(record, spec.name, SHOWN_EPISODES),
                averages[spec.name].cost if spec.name in averages else None,
            )
            for spec in pool.workers
        ],
        versions=list_versions(versions),
    )


def _list_alike(pool: Pool, versions: Sequence[StoredPool]) -> dict[str, set[str]]:
    """For each worker the hashes of the versions in which it was the same, but for its description and its switch."""
    alike: dict[str, set[str]] = {spec.name: set() for spec in pool.workers}
    workers = {spec.name: _drop_words(spec) for spec in pool.workers}
    for stored in versions:
        pool_hash = stored.pool.hash  # dear: once for a version, not for each of its workers
        for other in stored.pool.workers:
            if other.name in workers and _drop_words(other) == workers[other.name]:
                alike[other.name].add(pool_hash)
    return alike


def _drop_words(spec: WorkerSpec) -> WorkerSpec:
    return spec.model_copy(update={"description": "", "enabled": True})


def build_worker_card(
    spec: WorkerSpec,
    light: WorkerHealth,
    stats: WorkerStats | None,
    facts: WorkerFacts | None = None,
    cost_call: float | None = None,
) -> WorkerCard:
    """One card. `cost_call` is in US dollars."""
    kind = KINDS.get(spec.kind)
    seen = stats or WorkerStats()
    return WorkerCard(
        **dict(spec),
        role=role_of(spec.kind),
        icon=icon_of(spec.kind),
        label=kind.label if kind else spec.kind,
        points_at=describe_target(spec),
        remote=kind.load().remote if kind else False,
        place=find_place(spec),
        runs_program=runs_program(spec),
        isolated=kind.load().sandboxed if kind else False,  # its card says how well
        permissions=describe_permissions(spec),
        light=light,
        calls=seen.calls,
        success=seen.ok / seen.calls if seen.calls else None,
        median_latency_s=seen.median_latency_s,
        cost_call=cost_call,
        may_have_effects=may_have_effects(spec),
        graded=facts.graded if facts else 0,
        right=facts.right if facts else 0,
        facts=facts,
        agreement=" ".join(describe_judges([make_judge_key(spec)])) if spec.judge_only else "",
    )


def describe_target(spec: WorkerSpec) -> str:
    """Say in one line where a worker's answers come from; keys are references and may be shown."""
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


def find_place(spec: WorkerSpec) -> Place:
    """Say where a call goes: "here" (this process), "machine" (a server on it), or "remote"."""
    kind = KINDS.get(spec.kind)
    if kind is None or not kind.load().remote:
        return "here"
    server = spec.config.get("server")
    settings = server if isinstance(server, dict) else spec.config
    if settings.get("transport") == "stdio":
        return "machine"
    url = str(settings.get("base_url") or settings.get("url") or "")
    return "machine" if urlsplit(url).hostname in LOOPBACK else "remote"


def describe_permissions(spec: WorkerSpec) -> str:
    """What a Python function may reach in the sandbox, or "" (also for one that runs outside of it)."""
    if spec.kind != "function" or spec.config.get("permissions") is None:
        return ""
    try:
        return FunctionPermissions.model_validate(spec.config["permissions"]).describe()
    except ValidationError:
        return ""


def may_have_effects(spec: WorkerSpec) -> bool:
    """Whether a call may change something outside; nothing says that a worker which cannot be opened only reads."""
    try:
        return has_effects(spec, open_worker(spec))
    except InvalidPool:
        return True


def runs_program(spec: WorkerSpec) -> str:
    """What a call starts on this machine outside the sandbox, or "" (also when it is configured wrongly)."""
    try:
        return kind_of(spec).load().runs(load_config(spec))
    except InvalidPool:
        return ""


def describe_kind(name: str) -> KindDocument:
    """A kind and the JSON Schema of its configuration, from which the page builds the form."""
    kind = KINDS[name]
    return KindDocument(
        name=name,
        label=kind.label,
        role=kind.role,
        icon=kind.icon,
        summary=kind.summary,
        json_schema=kind.load().Config.model_json_schema(),
    )


def build_rare_fields_schema() -> dict[str, JsonValue]:
    """The common fields of a worker that most people leave alone."""
    schema = WorkerSpec.model_json_schema()
    properties = {name: rule for name, rule in schema["properties"].items() if name not in COMMON}
    return {"type": "object", "properties": properties, "$defs": schema.get("$defs", {})}


def list_versions(versions: list[StoredPool]) -> list[VersionLine]:
    """Every version, newest first, with what it changed against the one before."""
    older = [*versions[1:], None]
    return [
        VersionLine(
            version=stored.version,
            created_at=stored.created_at.isoformat(),
            hash=stored.pool.hash[:12],
            workers=len(stored.pool.workers),
            changes=_summarize(before.pool, stored.pool) if before else "first version",
        )
        for stored, before in zip(versions, older, strict=True)
    ]


def _summarize(before: Pool, after: Pool) -> str:
    """What one version changed against another; both stay as they are, so it is found once."""
    key = before.hash, after.hash
    if key not in _summaries:
        while len(_summaries) >= MAX_SUMMARIES:
            _summaries.pop(next(iter(_summaries)), None)
        _summaries[key] = summary(diff(before, after))
    return _summaries[key]
