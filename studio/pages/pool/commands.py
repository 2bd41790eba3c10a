"""What the Pool page can do: every command as a function of the store, without any page.

`handle` takes one command as a dict and returns the page's new state, or the problems by field; nothing
that a person typed is lost by a problem. The gallery's and the importers' commands are in files of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from pool_registry.errors import InvalidPool
from pool_registry.kinds import KINDS, field_problems, kind_of, open_worker
from pool_registry.pool import Limits, Pool, disarm_pool, import_pool
from pool_registry.storage.pool_store import StoredPool
from studio.frame.commands import Command, Reply, answered, table, text, version, words
from studio.pages.pool.documents import runs_program, state_document
from studio.pages.pool.forms import named, placed, spec_from
from studio.pages.pool.gallery_commands import GalleryDesk
from studio.pages.pool.import_commands import ImportDesk
from studio.pages.pool.memory_commands import MemoryDesk
from studio.pages.pool.try_worker import alone, arguments_for, observation_document
from studio.pages.pool.version_diff import diff_document
from studio.runtime import Runtime


class PoolDesk:
    """The commands of the Pool page."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._pools = runtime.store.pools
        self._commands: dict[str, Command] = {
            "show": self._show,
            "save_worker": self._save_worker,
            "remove_worker": self._remove_worker,
            "set_enabled": self._set_enabled,
            "check_worker": self._check_worker,
            "check_local": self._check_local,
            "try_worker": self._try_worker,
            "save_limits": self._save_limits,
            "compare": self._compare,
            "restore": self._restore,
            "create": self._create,
            "import": self._import,
            **GalleryDesk(runtime, self._saved).commands,
            **ImportDesk(runtime, self._saved).commands,
            **MemoryDesk(runtime, self._saved).commands,
        }

    def handle(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do what `request["action"]` names. Never raises for what a person can mend."""
        return answered(self._commands, request)

    # State

    def _show(self, request: Mapping[str, Any]) -> Reply:
        names = self._pools.names()
        name = str(request.get("pool") or "")
        chosen = name if name in names else (names[0] if names else "")
        stored = None
        if chosen:
            stored = self._pools.get(chosen, version(request)) if request.get("version") else self._pools.latest(chosen)
        return self._state(stored)

    def _state(self, stored: StoredPool | None, said: str = "", **more: Any) -> Reply:
        state = state_document(self._runtime, self._pools.names(), stored)
        return Reply(said=said, more={"state": state, **more})

    def _saved(self, pool: Pool, said: str = "", **more: Any) -> Reply:
        stored = self._pools.save(pool)
        return self._state(stored, said or f"Saved as version {stored.version}", **more)

    # Workers

    def _save_worker(self, request: Mapping[str, Any]) -> Reply:
        spec = spec_from(table(request, "worker"))
        pool = self._pools.latest(text(request, "pool")).pool
        replacing = request.get("replacing") or None
        others = {old.name for old in pool.workers if old.name != replacing}
        if spec.name in others:
            raise InvalidPool([("name", f"this pool has a worker {spec.name!r} already")])
        return self._saved(placed(pool, spec, replacing))

    def _remove_worker(self, request: Mapping[str, Any]) -> Reply:
        pool = self._pools.latest(text(request, "pool")).pool
        return self._saved(pool.without_worker(text(request, "name")))

    def _set_enabled(self, request: Mapping[str, Any]) -> Reply:
        pool = self._pools.latest(text(request, "pool")).pool
        spec = pool.worker(text(request, "name"))
        changed = spec.model_copy(update={"enabled": bool(request["enabled"])})
        return self._saved(pool.with_worker(changed, spec.name))

    def _check_worker(self, request: Mapping[str, Any]) -> Reply:
        spec = self._pools.latest(text(request, "pool")).pool.worker(text(request, "name"))
        health = self._runtime.check_workers([spec])[0]
        return Reply(said=f"{spec.name}: {health.text}", more={"health": {"ok": health.ok, "text": health.text}})

    def _check_local(self, request: Mapping[str, Any]) -> Reply:
        """Probe what has not been probed yet, but for workers whose probe leaves this process or starts a program."""
        stored = self._pools.latest(text(request, "pool"))
        unknown = [spec for spec in stored.pool.enabled if spec.model_dump_json() not in self._runtime.probes]
        near = [spec for spec in unknown if not kind_of(spec).load().remote and not runs_program(spec)]
        self._runtime.check_workers(near)
        return self._state(stored)

    def _try_worker(self, request: Mapping[str, Any]) -> Reply:
        spec = spec_from(table(request, "worker"))
        if "arguments" not in request:
            worker = open_worker(spec)
            takes_seen = KINDS[spec.kind].role == "agent" or bool(worker.sample_seen)
            return Reply(
                more={
                    "parameters": dict(worker.parameters),
                    "sample": arguments_for(worker),
                    "seen": worker.sample_seen if takes_seen else None,
                }
            )
        seen = self._runtime.try_worker(alone(spec), table(request, "arguments"), str(request.get("seen") or ""))
        return Reply(more={"observation": observation_document(seen)})

    # Pools and versions

    def _save_limits(self, request: Mapping[str, Any]) -> Reply:
        pool = self._pools.latest(text(request, "pool")).pool
        try:
            limits = Limits.model_validate({"memory": pool.limits.memory, **table(request, "limits")})
        except ValidationError as error:
            raise InvalidPool(field_problems(error)) from error
        return self._saved(pool.model_copy(update={"limits": limits}))

    def _compare(self, request: Mapping[str, Any]) -> Reply:
        name = text(request, "pool")
        before, after = (self._pools.get(name, version(request, end)).pool for end in ("before", "after"))
        return Reply(more={"diff": diff_document(before, after)})

    def _restore(self, request: Mapping[str, Any]) -> Reply:
        return self._saved(self._pools.get(text(request, "pool"), version(request)).pool)

    def _create(self, request: Mapping[str, Any]) -> Reply:
        name = str(request.get("name") or "")
        self._refuse_taken(name)
        source = request.get("copy_of")
        base = self._pools.latest(str(source)).pool if source else Pool(name="new")
        return self._saved(named(base, name))

    def _import(self, request: Mapping[str, Any]) -> Reply:
        """Another person's pool. What would run programs on this machine arrives switched off."""
        pool = import_pool(str(request.get("text") or ""))
        name = words(request, "name") or pool.name
        self._refuse_taken(name)
        safe, notes = disarm_pool(pool)
        return self._saved(named(safe, name), "; ".join(("Imported", *notes)) if notes else "")

    def _refuse_taken(self, name: str) -> None:
        if name in self._pools.names():
            raise InvalidPool([("name", f"there is a pool {name!r} already; choose another name")])
