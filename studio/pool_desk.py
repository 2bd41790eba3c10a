"""What the Pool page can do: every command as a function of the store, without any page.

`handle` takes one command as a dict and returns the page's new state, or the problems by field; nothing
that a person typed is lost by a problem.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from orchestrator.trace import WorkerStats
from pool_registry.actions import as_text
from pool_registry.errors import InvalidPool, PoolError
from pool_registry.kinds import KINDS, PLAIN_WORDS, field_problems, kind_of, open_worker
from pool_registry.pool import Limits, Pool, check_pool, import_pool
from pool_registry.store import StoredPool
from pool_registry.worker import WorkerSpec
from studio.runtime import Runtime

# What a worker points at, by the field of its configuration that says it.
POINTERS = ("base_url", "database", "corpus", "orchestrator")
ADVANCED = (
    "timeout_s",
    "max_concurrency",
    "retries",
    "max_output_chars",
    "price_in",
    "price_out",
    "price_call",
)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command did: `said` is for a toast, `problems` belong to fields, `more` to the command."""

    said: str = ""
    problems: tuple[tuple[str, str], ...] = ()
    more: Mapping[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        return {"ok": not self.problems, "said": self.said, "problems": self.problems, **(self.more or {})}


class PoolDesk:
    """The commands of the Pool page."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._pools = runtime.store.pools
        self._commands: dict[str, Callable[[Mapping[str, Any]], Reply]] = {
            "show": self._show,
            "save_worker": self._save_worker,
            "remove_worker": self._remove_worker,
            "set_enabled": self._set_enabled,
            "check_worker": self._check_worker,
            "check_local": self._check_local,
            "try_worker": self._try_worker,
            "save_limits": self._save_limits,
            "restore": self._restore,
            "create": self._create,
            "import": self._import,
        }

    def handle(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do what `request["action"]` names. Never raises for what a person can mend."""
        command = self._commands.get(str(request.get("action")))
        if command is None:
            return Reply(problems=(("", f"there is no command {request.get('action')!r}"),)).document()
        try:
            return command(request).document()
        except InvalidPool as error:
            return Reply(problems=tuple(error.problems)).document()
        except PoolError as error:
            return Reply(problems=(("", str(error)),)).document()

    # State

    def _show(self, request: Mapping[str, Any]) -> Reply:
        names = self._pools.names()
        name = str(request.get("pool") or "")
        chosen = name if name in names else (names[0] if names else "")
        stored = None
        if chosen:
            stored = (
                self._pools.get(chosen, _version(request)) if request.get("version") else self._pools.latest(chosen)
            )
        return Reply(more={"state": self._state(names, stored)})

    def _state(self, names: list[str], stored: StoredPool | None) -> dict[str, Any]:
        return {
            "pools": names,
            "pool": self._pool_document(stored) if stored else None,
            "kinds": [kind_document(name) for name in KINDS],
            "limits_schema": Limits.model_json_schema(),
            "advanced_schema": advanced_schema(),
        }

    def _pool_document(self, stored: StoredPool) -> dict[str, Any]:
        pool = stored.pool
        versions = self._pools.versions(pool.name)
        stats = self._runtime.store.traces.worker_stats()
        return {
            "name": pool.name,
            "description": pool.description,
            "version": stored.version,
            "current": self._pools.latest(pool.name).version,
            "hash": pool.hash[:12],
            "limits": pool.limits.model_dump(),
            "workers": [self._worker_document(spec, stats.get(spec.name)) for spec in pool.workers],
            "versions": version_documents(versions),
        }

    def _worker_document(self, spec: WorkerSpec, stats: WorkerStats | None) -> dict[str, Any]:
        kind = KINDS.get(spec.kind)
        health = self._runtime.health.get(spec.model_dump_json())
        seen = stats or WorkerStats()
        return {
            **spec.model_dump(mode="json"),
            "role": kind.role if kind else "tool",
            "label": kind.label if kind else spec.kind,
            "points_at": points_at(spec),
            "remote": kind.load().remote if kind else False,
            "health": {"ok": health.ok, "text": health.text} if health else None,
            "calls": seen.calls,
            "success": seen.ok / seen.calls if seen.calls else None,
            "median_latency_s": seen.median_latency_s,
        }

    # Commands

    def _save_worker(self, request: Mapping[str, Any]) -> Reply:
        spec = spec_from(_object(request, "worker"))
        pool = self._pools.latest(_text(request, "pool")).pool
        replacing = request.get("replacing") or None
        others = {old.name for old in pool.workers if old.name != replacing}
        if spec.name in others:
            raise InvalidPool([("name", f"this pool has a worker {spec.name!r} already")])
        return self._saved(pool.with_worker(spec, replacing))

    def _remove_worker(self, request: Mapping[str, Any]) -> Reply:
        pool = self._pools.latest(_text(request, "pool")).pool
        return self._saved(pool.without_worker(_text(request, "name")))

    def _set_enabled(self, request: Mapping[str, Any]) -> Reply:
        pool = self._pools.latest(_text(request, "pool")).pool
        spec = pool.worker(_text(request, "name"))
        changed = spec.model_copy(update={"enabled": bool(request["enabled"])})
        return self._saved(pool.with_worker(changed, spec.name))

    def _save_limits(self, request: Mapping[str, Any]) -> Reply:
        pool = self._pools.latest(_text(request, "pool")).pool
        try:
            limits = Limits.model_validate(_object(request, "limits"))
        except ValidationError as error:
            raise InvalidPool(field_problems(error)) from error
        return self._saved(pool.model_copy(update={"limits": limits}))

    def _restore(self, request: Mapping[str, Any]) -> Reply:
        return self._saved(self._pools.get(_text(request, "pool"), _version(request)).pool)

    def _create(self, request: Mapping[str, Any]) -> Reply:
        name = str(request.get("name") or "")
        self._refuse_taken(name)
        source = request.get("copy_of")
        base = self._pools.latest(str(source)).pool if source else Pool(name="new")
        return self._saved(named(base, name))

    def _import(self, request: Mapping[str, Any]) -> Reply:
        pool = import_pool(str(request.get("text") or ""))
        name = str(request.get("name") or "") or pool.name
        self._refuse_taken(name)
        return self._saved(named(pool, name))

    def _check_worker(self, request: Mapping[str, Any]) -> Reply:
        spec = self._pools.latest(_text(request, "pool")).pool.worker(_text(request, "name"))
        health = self._runtime.check_workers([spec])[0]
        return Reply(said=f"{spec.name}: {health.text}", more={"health": {"ok": health.ok, "text": health.text}})

    def _check_local(self, request: Mapping[str, Any]) -> Reply:
        """Probe what has not been probed yet, but for workers whose probe would leave this machine."""
        stored = self._pools.latest(_text(request, "pool"))
        unknown = [spec for spec in stored.pool.enabled if spec.model_dump_json() not in self._runtime.health]
        self._runtime.check_workers([spec for spec in unknown if not kind_of(spec).load().remote])
        return Reply(more={"state": self._state(self._pools.names(), stored)})

    def _try_worker(self, request: Mapping[str, Any]) -> Reply:
        spec = spec_from(_object(request, "worker"))
        if "arguments" not in request:
            worker = open_worker(spec)
            takes_seen = KINDS[spec.kind].role == "agent" or bool(worker.sample_seen)
            return Reply(
                more={
                    "parameters": dict(worker.parameters),
                    "sample": dict(worker.sample),
                    "seen": worker.sample_seen if takes_seen else None,
                }
            )
        seen = self._runtime.try_worker(spec, _object(request, "arguments"), str(request.get("seen") or ""))
        return Reply(
            more={
                "observation": {
                    "status": seen.status.value,
                    "value": as_text(seen.value) if seen.ok else None,
                    "latency_s": seen.latency_s,
                    "tokens_in": seen.usage.tokens_in,
                    "tokens_out": seen.usage.tokens_out,
                    "cost": seen.usage.cost,
                    "error": f"{seen.error.code}: {seen.error.message}" if seen.error else None,
                }
            }
        )

    def _refuse_taken(self, name: str) -> None:
        if name in self._pools.names():
            raise InvalidPool([("name", f"there is a pool {name!r} already; choose another name")])

    def _saved(self, pool: Pool) -> Reply:
        stored = self._pools.save(pool)
        state = self._state(self._pools.names(), stored)
        return Reply(said=f"Saved as version {stored.version}", more={"state": state})


def _text(request: Mapping[str, Any], name: str) -> str:
    value = request.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidPool([(name, PLAIN_WORDS["missing"])])
    return value


def _object(request: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = request.get(name)
    if not isinstance(value, Mapping):
        raise InvalidPool([(name, PLAIN_WORDS["missing"])])
    return value


def _version(request: Mapping[str, Any]) -> int:
    try:
        return int(str(request.get("version")))
    except ValueError:
        raise InvalidPool([("version", "this is no version")]) from None


def spec_from(document: Mapping[str, Any]) -> WorkerSpec:
    """A worker from the form. Raises InvalidPool with every wrong field, `config.` before the kind's own."""
    known = {name: document[name] for name in WorkerSpec.model_fields if name in document}
    problems: list[tuple[str, str]] = []
    spec = None
    try:
        spec = WorkerSpec.model_validate(known)
    except ValidationError as error:
        problems += field_problems(error)
    # The kind's own fields are judged also when a common one is wrong: all problems at once.
    config = known.get("config")
    probe = spec or WorkerSpec(
        name="probe",
        kind=str(known.get("kind")),
        description="probe",
        config=config if isinstance(config, dict) else {},
    )
    try:
        check_pool(Pool(name="probe", workers=(probe,)))
    except InvalidPool as error:
        problems += [(where.removeprefix("workers.0."), what) for where, what in error.problems]
    if spec is None or problems:
        raise InvalidPool(problems)
    return spec


def named(pool: Pool, name: str) -> Pool:
    """`pool` under another name. Raises InvalidPool when that is no name."""
    try:
        return Pool.model_validate({**pool.model_dump(), "name": name})
    except ValidationError as error:
        raise InvalidPool(field_problems(error)) from error


def points_at(spec: WorkerSpec) -> str:
    """Where a worker's answers come from, in one line; keys are references and may be shown."""
    config = spec.config
    parts = [str(config[name]) for name in POINTERS if config.get(name)]
    if config.get("model"):
        parts.insert(0, str(config["model"]))
    return " · ".join(parts)


def kind_document(name: str) -> dict[str, Any]:
    """A kind and the JSON Schema of its configuration, from which the page builds the form."""
    kind = KINDS[name]
    schema = kind.load().Config.model_json_schema()
    return {
        "name": name,
        "label": kind.label,
        "role": kind.role,
        "summary": kind.summary,
        "schema": schema,
    }


def advanced_schema() -> dict[str, Any]:
    """The common fields of a worker that most people leave alone."""
    properties = WorkerSpec.model_json_schema()["properties"]
    return {"type": "object", "properties": {name: properties[name] for name in ADVANCED}}


def version_documents(versions: list[StoredPool]) -> list[dict[str, Any]]:
    """Every version, newest first, with what it changed against the one before."""
    older = [*versions[1:], None]
    return [
        {
            "version": stored.version,
            "created_at": stored.created_at.isoformat(),
            "hash": stored.pool.hash[:12],
            "workers": len(stored.pool.workers),
            "changes": changes(before.pool if before else None, stored.pool),
        }
        for stored, before in zip(versions, older, strict=True)
    ]


def changes(before: Pool | None, after: Pool) -> str:
    """What differs between two versions, in a line."""
    if before is None:
        return "first version"
    old = {spec.name: spec for spec in before.workers}
    new = {spec.name: spec for spec in after.workers}
    parts = [
        (f"added {_names(new.keys() - old.keys())}", new.keys() - old.keys()),
        (f"removed {_names(old.keys() - new.keys())}", old.keys() - new.keys()),
    ]
    changed = {name for name in old.keys() & new.keys() if old[name] != new[name]}
    parts.append((f"changed {_names(changed)}", changed))
    said = [text for text, names in parts if names]
    if before.limits != after.limits:
        said.append("changed limits")
    return ", ".join(said) or "changed order or description"


def _names(names: set[str]) -> str:
    return ", ".join(sorted(names))


def encode(document: Mapping[str, Any]) -> str:
    """A document as the page takes it: text, never an object (Gradio proxies objects deeply)."""
    return json.dumps(document, ensure_ascii=False)
