"""The Pool page's commands on a pool's failure memory: who writes it, what is in it, forgetting, learning from
failures that were recorded before it was switched on, trying lessons, and measuring what they bring."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from orchestrator.engine.episode import Episode
from orchestrator.failure_memory.decay import drop_faded
from orchestrator.failure_memory.lessons import MAX_READ, OFF, LessonRow
from orchestrator.failure_memory.write_lesson import RULE, has_failed, keep_lesson
from orchestrator.traces.store import TraceFilter
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import InvalidPool
from pool_registry.pool import Pool
from studio.episodes import find_known_task
from studio.frame.commands import Fields, PageCommands, PageReply, command, dollars, flag, text, version, words
from studio.pages.pool.edits import Edit
from studio.pages.pool.memory_gain import find_gain, make_gain_recipe
from studio.pages.pool.schema import LessonDocument, MemoryDocument
from studio.pages.train.commands import submit
from studio.runtime import Runtime
from trainer.evaluation.lesson_trial import LessonTrial, Outcome, settle_lesson, try_lesson

FAILED = ("wrong", "gave_up", "max_rounds", "max_tokens", "max_cost", "deadline", "orchestrator_failed")
TRY_AT_ONCE = 20  # lessons: each is a whole run
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
        retry = flag(fields, "retry") if "retry" in fields else False

        def change(pool: Pool) -> Pool:
            if writer not in (OFF, RULE, *(spec.name for spec in pool.agents())):
                raise InvalidPool([("memory", f"{writer!r} is no enabled agent of this pool; choose one, rule or off")])
            changes = {"memory": writer, "memory_retry": retry if "retry" in fields else pool.limits.memory_retry}
            return pool.model_copy(update={"limits": pool.limits.model_copy(update=changes)})

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

    @command("editor", "try_lessons")
    def _try(self, fields: Fields) -> PageReply:
        """Run each lesson's query once more with it; keep the lesson where the answer is right now, and forget it where
        it is wrong again. What nothing can grade stays as it is."""
        pool, store = self._pool(fields), self._runtime.store
        drop_faded(store.engine, pool.name)
        untried = [row for row in store.lessons.of_pool(pool.name) if not row.retry and not row.awaits]
        counts = self._runtime.run(self._try_lessons(pool, untried[:TRY_AT_ONCE]))
        return self._reply(pool, _describe_tries(counts, len(untried) - TRY_AT_ONCE))

    async def _try_lessons(self, pool: Pool, rows: Sequence[LessonRow]) -> Counter[Outcome]:
        store = self._runtime.store
        counts: Counter[Outcome] = Counter()
        async with live_pool(pool) as live:
            for row in rows:
                task = find_known_task(pool.name, row.query)
                trial = LessonTrial("not_graded")
                if task is not None and row.episode in store.traces.read_answers([row.episode]):
                    trial = await try_lesson(row, store.traces.episode(row.episode), task, live, store.traces)
                counts[trial.outcome] += 1
                settle_lesson(store, row, trial)
        await asyncio.to_thread(store.traces.flush)  # the page links to the tries at once
        return counts

    @command("editor", "measure_memory")
    def _measure(self, fields: Fields) -> PageReply:
        """Put an evaluation of held-out tasks, with and without the lessons, into the queue."""
        pool = self._pool(fields)
        if not self._runtime.store.lessons.count(pool.name):
            raise InvalidPool([("", "there are no lessons yet, so there is nothing to measure")])
        recipe = make_gain_recipe(pool, words(fields, "orchestrator"), dollars(fields, "max_cost"))
        job = submit(recipe, self._runtime)
        return self._reply(pool, job.message)

    async def _learn_from(self, pool: Pool, keys: list[str]) -> tuple[int, int]:
        """Learn from episodes; return from how many a lesson was kept, and how many are of a test split."""
        learnt = tests = 0
        store = self._runtime.store
        async with live_pool(pool) as live:
            for key in keys:
                episode = store.traces.episode(key)
                task = episode.started.task if episode.started else None
                if not has_failed(episode) or _is_settled(episode):
                    continue
                if task and task.split == "test":
                    tests += 1
                else:
                    learnt += await keep_lesson(episode, live, store.lessons) is not None
        return learnt, tests


def _is_settled(episode: Episode) -> bool:
    """Whether a second try has shown what a failed run's lesson is worth, or will; or the run is such a try."""
    is_second = episode.started is not None and episode.started.retry_of != ""
    return is_second or (episode.retried is not None and episode.retried.state != "interrupted")


def build_memory_document(runtime: Runtime, pool: Pool) -> MemoryDocument:
    """What the drawer shows of a pool's memory, newest lesson first."""
    store = runtime.store.lessons
    agents = [spec.name for spec in pool.agents()]
    mode = pool.limits.memory
    gone = [] if mode in (OFF, RULE, *agents) else [mode]
    return MemoryDocument(
        mode=mode,
        retry=pool.limits.memory_retry,
        agents=[*agents, *gone],
        gone=bool(gone),
        count=store.count(pool.name),
        read=MAX_READ,
        lessons=[_build_lesson(row) for row in store.of_pool(pool.name, 200)],
        gain=find_gain(runtime, pool.name),
    )


def _describe_tries(counts: Counter[Outcome], more: int) -> str:
    tried = f"{counts['right']} right with their lesson and kept, {counts['wrong']} wrong again and forgotten"
    notes = [
        f"{counts['not_graded']} left: no task says what is right, or the run is gone" if counts["not_graded"] else "",
        f"{counts['no_reader']} left: their orchestrator reads no lessons" if counts["no_reader"] else "",
        f"{more} more wait: press again" if more > 0 else "",
    ]
    return "; ".join([tried, *filter(None, notes)])


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
        retry=row.retry,
        awaits=row.awaits,
        is_tried=bool(row.owner),
        shown=row.shown,
        helped=row.helped,
    )
