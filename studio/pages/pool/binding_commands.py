"""The Pool page's commands on bindings: which workers here stand for those that a checkpoint learnt on another pool."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from orchestrator.binding.bind_turn import explain_unbound
from orchestrator.binding.bind_workers import BY_PERSON, NONE, Binding, bind_workers, list_choices
from orchestrator.binding.learnt_worker import LearntWorker
from orchestrator.binding.stored_edits import ChangedChoice
from orchestrator.checkpoints import checkpoint_names, find_checkpoint, spell_checkpoint
from orchestrator.policies.labels import label_orchestrator
from pool_registry.calls.live_pool import LivePool, live_pool
from pool_registry.errors import InvalidPool
from pool_registry.pool import Pool
from pool_registry.storage.pool_store import StoredPool
from studio.frame.commands import Fields, PageCommands, PageReply, command, text, version, words
from studio.pages.pool.schema import BindingDocument, BindingRow, CheckpointBinding
from studio.runtime import Runtime


class BindingCommands(PageCommands):
    """Commands by name. What a person chooses is kept with the version of the pool."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._edits = runtime.store.bindings

    def _find_pool(self, fields: Fields) -> StoredPool:
        name, pools = text(fields, "pool"), self._runtime.store.pools
        return pools.get(name, version(fields)) if fields.get("version") else pools.latest(name)

    @command("viewer", "binding")
    def _show(self, fields: Fields) -> PageReply:
        return self._reply(self._find_pool(fields), words(fields, "checkpoint"))

    @command("editor", edits_pool=True)
    def _bind(self, fields: Fields) -> PageReply:
        stored, name = self._find_pool(fields), spell_checkpoint(text(fields, "checkpoint"))
        learnt, worker = find_learnt(name, text(fields, "learnt")), words(fields, "worker")
        choices = self._runtime.run(_list_choices(learnt, stored.pool))
        if worker != NONE and worker not in choices:
            raise InvalidPool([("worker", _explain_refusal(learnt, worker, choices))])
        try:
            self._edits.choose(name, stored.pool.hash, learnt.name, worker, _read_seen(fields))
        except ChangedChoice as conflict:
            return self._refuse(stored, name, conflict)
        return self._reply(stored, name, f"{learnt.name} is bound to {worker or 'no worker'}")

    @command("editor", "reset_binding", edits_pool=True)
    def _reset(self, fields: Fields) -> PageReply:
        stored, name = self._find_pool(fields), spell_checkpoint(text(fields, "checkpoint"))
        learnt = find_learnt(name, words(fields, "learnt")).name if words(fields, "learnt") else None
        try:
            gone = self._edits.forget(name, stored.pool.hash, learnt, _read_seen(fields))
        except ChangedChoice as conflict:
            return self._refuse(stored, name, conflict)
        return self._reply(stored, name, f"Reset {gone} {'choice' if gone == 1 else 'choices'}")

    def _refuse(self, stored: StoredPool, checkpoint: str, conflict: ChangedChoice) -> PageReply:
        return PageReply(problems=tuple(conflict.problems), fields=self._reply(stored, checkpoint).fields)

    def _reply(self, stored: StoredPool, checkpoint: str, message: str = "") -> PageReply:
        names = list_bindable()
        chosen = checkpoint or next(iter(names), "")
        binding = CheckpointBinding()
        if chosen:
            name = spell_checkpoint(chosen)
            names = list(dict.fromkeys([*names, name]))
            edits = self._edits.read(name, stored.pool.hash)
            binding = self._runtime.run(_describe(name, stored.pool, edits))
        document = BindingDocument(
            **dict(binding),
            checkpoints=[(name, label_orchestrator(name)) for name in names],
            pool=stored.pool.name,
            version=stored.version,
        )
        return PageReply(message, {"binding": document.to_json()})


def _read_seen(fields: Fields) -> str | None:
    """The choice that the page showed, where it says so."""
    return str(fields["replaces"]) if "replaces" in fields else None


def list_bindable() -> list[str]:
    """The checkpoints of this machine that learnt one pool and know what its workers did."""
    return [name for name in checkpoint_names() if find_learnt_workers(name)]


def find_learnt_workers(checkpoint: str) -> tuple[LearntWorker, ...]:
    """The workers that a checkpoint learnt by heart; () for one that reads its pool, or whose pool is not known."""
    manifest = find_checkpoint(checkpoint)[1]
    return manifest.pool.learnt if manifest.pool is not None and manifest.knows_one_pool else ()


def find_learnt(checkpoint: str, learnt: str) -> LearntWorker:
    """One of them. Raises InvalidPool when there is none of this name."""
    workers = {worker.name: worker for worker in find_learnt_workers(checkpoint)}
    if not workers:
        raise InvalidPool([("checkpoint", f"{checkpoint} is not bound to pools: {_explain_none(checkpoint)}")])
    if learnt not in workers:
        raise InvalidPool([("learnt", f"{checkpoint} learnt no worker {learnt!r}; it learnt: {', '.join(workers)}")])
    return workers[learnt]


def _explain_none(checkpoint: str) -> str:
    if not find_checkpoint(checkpoint)[1].knows_one_pool:
        return "it reads the pool in its prompt"
    return "its podium.json does not say what the workers of its training pool did"


def _explain_refusal(learnt: LearntWorker, worker: str, choices: list[str]) -> str:
    can = f"it can be: {', '.join(choices)}, or none" if choices else "no worker of this pool can"
    return f"{worker!r} cannot stand for {learnt.name}: another role, or other arguments, or not there; {can}"


async def _list_choices(learnt: LearntWorker, pool: Pool) -> list[str]:
    async with live_pool(pool) as live:
        return list_choices(learnt, live)


async def _describe(checkpoint: str, pool: Pool, edits: Mapping[str, str]) -> CheckpointBinding:
    async with live_pool(pool) as live:
        return await asyncio.to_thread(build_binding_document, checkpoint, live, edits)


def build_binding_document(checkpoint: str, pool: LivePool, edits: Mapping[str, str]) -> CheckpointBinding:
    """What the page shows of a checkpoint's binding, a row a learnt worker. Blocks while texts are compared."""
    learnt = find_learnt_workers(checkpoint)
    if not learnt:
        return CheckpointBinding(checkpoint=checkpoint, reason=_explain_none(checkpoint))
    binding = bind_workers(learnt, pool, edits)
    automatic = bind_workers(learnt, pool) if edits else binding
    return CheckpointBinding(
        checkpoint=checkpoint,
        changes_nothing=binding.changes_nothing,
        rows=[_build_row(item, binding, automatic, pool) for item in learnt],
    )


def _build_row(learnt: LearntWorker, binding: Binding, automatic: Binding, pool: LivePool) -> BindingRow:
    bound = binding.workers[learnt.name]
    worker = pool.workers.get(bound.worker)
    return BindingRow(
        learnt=learnt.name,
        role=learnt.role,
        description=learnt.description,
        worker=bound.worker,
        worker_description=worker.spec.description if worker else "",
        likeness=bound.likeness,
        by=bound.by,
        edited=bound.by == BY_PERSON,
        automatic=automatic.workers[learnt.name].worker,
        parameters=list(bound.parameters.items()),
        choices=list_choices(learnt, pool),
        problem=explain_unbound(bound) if bound.worker == NONE else "",
    )
