"""Everyday questions: on pools of their own, exactly graded, solved by their own plan."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.reader.refusal import is_refusal
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import check_pool
from pool_registry.starter import starter_pool
from trainer.errors import UnknownTask
from trainer.evaluation.trials import evaluate_orchestrator
from trainer.tasks.registry import open_source
from trainer.tasks.verifier import RefusalVerifier


def draw(split: str, count: int, seed: int = 0, **rest):
    return open_source("everyday").tasks(split, count, seed, **rest)


def test_the_same_seed_draws_the_same_tasks():
    first, again, other = draw("train", 24), draw("train", 40)[:24], draw("train", 24, seed=1)
    assert first == again and [task.query for task in first] != [task.query for task in other]


def test_four_tasks_in_a_row_share_one_pool():
    tasks = draw("train", 80)
    hashes = [{task.pool.hash for task in tasks[place : place + 4]} for place in range(0, 80, 4)]
    assert all(len(group) == 1 for group in hashes) and len(set.union(*hashes)) > 15
    for task in tasks:
        check_pool(task.pool)
        assert set(task.workers) <= {spec.name for spec in task.pool.workers}


def test_half_of_the_pools_are_a_part_of_the_starter_pool():
    workers = set(starter_pool().workers)
    tasks = draw("train", 400)
    share = sum(set(task.pool.workers) <= workers for task in tasks) / 400
    assert 0.35 < share < 0.65


def test_splits_share_no_query():
    queries = {split: {task.query.casefold() for task in draw(split, 300)} for split in ("train", "validation", "test")}
    assert not queries["train"] & (queries["validation"] | queries["test"])
    assert not queries["validation"] & queries["test"]


def test_some_questions_are_to_be_refused_and_every_step_has_a_need():
    tasks = draw("train", 600)
    refused = [task for task in tasks if isinstance(task.verifier, RefusalVerifier)]
    assert 0.04 < len(refused) / 600 < 0.13
    assert all(is_refusal(task.oracle_turn.answer) and not task.oracle_turn.steps for task in refused)
    assert all(step.need for task in tasks for step in task.oracle_turn.steps)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_levels_are_numbers_of_steps(level):
    assert {min(max(len(task.oracle_turn.steps), 1), 3) for task in draw("train", 24, levels=(level,))} == {level}


def test_what_there_is_not_is_said():
    with pytest.raises(UnknownTask, match="held_out"):
        open_source("everyday:nope")
    with pytest.raises(UnknownTask, match="levels"):
        draw("train", 4, levels=(9,))
    with pytest.raises(UnknownTask, match="test"):
        open_source("everyday:held_out").tasks("train", 4)


@pytest.mark.parametrize("split", ["train", "test"])
def test_reference_plans_earn_their_answers_through_the_real_workers(split):
    async def scored():
        async with live_pool(starter_pool()) as pool:
            return await evaluate_orchestrator("oracle", draw(split, 120, seed=7), pool)

    result = asyncio.run(scored())
    assert (result.mean, set(result.statuses), result.turn_errors) == (1.0, {"OK"}, 0)


def test_the_plans_of_the_questions_written_by_hand_earn_their_answers():
    tasks = open_source("everyday:held_out").tasks("test", 1000)

    async def scored():
        async with live_pool(starter_pool()) as pool:
            return await evaluate_orchestrator("oracle", tasks, pool)

    result = asyncio.run(scored())
    assert (result.mean, result.turn_errors) == (1.0, 0)
