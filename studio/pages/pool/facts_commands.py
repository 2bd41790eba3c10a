"""The Pool page's commands about a worker's track record: computed from every stored run, and measured anew."""

from __future__ import annotations

from orchestrator.traces.agent_track_record import build_track_record
from pool_registry.errors import InvalidPool
from studio.frame.commands import Fields, PageCommands, PageReply, command, dollars, text
from studio.pages.pool.facts import build_facts
from studio.pages.train.commands import parse_draft, submit
from studio.runtime import Runtime
from trainer.tasks.practice.stored import SOURCE, list_own_tasks

MAX_QUESTIONS = 60


class FactsCommands(PageCommands):
    """Commands by name."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @command("viewer", "refresh_facts")
    def _refresh(self, fields: Fields) -> PageReply:
        """The facts of a worker by all stored runs: the page as it opens reads the newest ones alone."""
        pool = self._runtime.store.pools.latest(text(fields, "pool")).pool
        name = pool.worker(text(fields, "name")).name
        record = build_track_record(self._runtime.store.engine, pool.name, None)
        facts = build_facts(record, name, None)
        return PageReply(fields={"facts": facts.to_json() if facts else None})

    @command("editor", "evaluate_alone")
    def _evaluate(self, fields: Fields) -> PageReply:
        """Queue an evaluation of an agent alone on the pool's own tasks to measure; its outcomes enter the facts."""
        pool = self._runtime.store.pools.latest(text(fields, "pool")).pool
        name = text(fields, "name")
        if name not in {spec.name for spec in pool.agents()}:
            raise InvalidPool([("", f"{name} cannot answer alone: only an agent that is switched on can")])
        count = sum(task.ref.split == "test" for task in list_own_tasks(pool.name))
        if not count:
            raise InvalidPool([("", "this pool has no tasks to measure with yet: make or add some on the Train page")])
        source, cap = f"{SOURCE}{pool.name}", dollars(fields, "max_cost")
        section = {"orchestrators": [f"direct:{name}"], "source": source, "count": min(count, MAX_QUESTIONS)}
        document = {
            "name": f"{name}-alone",
            "title": f"{name} alone",
            "pool": pool.name,
            "tasks": {"source": source},
            "evaluate": section if cap is None else section | {"max_cost": cap},
        }
        return submit(parse_draft({"recipe": document}), self._runtime)
