"""The commands of the Pool page; most return the page's new state.

Those of the gallery, the importers, the failure memory, bindings, training and evidence have files of their own.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from pool_registry.errors import InvalidPool
from pool_registry.kinds import KINDS, field_problems, kind_of, open_worker
from pool_registry.pool import Limits, Pool, disarm_pool, import_pool
from pool_registry.storage.pool_store import StoredPool
from studio.frame.commands import Fields, PageCommands, PageReply, table, text, version, words
from studio.pages.pool.binding_commands import BindingCommands
from studio.pages.pool.documents import build_page_state, runs_program
from studio.pages.pool.evidence_commands import EvidenceCommands
from studio.pages.pool.forms import parse_worker, place_worker, rename_pool
from studio.pages.pool.gallery_commands import GalleryCommands
from studio.pages.pool.import_commands import ImportCommands
from studio.pages.pool.memory_commands import MemoryCommands
from studio.pages.pool.training_commands import TrainingCommands
from studio.pages.pool.try_worker import alone, build_observation, make_arguments
from studio.pages.pool.version_diff import build_version_diff
from studio.runtime import Runtime


class PoolCommands(PageCommands):
    """The commands of the Pool page."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._pools = runtime.store.pools
        self.commands = {
            "show": self._show,
            "save_worker": self._save_worker,
            "remove_worker": self._remove_worker,
            "set_enabled": self._set_enabled,
            "set_description": self._set_description,
            "check_worker": self._check_worker,
            "check_local": self._check_local,
            "try_worker": self._try_worker,
            "save_limits": self._save_limits,
            "compare": self._compare,
            "restore": self._restore,
            "create": self._create,
            "import": self._import,
            **GalleryCommands(runtime, self._save).commands,
            **ImportCommands(runtime, self._save).commands,
            **MemoryCommands(runtime, self._save).commands,
            **BindingCommands(runtime).commands,
            **TrainingCommands(runtime).commands,
            **EvidenceCommands(runtime).commands,
        }

    # State

    def _show(self, fields: Fields) -> PageReply:
        names = self._pools.names()
        name = str(fields.get("pool") or "")
        chosen = name if name in names else (names[0] if names else "")
        stored = None
        if chosen:
            stored = self._pools.get(chosen, version(fields)) if fields.get("version") else self._pools.latest(chosen)
        return self._state(stored)

    def _state(self, stored: StoredPool | None, message: str = "", **more: Any) -> PageReply:
        state = build_page_state(self._runtime, self._pools.names(), stored)
        return PageReply(message=message, fields={"state": state, **more})

    def _save(self, pool: Pool, message: str = "", **more: Any) -> PageReply:
        stored = self._pools.save(pool)
        return self._state(stored, message or f"Saved as version {stored.version}", **more)

    # Workers

    def _save_worker(self, fields: Fields) -> PageReply:
        spec = parse_worker(table(fields, "worker"))
        pool = self._pools.latest(text(fields, "pool")).pool
        replacing = fields.get("replacing") or None
        others = {old.name for old in pool.workers if old.name != replacing}
        if spec.name in others:
            raise InvalidPool([("name", f"this pool has a worker {spec.name!r} already")])
        return self._save(place_worker(pool, spec, replacing))

    def _remove_worker(self, fields: Fields) -> PageReply:
        pool = self._pools.latest(text(fields, "pool")).pool
        return self._save(pool.without_worker(text(fields, "name")))

    def _set_enabled(self, fields: Fields) -> PageReply:
        pool = self._pools.latest(text(fields, "pool")).pool
        spec = pool.worker(text(fields, "name"))
        changed = spec.model_copy(update={"enabled": bool(fields["enabled"])})
        return self._save(pool.with_worker(changed, spec.name))

    def _set_description(self, fields: Fields) -> PageReply:
        """Another description of a worker, and nothing else of it."""
        pool = self._pools.latest(text(fields, "pool")).pool
        spec = pool.worker(text(fields, "name"))
        document = {**spec.model_dump(mode="json"), "description": text(fields, "description")}
        return self._save(place_worker(pool, parse_worker(document), spec.name))

    def _check_worker(self, fields: Fields) -> PageReply:
        spec = self._pools.latest(text(fields, "pool")).pool.worker(text(fields, "name"))
        health = self._runtime.check_workers([spec])[0]
        return PageReply(
            message=f"{spec.name}: {health.text}", fields={"health": {"ok": health.ok, "text": health.text}}
        )

    def _check_local(self, fields: Fields) -> PageReply:
        """Probe what has not been probed yet, but for workers whose probe leaves this process or starts a program."""
        stored = self._pools.latest(text(fields, "pool"))
        unknown = [spec for spec in stored.pool.enabled if spec.model_dump_json() not in self._runtime.probes]
        near = [spec for spec in unknown if not kind_of(spec).load().remote and not runs_program(spec)]
        self._runtime.check_workers(near)
        return self._state(stored)

    def _try_worker(self, fields: Fields) -> PageReply:
        spec = parse_worker(table(fields, "worker"))
        if "arguments" not in fields:
            worker = open_worker(spec)
            takes_seen = KINDS[spec.kind].role == "agent" or bool(worker.sample_seen)
            return PageReply(
                fields={
                    "parameters": dict(worker.parameters),
                    "sample": make_arguments(worker),
                    "seen": worker.sample_seen if takes_seen else None,
                }
            )
        seen = self._runtime.try_worker(alone(spec), table(fields, "arguments"), str(fields.get("seen") or ""))
        return PageReply(fields={"observation": build_observation(seen)})

    # Pools and versions

    def _save_limits(self, fields: Fields) -> PageReply:
        pool = self._pools.latest(text(fields, "pool")).pool
        try:
            limits = Limits.model_validate({"memory": pool.limits.memory, **table(fields, "limits")})
        except ValidationError as error:
            raise InvalidPool(field_problems(error)) from error
        return self._save(pool.model_copy(update={"limits": limits}))

    def _compare(self, fields: Fields) -> PageReply:
        name = text(fields, "pool")
        before, after = (self._pools.get(name, version(fields, end)).pool for end in ("before", "after"))
        return PageReply(fields={"diff": build_version_diff(before, after)})

    def _restore(self, fields: Fields) -> PageReply:
        return self._save(self._pools.get(text(fields, "pool"), version(fields)).pool)

    def _create(self, fields: Fields) -> PageReply:
        name = str(fields.get("name") or "")
        self._refuse_taken(name)
        source = fields.get("copy_of")
        base = self._pools.latest(str(source)).pool if source else Pool(name="new")
        return self._save(rename_pool(base, name))

    def _import(self, fields: Fields) -> PageReply:
        """Another person's pool. What would run programs on this machine arrives switched off."""
        pool = import_pool(str(fields.get("text") or ""))
        name = words(fields, "name") or pool.name
        self._refuse_taken(name)
        safe, notes = disarm_pool(pool)
        return self._save(rename_pool(safe, name), "; ".join(("Imported", *notes)) if notes else "")

    def _refuse_taken(self, name: str) -> None:
        if name in self._pools.names():
            raise InvalidPool([("name", f"there is a pool {name!r} already; choose another name")])
