"""A need that no worker of the pool serves is told from one that a worker serves, by likeness alone."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.reader import ReaderPolicy
from orchestrator.reader.bind_needs import list_candidates
from orchestrator.reader.fill import BoundNeed
from orchestrator.reader.needs import Need
from orchestrator.reader.refusal import read_refused_need, refuse
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.language_models.completion import Completion
from pool_registry.starter import starter_pool
from tests.orchestrator.support.grammar_walk import accepts
from trainer.tasks.registry import open_source
from trainer.tasks.task import Task

pytestmark = pytest.mark.medium


@pytest.fixture(scope="module")
def starter() -> LivePool:
    return open_live_pool(starter_pool())


@pytest.fixture(scope="module")
def questions() -> list[Task]:
    """Questions written by hand on the starter pool, those that it cannot answer among them."""
    return [task for task in open_source("everyday:held_out").tasks("test", 10_000) if task.oracle_turn]


def list_unserved(needs: set[str], pool: LivePool) -> set[str]:
    workers = list(pool.workers.values())
    return {need for need in needs if not list_candidates(Need(need), workers)}


def test_needs_that_workers_serve_have_candidates(starter, questions):
    needs = {step.need for task in questions for step in task.oracle_turn.steps}
    assert len(needs) > 15 and not list_unserved(needs, starter)


def test_needs_on_pools_of_other_worlds_have_candidates():
    tasks = open_source("worlds:held_out").tasks("test", 60)
    needs, unserved = 0, 0
    for task in tasks:
        if task.oracle_turn and task.oracle_turn.steps:
            texts = {step.need for step in task.oracle_turn.steps}
            needs += len(texts)
            unserved += len(list_unserved(texts, open_live_pool(task.pool)))
    assert needs > 100 and unserved <= needs / 100


def test_of_the_needs_that_no_worker_serves_two_thirds_have_none(starter, questions):
    needs = {need for task in questions if (need := read_refused_need(task.oracle_turn.answer))}
    assert len(needs) >= 20 and len(list_unserved(needs, starter)) >= len(needs) * 2 / 3


def test_a_reader_refuses_a_need_that_no_worker_serves_without_showing_a_card(starter):
    written = []

    async def write(messages, grammar, draw):
        written.append(messages)
        return Completion("1. make a phone call")

    policy = ReaderPolicy("reader", starter, write)
    episode = asyncio.run(run_episode(EpisodeSpec("call my sister"), policy, starter))
    assert episode.answer == refuse("make a phone call") and not episode.steps
    assert len(written) == 1, "it was not asked for arguments"


@pytest.mark.parametrize(("likeness", "may_refuse"), [(0.35, True), (0.5, False)])
def test_a_card_can_be_refused_that_is_not_much_like_its_need(starter, monkeypatch, likeness, may_refuse):
    grammars = []

    async def write(messages, grammar, draw):
        grammars.append(grammar)
        return Completion("1. make a sum" if len(grammars) == 1 else '1. {"expression": "1 + 1"}\n= $1')

    monkeypatch.setattr(
        "orchestrator.policies.plan_writer.list_servers",
        lambda need, workers: [BoundNeed(need, "calculator", likeness)],
    )
    policy = ReaderPolicy("reader", starter, write, other_plans=0)
    episode = asyncio.run(run_episode(EpisodeSpec("what is 1 + 1"), policy, starter))
    assert str(episode.answer) == "2"
    assert accepts(grammars[1], refuse("make a sum")) is may_refuse
