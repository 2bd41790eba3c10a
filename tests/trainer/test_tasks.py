"""Generated tasks: the same on every machine, split without overlap, exactly graded, solved by their own plan."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.dialects.plan_json import PlanDialect
from pool_registry.live import live_pool
from pool_registry.starter import starter_pool
from trainer.errors import UnknownTask
from trainer.evaluate import evaluate
from trainer.tasks import SUITES, find_task, recognize
from trainer.tasks.suite import SPLITS
from trainer.tasks.verifier import NumberWithin, last_number, near_tie, to_digits

CELLS = [(family, level) for family, suite in SUITES.items() for level in suite.levels]
FAMILIES = sorted(SUITES)
SHAPES = {  # steps and width of every level's plan, as the project's notes give them
    ("ledger", 1): (2, 1), ("ledger", 2): (4, 2), ("ledger", 3): (6, 3),
    ("atlas", 1): (3, 1), ("atlas", 2): (5, 2), ("atlas", 3): (9, 2),
}  # fmt: skip


@pytest.mark.parametrize(("family", "level"), CELLS)
def test_a_task_is_a_function_of_its_address(family, level):
    first, again, other = (find_task(family, level, "train", index) for index in (3, 3, 4))
    assert (first.query, first.expected, first.oracle_turn) == (again.query, again.expected, again.oracle_turn)
    assert first.query != other.query


@pytest.mark.parametrize(("family", "level"), CELLS)
def test_splits_share_no_query(family, level):
    queries = {split: {find_task(family, level, split, index).query for index in range(60)} for split in SPLITS}
    assert not queries["train"] & queries["test"]
    assert not queries["train"] & queries["validation"]
    assert not queries["validation"] & queries["test"]
    assert min(map(len, queries.values())) > 40  # and they are varied


def test_atlas_keeps_every_country_of_the_test_split_out_of_training():
    def countries(split: str) -> set[str]:
        suite = SUITES["atlas"]
        return {place for index in range(150) for place in suite.read(suite.task(2, split, index).query).places}

    assert not countries("train") & countries("test")


@pytest.mark.parametrize(("family", "level"), CELLS)
def test_the_reference_plan_earns_its_answer_through_the_real_workers(family, level):
    async def scored():
        async with live_pool(starter_pool()) as pool:
            return await evaluate("oracle", [find_task(family, level, "test", index) for index in range(12)], pool)

    result = asyncio.run(scored())
    assert (result.mean, set(result.statuses), result.turn_errors) == (1.0, {"OK"}, 0)


def test_another_tasks_plan_does_not_earn_the_answer():
    right, other = (find_task("forge", 1, "test", index) for index in (0, 1))
    wrong = replace(right, oracle_turn=other.oracle_turn)

    async def scored():
        async with live_pool(starter_pool()) as pool:
            return await evaluate("oracle", [wrong], pool)

    assert asyncio.run(scored()).mean == 0.0


@pytest.mark.parametrize(("family", "level"), CELLS)
def test_a_query_is_recognised_also_when_a_person_has_touched_it(family, level):
    for index in range(8):
        task = find_task(family, level, "test", index)
        for touched in (task.query, f"  {task.query.upper()} ".replace(" ", "  "), task.query.rstrip(".?")):
            found = recognize(touched)
            assert found is not None and found.expected == task.expected
            assert found.ref.level == level and found.ref.family == family


@given(st.text(max_size=3000))
@settings(max_examples=200, deadline=None)
def test_recognition_is_total(query):
    recognize(query)


@given(st.sampled_from(CELLS), st.integers(0, 100_000), st.sampled_from(SPLITS))
@settings(max_examples=60, deadline=None)
def test_every_plan_survives_the_plan_dialect_and_its_answer_passes_its_own_grader(cell, index, split):
    task = find_task(*cell, split, index)
    dialect = PlanDialect()
    workers = list(dict.fromkeys(step.worker for step in task.oracle_turn.steps))
    back = dialect.parse(dialect.format(task.oracle_turn, ()), 1, workers)
    assert (back.steps, back.answer, back.error) == (task.oracle_turn.steps, task.oracle_turn.answer, None)
    assert task.grade(task.expected) and task.grade(f"The answer is {task.expected}.")
    assert not task.grade(None) and not task.grade("") and not task.grade(f"{task.expected} or 12345.678")


@pytest.mark.parametrize(
    ("family", "level", "split", "index", "said"),
    [
        ("nope", 1, "test", 0, "ledger, atlas, forge"),
        ("atlas", 9, "test", 0, "levels 1, 2, 3"),
        ("atlas", 1, "holdout", 0, "train, validation, test"),
        ("atlas", 1, "test", -1, "index"),
    ],
)
def test_a_task_that_is_not_there_says_what_is(family, level, split, index, said):
    with pytest.raises(UnknownTask, match=said):
        find_task(family, level, split, index)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234.50", 1234.5),
        ("it is -3", -3),
        ("x=42", 42),
        ("12 km2", 12),
        ("about .5", 0.5),
        ("2e6", 2e6),
        ("1e999", None),
        ("no digits", None),
        ("v1.2.3", None),
        ("−7", -7),
        ("from 3 to 4.", 4),
    ],
)
def test_the_last_number_of_an_answer_counts(text, number):
    assert last_number(text) == number


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())))
def test_graders_are_total(answer):
    assert isinstance(NumberWithin(5.0, 0.1).accepts(answer), bool)


@given(st.floats(-1e9, 1e9), st.integers(0, 4))
def test_any_usual_rounding_of_the_figure_passes_and_the_next_one_does_not(value, digits):
    if near_tie(value, digits):
        return
    verifier = to_digits(value, digits)
    unit = 10.0**-digits
    assert verifier.accepts(f"{value:.{digits}f}")
    off = math.floor(value / unit + 0.5) * unit + 2 * unit
    assert not verifier.accepts(f"{off:.{digits}f}")
