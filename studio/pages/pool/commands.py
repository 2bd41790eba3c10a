"""The commands of the Pool page; most return the page's new state.

Those of the gallery, the importers, the failure memory, skills, bindings, training and evidence have files of their
own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from pool_registry.deployment_mode import DeploymentMode
from pool_registry.errors import InvalidPool
from pool_registry.kinds import KINDS, field_problems, kind_of, open_worker
from pool_registry.pool import Limits, Pool, import_pool, rename_pool
from pool_registry.pools.pool_merge import EditConflict
from pool_registry.schemas.result_outline import format_fields
from pool_registry.storage.pool_store import StoredPool
from pool_registry.wants import disarm_pool, list_new_wants, list_wants
from pool_registry.worker import WorkerSpec
from studio.access.permissions import find_need
from studio.access.pool_rights import ReadOnlyPools, check_worker, check_workers
from studio.access.roles import UserRole, current_rights
from studio.frame.commands import Command, Fields, PageCommands, PageReply, command, flag, table, text, version, words
from studio.pages.pool.adding.gallery_commands import GalleryCommands
from studio.pages.pool.adding.import_commands import ImportCommands
from studio.pages.pool.adding.paste_commands import PasteCommands, explain_text
from studio.pages.pool.binding_commands import BindingCommands
from studio.pages.pool.documents import MEMORY_LIMITS, build_page_state, runs_program
from studio.pages.pool.edits import build_conflict, describe_saved
from studio.pages.pool.facts_commands import FactsCommands
from studio.pages.pool.forms import parse_worker, place_worker
from studio.pages.pool.learning.evidence_commands import EvidenceCommands
from studio.pages.pool.learning.memory_commands import MemoryCommands
from studio.pages.pool.learning.skill_commands import SkillCommands
from studio.pages.pool.learning.training_commands import TrainingCommands
from studio.pages.pool.manage_commands import ManageCommands
from studio.pages.pool.schema import TryForm
from studio.pages.pool.try_worker import alone, build_observation, make_arguments
from studio.pages.pool.version_diff import build_version_diff
from studio.runtime import Runtime


class PoolCommands(PageCommands):
    """The commands of the Pool page."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._pools = runtime.store.pools
        self._read_only = ReadOnlyPools(runtime.store.engine)
        self.parts = (
            GalleryCommands(runtime, self._edit),
            ImportCommands(runtime, self._edit),
            PasteCommands(runtime),
            MemoryCommands(runtime, self._edit),
            SkillCommands(runtime, self._edit),
            BindingCommands(runtime),
            TrainingCommands(runtime),
            FactsCommands(runtime),
            EvidenceCommands(runtime),
            ManageCommands(runtime, self._show),
        )

    def check(self, command: Command, fields: Fields) -> None:
        """Raise RoleRefused, too, where others than owners would change a pool that is shared read-only."""
        super().check(command, fields)
        need = find_need(command)
        if need is not None and need.edits_pool:
            self._read_only.check(str(fields.get("pool") or ""))

    # State

    @command("viewer")
    def _show(self, fields: Fields) -> PageReply:
        names = self._pools.names()
        name = str(fields.get("pool") or "")
        chosen = name if name in names else (names[0] if names else "")
        stored = None
        if chosen:
            stored = self._pools.get(chosen, version(fields)) if fields.get("version") else self._pools.latest(chosen)
        return self._state(stored)

    def _state(self, stored: StoredPool | None, message: str = "", **more: Any) -> PageReply:
        read_only = stored is not None and self._read_only.holds(stored.pool.name)
        state = build_page_state(self._runtime, self._pools.names(), stored, read_only)
        return PageReply(message=message, fields={"state": state.to_json(), **more})

    def _edit(self, fields: Fields, change: Callable[[Pool], Pool], based_on: str | None = None) -> PageReply:
        """Change a pool and save it, in one transaction; the page's new state, or what is in the way.

        `based_on` is the hash of the content that `change` is made to, by default the one that the page names; "" is
        the current version.
        """

        def apply(base: Pool) -> Pool:
            changed = change(base)
            check_workers(changed, base)
            return changed

        seen = str(fields.get("based_on") or "") if based_on is None else based_on
        try:
            saved = self._pools.edit(text(fields, "pool"), apply, seen)
        except AskFirst as question:
            return question.reply
        except EditConflict as conflict:
            document = build_conflict(conflict)
            return PageReply(problems=tuple(conflict.problems), fields={"conflict": document.to_json()})
        return self._state(saved.stored, describe_saved(saved))

    def _create_pool(self, pool: Pool, origin: Pool | None) -> PageReply:
        """Save a new pool that was made from `origin`."""
        check_workers(pool, origin)
        stored = self._pools.create(pool)
        return self._state(stored, f"Saved as version {stored.version}")

    def _find_latest(self, name: str) -> Pool | None:
        return self._pools.latest(name).pool if name in self._pools.names() else None

    # Workers

    @command("editor", edits_pool=True)
    def _save_worker(self, fields: Fields) -> PageReply:
        spec, replacing = parse_worker(table(fields, "worker")), str(fields.get("replacing") or "")

        def change(pool: Pool) -> Pool:
            if spec.name in {old.name for old in pool.workers if old.name != replacing}:
                raise InvalidPool([("name", f"this pool has a worker {spec.name!r} already")])
            # Who types a worker sees what it wants. An edit of one may change half of a sentence, and is asked about.
            if replacing:
                require_consent(fields, list_new_wants(spec, pool.find_worker(replacing)))
            return place_worker(pool, spec, replacing or None)

        return self._edit(fields, change, None if replacing else "")

    @command("editor", edits_pool=True)
    def _remove_worker(self, fields: Fields) -> PageReply:
        name = text(fields, "name")
        return self._edit(fields, lambda pool: pool.without_worker(name))

    @command("editor", edits_pool=True)
    def _set_enabled(self, fields: Fields) -> PageReply:
        name, enabled = text(fields, "name"), flag(fields, "enabled")

        def change(pool: Pool) -> Pool:
            spec = pool.worker(name)
            changed = spec.model_copy(update={"enabled": enabled})
            require_consent(fields, list_new_wants(changed, spec))
            return pool.with_worker(changed, name)

        return self._edit(fields, change)

    @command("editor", edits_pool=True)
    def _set_description(self, fields: Fields) -> PageReply:
        """Change the description of a worker, and nothing else of it."""
        name, description = text(fields, "name"), text(fields, "description")

        def change(pool: Pool) -> Pool:
            document = {**pool.worker(name).model_dump(mode="json"), "description": description}
            return place_worker(pool, parse_worker(document), name)

        return self._edit(fields, change)

    @command("owner", edits_pool=True)
    def _switch_on(self, fields: Fields) -> PageReply:
        """Switch on the workers of an imported pool that a person has ticked; `workers` says what each was seen to
        want."""
        seen = table(fields, "workers")

        def change(pool: Pool) -> Pool:
            for name, wants in seen.items():
                spec = pool.worker(name)
                if wants != list_wants(spec):
                    raise InvalidPool([("", f"{name} has changed meanwhile; look again at what it wants")])
                pool = pool.with_worker(spec.model_copy(update={"enabled": True}), name)
            return pool

        return self._edit(fields, change, "").extend(f"Switched on: {', '.join(seen) or 'none'}")

    def _refuse_unseen(self, fields: Fields, spec: WorkerSpec) -> PageReply | None:
        """The question to ask before a stored worker that is off is called: its address and keys may be anybody's."""
        name = str(fields.get("pool") or "")
        stored = self._pools.latest(name).pool.find_worker(spec.name) if name in self._pools.names() else None
        return ask_consent(fields, list_wants(spec)) if stored is not None and not stored.enabled else None

    @command("editor")
    def _check_worker(self, fields: Fields) -> PageReply:
        spec = self._pools.latest(text(fields, "pool")).pool.worker(text(fields, "name"))
        check_worker(spec.model_copy(update={"enabled": True}), self._find_latest(text(fields, "pool")))
        if question := self._refuse_unseen(fields, spec):
            return question
        health = self._runtime.check_workers([spec])[0]
        return PageReply(
            message=f"{spec.name}: {health.text}", fields={"health": {"ok": health.ok, "text": health.text}}
        )

    @command("viewer")
    def _check_local(self, fields: Fields) -> PageReply:
        """Probe what has not been probed yet, but for workers whose probe leaves this process or starts a program."""
        stored = self._pools.latest(text(fields, "pool"))
        unknown = [spec for spec in stored.pool.switched_on if spec.model_dump_json() not in self._runtime.probes]
        near = [spec for spec in unknown if not kind_of(spec).load().remote and not runs_program(spec)]
        self._runtime.check_workers(near)
        return self._state(stored)

    @command("editor")
    def _try_worker(self, fields: Fields) -> PageReply:
        spec = parse_worker(table(fields, "worker"))
        check_worker(spec.model_copy(update={"enabled": True}), self._find_latest(str(fields.get("pool") or "")))
        if "arguments" not in fields:
            worker = open_worker(spec)
            takes_seen = KINDS[spec.kind].role == "agent" or bool(worker.sample_seen)
            form = TryForm(
                parameters=dict(worker.parameters),
                returns=format_fields(worker.output_schema),
                sample=make_arguments(self._runtime, worker),
                seen=worker.sample_seen if takes_seen else None,
            )
            return PageReply(fields=form.to_json())
        if question := self._refuse_unseen(fields, spec):
            return question
        seen = self._runtime.try_worker(alone(spec), table(fields, "arguments"), str(fields.get("seen") or ""))
        return PageReply(fields={"observation": build_observation(seen).to_json()})

    # Pools and versions

    @command("editor", edits_pool=True)
    def _save_limits(self, fields: Fields) -> PageReply:
        limits = table(fields, "limits")

        def change(pool: Pool) -> Pool:
            try:
                changed = Limits.model_validate({**pool.limits.model_dump(include=set(MEMORY_LIMITS)), **limits})
            except ValidationError as error:
                raise InvalidPool(field_problems(error)) from error
            return pool.model_copy(update={"limits": changed})

        return self._edit(fields, change)

    @command("editor", edits_pool=True)
    def _save_mode(self, fields: Fields) -> PageReply:
        try:
            mode = DeploymentMode.model_validate(table(fields, "mode"))
        except ValidationError as error:
            raise InvalidPool(field_problems(error)) from error
        return self._edit(fields, lambda pool: pool.model_copy(update={"mode": mode}))

    @command("viewer")
    def _compare(self, fields: Fields) -> PageReply:
        name = text(fields, "pool")
        before, after = (self._pools.get(name, version(fields, end)).pool for end in ("before", "after"))
        return PageReply(fields={"diff": build_version_diff(before, after).to_json()})

    @command("editor", edits_pool=True)
    def _restore(self, fields: Fields) -> PageReply:
        old = self._pools.get(text(fields, "pool"), version(fields)).pool
        return self._edit(fields, lambda _pool: old)

    @command("editor")
    def _create(self, fields: Fields) -> PageReply:
        name, source = str(fields.get("name") or ""), fields.get("copy_of")
        base = self._pools.latest(str(source)).pool if source else Pool(name="new")
        return self._create_pool(rename_pool(base, name), base)

    @command("owner")
    def _set_read_only(self, fields: Fields) -> PageReply:
        """Share a pool read-only, or let editors change it again."""
        stored = self._pools.latest(text(fields, "pool"))
        read_only = fields.get("on") is True
        self._read_only.set(stored.pool.name, read_only)
        who = "Only owners change" if read_only else "Editors may change"
        return self._state(stored, f"{who} {stored.pool.name}")

    @command("editor")
    def _import(self, fields: Fields) -> PageReply:
        """Import another person's pool. What wants something of this machine or its owner arrives switched off."""
        text = str(fields.get("text") or "")
        try:
            pool = import_pool(text)
        except InvalidPool as error:
            raise InvalidPool(explain_text(text) or error.problems) from error
        safe, wants, notes = disarm_pool(pool)
        off = [
            f"{worker} {' and '.join(sentences)}; it stays off until you enable it"
            for worker, sentences in wants.items()
        ]
        lines = (*off, *notes)
        created = self._create_pool(rename_pool(safe, words(fields, "name") or pool.name), None)
        return created.extend("; ".join(("Imported", *lines)) if lines else "", imported_wants=wants)


class AskFirst(Exception):
    """Raised inside a change that needs a person's consent: nothing is saved, and `reply` asks."""

    def __init__(self, reply: PageReply) -> None:
        super().__init__("a person has to agree first")
        self.reply = reply


def require_consent(fields: Fields, wants: list[str]) -> None:
    """Raise AskFirst unless an owner has agreed to `wants`, and RoleRefused for others."""
    if question := ask_consent(fields, wants):
        raise AskFirst(question)


def ask_consent(fields: Fields, wants: list[str]) -> PageReply | None:
    """The reply that asks an owner about `wants`; None when `confirmed` names just these. Raises RoleRefused for
    others."""
    if not wants:
        return None
    current_rights.get().require(UserRole.OWNER, f"agree that it {wants[0]}")
    if fields.get("confirmed") == wants:
        return None
    sentence = f"not done: confirm first that it {'; '.join(wants)}"
    return PageReply(problems=(("", sentence),), fields={"wants": wants})
