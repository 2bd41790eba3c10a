"""Conditions that must know what a task needs, and conditions of tasks that bring their own pool."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from pool_registry.calls.live_pool import open_live_pool
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from trainer.errors import UnknownTask
from trainer.evaluation.trials import evaluate_orchestrator
from trainer.tasks import SUITES, find_task
from trainer.tasks.pool_conditions import load_condition_data, unwrap_worker
from trainer.tasks.pool_settings import PoolSettings
from trainer.tasks.task_conditions import CONDITIONS, TASK_CONDITIONS, apply_condition_to_tasks

STARTER = starter_pool()
OF_TASKS = (*TASK_CONDITIONS, "varied")
TASKS = [suite.task(level, "test", 1) for suite in SUITES.values() for level in suite.levels]


def score(pool: Pool, tasks):
    async def run():
        live = open_live_pool(pool)
        try:
            return await evaluate_orchestrator("oracle", tasks, live)
        finally:
            await live.close()

    return asyncio.run(run())


@pytest.mark.medium
@pytest.mark.parametrize("condition", OF_TASKS)
def test_the_reference_plan_solves_every_family_on_the_pools_of_the_tasks(condition):
    pool, tasks, renaming = apply_condition_to_tasks(condition, STARTER, TASKS, 2)
    result = score(pool, tasks)
    assert (result.mean, set(result.statuses)) == (1.0, {"OK"})
    assert pool == STARTER and not renaming and all(task.pool.name == f"starter-{condition}" for task in tasks)


@pytest.mark.parametrize("condition", OF_TASKS)
def test_what_a_task_gets_depends_on_the_seed_alone(condition):
    one, again, other = (apply_condition_to_tasks(condition, STARTER, TASKS[:3], seed)[1] for seed in (1, 1, 2))
    assert one == again and one != other


@pytest.mark.parametrize("condition", sorted({*CONDITIONS} - {"flaky", "memory", "seen"}))
def test_a_task_with_its_own_pool_gets_that_one_in_the_condition(condition):
    names = ("calculator", "sql", "calendar", "units", "fx_desk")
    own = Pool(name="own", workers=tuple(STARTER.worker(name) for name in names))
    tasks = [replace(find_task("ledger", 1, "test", index), pool=own) for index in range(4)]
    _, changed, _ = apply_condition_to_tasks(condition, Pool(name="home"), tasks, 1)
    assert all(task.pool.name == f"own-{condition}" for task in changed)
    assert score(Pool(name="home"), changed).mean == 1.0


def test_a_shuffled_subset_keeps_names_and_what_the_task_needs():
    _, tasks, _ = apply_condition_to_tasks("shuffled", STARTER, TASKS, 0)
    order = [spec.name for spec in STARTER.workers]
    for task, before in zip(tasks, TASKS, strict=True):
        names = [spec.name for spec in task.pool.workers]
        assert set(before.workers) <= set(names) <= set(order) and len(names) <= len(before.workers) + 8
        assert task.oracle_turn == before.oracle_turn
    assert any([spec.name for spec in task.pool.workers] != sorted(
        (spec.name for spec in task.pool.workers), key=order.index) for task in tasks)  # fmt: skip


def test_the_worker_that_came_late_is_needed_and_new_in_every_word():
    _, tasks, _ = apply_condition_to_tasks("added", STARTER, TASKS, 0)
    for task, before in zip(tasks, TASKS, strict=True):
        late = task.pool.workers[-1]
        (gone,) = set(before.workers) - set(task.workers)
        assert late.name in task.workers and task.pool.find_worker(gone) is None
        assert unwrap_worker(late).kind == STARTER.worker(gone).kind and late.kind == "renamed_parameters"
        assert late.description in load_condition_data().descriptions[gone].test
        assert task.pool.workers[:-1] == tuple(spec for spec in STARTER.workers if spec.name != gone)


def test_redescribed_workers_keep_their_names_and_have_held_out_words():
    pool, tasks, renaming = apply_condition_to_tasks("redescribed", STARTER, TASKS[:1], 0)
    assert [spec.name for spec in pool.workers] == [spec.name for spec in STARTER.workers]
    assert not renaming and tasks == TASKS[:1]
    bank = load_condition_data().descriptions
    assert all(spec.description in bank[spec.name].test for spec in pool.workers)


def test_varied_pools_follow_the_settings():
    settings = PoolSettings(subset=0, distractors=0, flaky=0, rename=0)
    _, tasks, _ = apply_condition_to_tasks("varied", STARTER, TASKS, 0, settings)
    assert all(len(task.pool.workers) == len(before.workers) for task, before in zip(tasks, TASKS, strict=True))


def test_an_unknown_condition_names_those_there_are():
    with pytest.raises(UnknownTask, match=r"sunny.*added, varied, or without:WORKER"):
        apply_condition_to_tasks("sunny", STARTER, [])
