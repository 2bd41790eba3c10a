"""Tasks that share a drawn pool: it holds what all of them need, their plans stay right, and seeds decide all."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.plan import check_turn
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.pool import Pool, check_pool
from tests.trainer.tasks.test_vary_pool import ALL, CELLS, OFF, OTHER, STARTER, a_task, any_settings, run_plan
from trainer.tasks.pool_conditions import unwrap_worker
from trainer.tasks.pool_settings import PoolSettings
from trainer.tasks.registry import open_source
from trainer.tasks.shared_pools import group_tasks, make_vary
from trainer.tasks.task import Task
from trainer.tasks.task_conditions import apply_condition_to_tasks
from trainer.tasks.vary_pool import vary_pool

OWN = tuple(Pool(name=name, workers=STARTER.workers) for name in ("one", "two"))
TASKS = [a_task(index) for index in range(12)]
FOUR = PoolSettings(tasks_per_pool=4)


def share_pools(tasks: list[Task], drawn: PoolSettings, seed: int = 0) -> list[Task]:
    return list(map(make_vary(STARTER, drawn, seed, [OTHER], tasks), tasks))


def list_hashes(tasks: list[Task]) -> list[str]:
    return [task.pool.hash for task in tasks]


@given(st.lists(st.sampled_from([None, *OWN]), max_size=30), st.integers(1, 8))
def test_neighbours_of_one_pool_come_together_and_no_group_is_smaller_than_it_must_be(pools, size):
    tasks = [replace(TASKS[0], query=str(place), pool=pool) for place, pool in enumerate(pools)]
    groups = group_tasks(tasks, size)
    assert [task for group in groups for task in group] == tasks
    assert all(len({id(task.pool) for task in group}) == 1 and len(group) <= size for group in groups)
    assert all(len(one) == size or one[0].pool is not other[0].pool for one, other in pairwise(groups))


@pytest.mark.medium
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(CELLS), st.integers(0, 200)), min_size=1, max_size=8, unique=True),
       any_settings, st.integers(2, 5), st.integers(0, 5))  # fmt: skip
def test_every_plan_is_valid_on_the_pool_that_its_group_shares(cells, drawn, size, seed):
    tasks = [a_task(index, cell) for cell, index in cells]
    varied = share_pools(tasks, drawn.model_copy(update={"tasks_per_pool": size}), seed)
    for start in range(0, len(tasks), size):
        group = varied[start : start + size]
        assert len(set(list_hashes(group))) == 1
        check_pool(group[0].pool)
        live = open_live_pool(group[0].pool)
        for task, before in zip(group, tasks[start : start + size], strict=True):
            checked = check_turn(task.oracle_turn, live, ())
            assert checked.error is None and not any(step.problem for step in checked.steps)
            assert (task.query, task.expected, task.ref) == (before.query, before.expected, before.ref)
            works = [unwrap_worker(task.pool.worker(step.worker)).kind for step in task.oracle_turn.steps]
            assert works == [STARTER.worker(step.worker).kind for step in before.oracle_turn.steps]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 8), st.integers(1, 6), st.integers(0, 9))
def test_a_shared_pool_holds_what_all_tasks_need_and_at_most_so_many_others(extra, size, seed):
    tasks = [a_task(index, CELLS[index % len(CELLS)]) for index in range(12)]
    drawn = OFF.model_copy(update={"subset": extra, "tasks_per_pool": size})
    varied = share_pools(tasks, drawn, seed)
    for start in range(0, len(tasks), size):
        needed = {name for task in tasks[start : start + size] for name in task.workers}
        names = {spec.name for spec in varied[start].pool.workers}
        assert needed <= names and len(names) <= len(needed) + extra


def test_plans_give_the_expected_answers_on_a_shared_pool():
    tasks = [a_task(index, cell) for index, cell in enumerate(CELLS) if cell[0] in ("ledger", "forge")]
    varied = share_pools(tasks, ALL.model_copy(update={"tasks_per_pool": 4}))
    assert len(set(list_hashes(varied))) == 2
    for task in varied:
        episode = run_plan(task)
        assert episode.graded.correct and {seen.status for seen in episode.observations().values()} == {"OK"}


def test_groups_differ_and_the_seed_decides():
    one, again, other = (list_hashes(share_pools(TASKS, FOUR, seed)) for seed in (0, 0, 1))
    assert one == again and not set(one) & set(other)
    assert [one.count(pool_hash) for pool_hash in dict.fromkeys(one)] == [4, 4, 4]


def test_a_task_keeps_its_pool_in_whatever_order_tasks_are_asked_for():
    vary = make_vary(STARTER, FOUR, 0, (), TASKS)
    assert [vary(task) for task in reversed(TASKS)] == [vary(task) for task in TASKS][::-1]


def test_by_default_every_task_has_a_pool_of_its_own():
    assert PoolSettings().tasks_per_pool == 1
    assert share_pools(TASKS, PoolSettings()) == [
        vary_pool(task, STARTER, PoolSettings(), 0, [OTHER]) for task in TASKS
    ]
    stranger = a_task(99)
    assert make_vary(STARTER, FOUR, 0, (), TASKS)(stranger) == vary_pool(stranger, STARTER, FOUR, 0)


def test_a_task_without_a_plan_keeps_every_worker_for_its_group():
    tasks = [*TASKS[:3], replace(TASKS[3], oracle_turn=None)]
    varied = share_pools(tasks, OFF.model_copy(update={"subset": 0, "tasks_per_pool": 4}))
    assert all(task.pool.workers == STARTER.workers for task in varied)


def test_worlds_that_share_a_pool_share_the_drawn_one():
    tasks = open_source("worlds").tasks("train", 8, levels=(1, 2, 3))
    varied = share_pools(tasks, FOUR)
    assert len(set(list_hashes(varied[:4]))) == len(set(list_hashes(varied[4:]))) == 1
    assert varied[0].pool.hash != varied[4].pool.hash
    assert all(set(task.workers) <= {spec.name for spec in task.pool.workers} for task in varied)


def test_the_condition_varied_shares_pools_as_the_recipe_says():
    _, tasks, _ = apply_condition_to_tasks("varied", STARTER, TASKS, 0, FOUR)
    assert len(set(list_hashes(tasks))) == 3
