"""Grammars of turns: whatever they accept is a turn that can be read, with steps that name workers of the pool."""

from __future__ import annotations

import asyncio
import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.dialects.conductor import ConductorDialect
from orchestrator.dialects.plan_json import PlanDialect
from orchestrator.grammars.conductor_grammar import conductor_grammar
from orchestrator.grammars.plan_grammar import plan_grammar
from orchestrator.plan import check_turn
from pool_registry.calls.live_pool import live_pool
from pool_registry.starter import starter_pool
from tests.orchestrator.support.grammar_walk import accepts, walk
from trainer.tasks import SUITES, list_train_families

LEFT_TO_CHECKS = re.compile("add .* to access|longer than|does not match")


@pytest.fixture(scope="module")
def pool():
    async def once():
        async with live_pool(starter_pool()) as pool:
            return pool

    return asyncio.run(once())


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(), (1, 2), (3,)]), st.integers(1, 6))
def test_every_accepted_plan_can_be_read(pool, seed, earlier, steps):
    first = max(earlier, default=0) + 1
    text = walk(plan_grammar(pool, first, earlier, steps), Random(seed), 500)
    turn = check_turn(PlanDialect().parse(text, first, list(pool.workers)), pool, earlier)
    assert turn.error is None, text
    for step in turn.steps:
        assert step.worker in pool.workers
        assert step.references | set(step.access) <= {*earlier, *range(first, step.id)}
        assert step.problem is None or LEFT_TO_CHECKS.search(step.problem), step.problem


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_every_accepted_turn_of_three_lists_can_be_read(pool, seed, steps):
    grammar = conductor_grammar(len(pool.workers), 1, (), steps)
    text = walk(grammar, Random(seed), 400)
    turn = check_turn(ConductorDialect().parse(text, 1, list(pool.workers)), pool, ())
    assert turn.error is None, text
    assert all(step.worker in pool.workers for step in turn.steps)


@pytest.mark.parametrize("family", list_train_families())
def test_reference_plans_are_accepted_in_both_dialects(pool, family):
    names = list(pool.workers)
    grammars = plan_grammar(pool, 1, (), 24), conductor_grammar(len(names), 1, (), 24)
    for level in (1, 2, 3):
        turn = SUITES[family].task(level, "test", 0).oracle_turn
        assert accepts(grammars[0], PlanDialect().format(turn, names))
        if turn.answer == f"${turn.steps[-1].id}":
            assert accepts(grammars[1], ConductorDialect().format(turn, names))


@pytest.mark.parametrize(
    "text",
    [
        '{"steps": [{"worker": "nobody", "instruction": "x", "access": []}]}',
        '{"steps": [{"worker": "solver", "instruction": "x", "access": [1]}]}',
        '{"steps": [{"worker": "solver", "instruction": "$1", "access": []}]}',
        '{"steps": [{"worker": "units", "arguments": {"value": 1}, "access": []}]}',
        '{"steps": [{"worker": "solver", "instruction": "x", "access": []}], "answer": "$2"}',
        '{"steps": []}',
        "no turn at all",
    ],
)
def test_plans_that_name_what_is_not_there_are_refused(pool, text):
    assert not accepts(plan_grammar(pool, 1, (), 4), text)
