"""What a failure memory is worth: the same tasks with and without it, as two rows of one table."""

from __future__ import annotations

import asyncio
import json

import pytest

from orchestrator.engine.events import TaskRef
from orchestrator.failure_memory.lessons import LessonStore
from orchestrator.failure_memory.write_lesson import keep_lesson
from orchestrator.traces.store import open_store
from pool_registry.calls.live_pool import live_pool
from pool_registry.storage.data_folder import find_home
from tests.orchestrator.support.endpoint import Endpoint, endpoint, pool_of
from trainer.evaluation.trials import (
    LocalTrials,
    evaluate_orchestrator,
    make_by_name,
    plan_trials,
    run_task,
    run_trials,
)
from trainer.results.paired import compare_paired
from trainer.tasks.task import Task
from trainer.tasks.verifier import NumberWithin

__all__ = ["endpoint"]
TASKS = [
    Task(TaskRef("products", 1, "val", k), f"How much is {k} times 7?", NumberWithin(7.0 * k, 0.01))
    for k in range(3, 7)
]


def guesses_until_told(messages) -> str:
    """A model that does sums in its head, and wrongly, until a note says where that led."""
    sent = messages[-1]["content"]
    if "which is wrong" not in sent:
        return '{"answer": "41"}'
    number = sent.rsplit("How much is ", 1)[1].split()[0]
    return json.dumps({"steps": [{"worker": "calc", "instruction": f"{number}*7", "access": []}], "answer": "$1"})


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    return find_home()


def test_the_rows_with_and_without_memory_differ_by_what_was_learnt(endpoint, home):
    Endpoint.reply = staticmethod(guesses_until_told)
    store = open_store(home)
    pool = pool_of(endpoint, "boss", memory="rule")
    name = "model:boss:plan"

    async def once():
        async with live_pool(pool) as live:
            make = make_by_name(live)
            (first,) = plan_trials(name, TASKS[:1])
            failed = await run_task(first.task, make(first), live, store.traces)
            before = []
            await run_trials(plan_trials(name, TASKS), LocalTrials(live, make, store.traces), before.append)
            assert store.lessons.count("p") == 0, "an evaluation writes no lessons"
            await keep_lesson(failed, live, store.lessons)
            rows = {}
            for condition in ("seen", "memory"):
                rows[condition] = []
                trials = plan_trials(name, TASKS, condition=condition)
                await run_trials(trials, LocalTrials(live, make_by_name(live), store.traces), rows[condition].append)
            table = await evaluate_orchestrator(name, TASKS, live, sink=store.traces, condition="memory")
            return before, rows, table

    before, rows, table = asyncio.run(once())
    store.close()
    assert [row.correct for row in before] == [row.correct for row in rows["seen"]] == [False] * 4
    assert [row.correct for row in rows["memory"]] == [True] * 4 and table.mean == 1.0
    against = compare_paired(rows["memory"], rows["seen"], across_conditions=True)
    assert against.difference.mean == 1.0


def test_lessons_of_another_pool_reach_no_evaluation(endpoint, home):
    Endpoint.reply = staticmethod(guesses_until_told)
    store = open_store(home)
    other = pool_of(endpoint, "boss", memory="rule").model_copy(update={"name": "other"})

    async def once():
        async with live_pool(other) as live:
            (first,) = plan_trials("model:boss:plan", TASKS[:1])
            await keep_lesson(
                await run_task(first.task, make_by_name(live)(first), live, store.traces), live, store.lessons
            )
        async with live_pool(pool_of(endpoint, "boss")) as live:
            return await evaluate_orchestrator("model:boss:plan", TASKS, live, sink=store.traces, condition="memory")

    assert asyncio.run(once()).mean == 0.0
    assert LessonStore(store.engine).count("other") == 1
    store.close()
