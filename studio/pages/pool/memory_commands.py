"""The Pool page's commands on a pool's failure memory: who writes it, what is in it, forgetting, and learning from
failures that were recorded before it was switched on."""

from __future__ import annotations

from orchestrator.failure_memory.lessons import MAX_READ, OFF, LessonRow
from orchestrator.failure_memory.write_lesson import RULE, has_failed, keep_lesson
from orchestrator.traces.store import TraceFilter
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import InvalidPool
from pool_registry.pool import Pool
from studio.frame.commands import Fields, PageCommands, PageReply, command, text, version
from studio.pages.pool.gallery_commands import Edit
from studio.pages.pool.schema import LessonDocument, MemoryDocument
from studio.runtime import Runtime

FAILED = ("wrong", "gave_up", "max_rounds", "max_tokens", "max_cost", "deadline", "orchestrator_failed")
LEARN_FROM = 50  # recorded failures at once: an agent that writes takes seconds for each


class MemoryCommands(PageCommands):
    """Commands by name; `edit` changes a pool, saves it and answers with the page's new state."""

    def __init__(self, runtime: Runtime, edit: Edit) -> None:
        self._runtime = runtime
        self._edit = edit

    def _pool(self, fields: Fields) -> Pool:
        return self._runtime.store.pools.latest(text(fields, "pool")).pool

    def _reply(self, pool: Pool, message: str = "") -> PageReply:
        return PageReply(message, {"memory": build_memory_document(self._runtime, pool).to_json()})

    @command("viewer", "memory")
    def _show(self, fields: Fields) -> PageReply:
        return self._reply(self._pool(fields))

    @command("editor", "set_memory", edits_pool=True)
    def _set(self, fields: Fields) -> PageReply:
        writer = text(fields, "memory")

        def change(pool: Pool) -> Pool:
            if writer not in (OFF, RULE, *(spec.name for spec in pool.agents())):
                raise InvalidPool([("memory", f"{writer!r} is no enabled agent of this pool; choose one, rule or off")])
            return pool.model_copy(update={"limits": pool.limits.model_copy(update={"memory": writer})})

        reply = self._edit(fields, change)
        return reply.extend(memory=build_memory_document(self._runtime, self._pool(fields)).to_json())

    @command("editor", edits_pool=True)
    def _forget(self, fields: Fields) -> PageReply:
        pool = self._pool(fields)
        lesson = version(fields, "lesson") if fields.get("lesson") else None
        gone = self._runtime.store.lessons.forget(pool.name, lesson)
        return self._reply(pool, f"Forgot {gone} {'lesson' if gone == 1 else 'lessons'}")

    @command("editor")
    def _learn(self, fields: Fields) -> PageReply:
        """Learn from the newest recorded failures that nothing was learnt of. Those of a test split are left out:
        what is measured there must not have been seen."""
        pool, store = self._pool(fields), self._runtime.store
        if pool.limits.memory == OFF:
            raise InvalidPool([("memory", "the memory is off; choose who writes it first")])
        learnt_from = {row.episode for row in store.lessons.of_pool(pool.name)}
        keys = [
            row.id
            for state in FAILED
            for row in store.traces.search(TraceFilter(pool=pool.name, state=state, limit=LEARN_FROM))
            if row.id not in learnt_from
        ]
        learnt, tests = self._runtime.run(self._learn_from(pool, keys[:LEARN_FROM]))
        message = f"Learnt from {learnt} recorded {'failure' if learnt == 1 else 'failures'}"
        return self._reply(pool, f"{message}; {tests} on test tasks left out" if tests else message)

    async def _learn_from(self, pool: Pool, keys: list[str]) -> tuple[int, int]:
        """Learn from episodes; return from how many a lesson was kept, and how many are of a test split."""
        learnt = tests = 0
        store = self._runtime.store
        async with live_pool(pool) as live:
            for key in keys:
                episode = store.traces.episode(key)
                task = episode.started.task if episode.started else None
                if not has_failed(episode):
                    continue
                if task and task.split == "test":
                    tests += 1
                else:
                    learnt += await keep_lesson(episode, live, store.lessons) is not None
        return learnt, tests


def build_memory_document(runtime: Runtime, pool: Pool) -> MemoryDocument:
    """What the drawer shows of a pool's memory, newest lesson first."""
    store = runtime.store.lessons
    agents = [spec.name for spec in pool.agents()]
    mode = pool.limits.memory
    gone = [] if mode in (OFF, RULE, *agents) else [mode]
    return MemoryDocument(
        mode=mode,
        agents=[*agents, *gone],
        gone=bool(gone),
        count=store.count(pool.name),
        read=MAX_READ,
        lessons=[_build_lesson(row) for row in store.of_pool(pool.name, 200)],
    )


def _build_lesson(row: LessonRow) -> LessonDocument:
    return LessonDocument(
        id=row.id,
        query=row.query[:300],
        sentence=row.sentence,
        written_by=row.written_by,
        instead_of=row.instead_of,
        episode=row.episode,
        tokens=row.tokens,
        cost=row.cost,
        created_at=f"{row.created_at.isoformat()}Z",
    )
