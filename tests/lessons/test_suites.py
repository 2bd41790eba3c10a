"""Generated tasks: the same on every machine, split without overlap, exactly graded, solved by their own plan."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.dialects.plan_json import PlanDialect
from orchestrator.layers import layer_sizes
from orchestrator.plan import Step, Turn
from podium_lessons.families.joined import join_plans
from podium_lessons.families.workshop import compute_molar_mass as workshop_mass
from podium_lessons.families.workshop import load_compounds
from podium_lessons.sources import HELD_OUT_FAMILIES, TRAIN_FAMILIES
from pool_registry.calls.live_pool import live_pool
from pool_registry.starter import starter_pool
from pool_registry.starter.workers.elements import molar_mass
from trainer.errors import UnknownTask
from trainer.evaluation.trials import evaluate_orchestrator
from trainer.tasks import SUITES, find_task, list_held_out_families, list_train_families, recognize_task
from trainer.tasks.suite import SPLITS
from trainer.tasks.verifier import NumberWithin, is_near_tie, make_rounded_verifier, parse_last_number

CELLS = [(family, level) for family, suite in SUITES.items() for level in suite.levels]
FAMILIES = sorted(SUITES)
SHAPES = {  # steps and width of every level's plan
    ("ledger", 1): (2, 1), ("ledger", 2): (4, 2), ("ledger", 3): (6, 3), ("ledger", 4): (9, 4),
    ("atlas", 1): (4, 1), ("atlas", 2): (4, 2), ("atlas", 3): (8, 2), ("atlas", 4): (9, 4),
    ("forge", 1): (3, 2), ("forge", 2): (4, 3), ("forge", 3): (5, 4), ("forge", 4): (9, 6),
    ("itinerary", 1): (3, 2), ("itinerary", 2): (4, 2), ("itinerary", 3): (6, 3), ("itinerary", 4): (9, 4),
    ("workshop", 1): (2, 1), ("workshop", 2): (4, 2), ("workshop", 3): (6, 3),
    ("dossier", 1): (3, 1), ("dossier", 2): (5, 2), ("dossier", 3): (6, 3),
}  # fmt: skip


@pytest.mark.parametrize(("family", "level"), CELLS)
def test_a_task_is_a_function_of_its_address(family, level):
    first, again, other = (find_task(family, level, "train", index) for index in (3, 3, 4))
    assert (first.query, first.expected, first.oracle_turn) == (again.query, again.expected, again.oracle_turn)
    assert first.query != other.query


@pytest.mark.medium
@pytest.mark.parametrize(("family", "level"), CELLS)
def test_splits_share_no_query(family, level):
    queries = {split: {find_task(family, level, split, index).query for index in range(60)} for split in SPLITS}
    assert not queries["train"] & queries["test"]
    assert not queries["train"] & queries["validation"]
    assert not queries["validation"] & queries["test"]
    assert min(map(len, queries.values())) > 40  # and they are varied


@pytest.mark.parametrize(("family", "level"), CELLS)
def test_every_level_has_its_shape(family, level):
    for index in range(5):
        sizes = layer_sizes(find_task(family, level, "train", index).oracle_turn.steps)
        assert (sum(sizes), max(sizes)) == SHAPES[family, level]


def test_the_held_out_families_are_not_for_training():
    assert set(list_train_families()) == set(TRAIN_FAMILIES)
    assert set(list_held_out_families()) == set(HELD_OUT_FAMILIES)


@pytest.mark.parametrize("family", list_train_families())
def test_a_joined_plan_combines_the_answers_of_its_parts(family):
    suite = SUITES[family]
    for index in range(20):
        task = suite.task(4, "train", index)
        pair = suite.read(task.query)
        first, second = (suite.solve(part)[0].expected for part in (pair.first, pair.second))
        value = {"add": first + second, "subtract": first - second, "divide": first / (second or 1)}[pair.operation]
        assert task.expected == pytest.approx(value, abs=0.0006)
        last = task.oracle_turn.steps[-1]
        assert set(last.access) == last.references and task.oracle_turn.answer == f"${last.id}"


def test_joining_counts_on_what_a_plan_quotes_and_leaves_dollars_alone():
    one = Turn((Step(1, "a", {"x": "y"}),), "$1")
    two = Turn((Step(1, "a", {"x": "y"}), Step(2, "b", {"x": "$1 costs $$1", "n": 3}, (1,))), "$2")
    joined = join_plans(one, two, "add")
    assert [(step.id, dict(step.arguments), step.access) for step in joined.steps] == [
        (1, {"x": "y"}, ()),
        (2, {"x": "y"}, ()),
        (3, {"x": "$2 costs $$1", "n": 3}, (2,)),
        (4, {"expression": "$1 + $3"}, (1, 3)),
    ]


def test_showing_a_reader_too_much_costs_the_answer():
    """Access lists decide in `dossier`: every passage that a reader may see, it reads."""

    def overshared(task):
        read = [
            replace(step, access=tuple(range(1, step.id))) if step.worker == "reader" else step
            for step in task.oracle_turn.steps
        ]
        return replace(task, oracle_turn=replace(task.oracle_turn, steps=tuple(read)))

    async def scored(tasks):
        async with live_pool(starter_pool()) as pool:
            return await evaluate_orchestrator("oracle", tasks, pool)

    tasks = [overshared(find_task("dossier", level, "test", index)) for level in (2, 3) for index in range(10)]
    assert asyncio.run(scored(tasks)).mean == 0.0


def test_workshop_knows_every_compound_as_the_worker_does():
    for formula in load_compounds():
        assert workshop_mass(formula) == pytest.approx(molar_mass(formula), rel=1e-9)
    assert len({formula.lower() for formula in load_compounds()}) == len(load_compounds())


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("2025-04-20 21:30", "2025-13-20 21:30"),
        ("2025-04-20 21:30", "0001-01-01 00:00"),
        ("2025-06-01", "2029-06-01"),
        ("2025-06-01", "2025-01-01"),
        ("GRU", "QQQ"),
        ("840 km/h", "0 km/h"),
    ],
)
def test_an_itinerary_that_cannot_be_is_no_task(right, wrong):
    query = (
        "A flight leaves at 2025-04-20 21:30 local time from LIS and flies the great circle at 840 km/h to GRU. From "
        "its local landing date to 2025-06-01, both included, how many business days are there in the country where "
        "it lands?"
    )
    task = recognize_task(query)
    assert task is not None and task.expected == 28
    assert recognize_task(query.replace(right, wrong)) is None


def test_atlas_keeps_every_country_of_the_test_split_out_of_training():
    def countries(split: str) -> set[str]:
        suite = SUITES["atlas"]
        return {place for index in range(150) for place in suite.read(suite.task(2, split, index).query).places}

    assert not countries("train") & countries("test")


@pytest.mark.medium
@pytest.mark.parametrize(("family", "level"), CELLS)
def test_the_reference_plan_earns_its_answer_through_the_real_workers(family, level):
    async def scored():
        async with live_pool(starter_pool()) as pool:
            return await evaluate_orchestrator(
                "oracle", [find_task(family, level, "test", index) for index in range(12)], pool
            )

    result = asyncio.run(scored())
    assert (result.mean, set(result.statuses), result.turn_errors) == (1.0, {"OK"}, 0)


def test_another_tasks_plan_does_not_earn_the_answer():
    right, other = (find_task("forge", 1, "test", index) for index in (0, 1))
    wrong = replace(right, oracle_turn=other.oracle_turn)

    async def scored():
        async with live_pool(starter_pool()) as pool:
            return await evaluate_orchestrator("oracle", [wrong], pool)

    assert asyncio.run(scored()).mean == 0.0


@pytest.mark.parametrize(("family", "level"), CELLS)
def test_a_query_is_recognised_also_when_a_person_has_touched_it(family, level):
    for index in range(8):
        task = find_task(family, level, "test", index)
        for touched in (task.query, f"  {task.query.upper()} ".replace(" ", "  "), task.query.rstrip(".?")):
            found = recognize_task(touched)
            assert found is not None and found.expected == task.expected
            assert found.ref.level == level and found.ref.family == family


@given(st.text(max_size=3000))
@settings(max_examples=200, deadline=None)
def test_recognition_is_total(query):
    recognize_task(query)


@given(st.sampled_from(CELLS), st.integers(0, 100_000), st.sampled_from(SPLITS))
@settings(max_examples=60, deadline=None)
def test_every_plan_survives_the_plan_dialect_and_its_answer_passes_its_own_grader(cell, index, split):
    task = find_task(*cell, split, index)
    dialect = PlanDialect()
    workers = list(dict.fromkeys(step.worker for step in task.oracle_turn.steps))
    back = dialect.parse(dialect.format(task.oracle_turn, ()), 1, workers)
    steps = tuple(replace(step, need="") for step in task.oracle_turn.steps)  # the dialect has no place for needs
    assert (back.steps, back.answer, back.error) == (steps, task.oracle_turn.answer, None)
    accepts = task.verifier.accepts
    assert accepts(task.expected) and accepts(f"The answer is <answer>{task.expected}</answer>.")
    assert not accepts(None) and not accepts("") and not accepts(f"{task.expected} or 12345.678")


@pytest.mark.parametrize(
    ("family", "level", "split", "index", "said"),
    [
        ("nope", 1, "test", 0, "atlas, dossier, forge"),
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
    assert parse_last_number(text) == number


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())))
def test_graders_are_total(answer):
    assert isinstance(NumberWithin(5.0, 0.1).accepts(answer), bool)


@given(st.floats(-1e9, 1e9), st.integers(0, 4))
def test_any_usual_rounding_of_the_figure_passes_and_the_next_one_does_not(value, digits):
    if is_near_tie(value, digits):
        return
    verifier = make_rounded_verifier(value, digits)
    unit = 10.0**-digits
    assert verifier.accepts(f"{value:.{digits}f}")
    off = math.floor(value / unit + 0.5) * unit + 2 * unit
    assert not verifier.accepts(f"{off:.{digits}f}")
