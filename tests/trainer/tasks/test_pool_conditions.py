"""Changed pools: the reference plan still works under the new names, and flaky tools fail as they were told to."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from orchestrator.plan import Step, Turn
from pool_registry.actions import Action, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.errors import InvalidPool
from pool_registry.pool import Pool, check_pool
from pool_registry.starter import starter_pool
from pool_registry.worker import WorkerSpec
from trainer.evaluation.trials import evaluate_orchestrator
from trainer.tasks import SUITES, find_task
from trainer.tasks.pool_conditions import (
    CONDITIONS,
    apply_condition,
    describe_work,
    load_condition_data,
    rename_in_turn,
)

STARTER = starter_pool()
OTHER_WORDS = load_condition_data().words
SEEDS = range(12)
SOLVABLE = sorted(set(CONDITIONS) - {"flaky"})


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_depends_on_its_seed_alone(condition):
    change = CONDITIONS[condition]
    assert change(STARTER, 3) == change(STARTER, 3)
    pools = {change(STARTER, seed)[0].hash for seed in SEEDS}
    assert len(pools) > 4 or condition in ("seen", "memory")


@pytest.mark.parametrize("condition", CONDITIONS)
def test_every_name_of_the_renaming_is_in_the_changed_pool(condition):
    for seed in SEEDS:
        pool, renaming = CONDITIONS[condition](STARTER, seed)
        names = {spec.name for spec in pool.workers}
        assert set(renaming) <= {spec.name for spec in STARTER.workers}
        assert {renaming.get(spec.name, spec.name) for spec in STARTER.workers} <= names


@pytest.mark.medium
@pytest.mark.parametrize("condition", SOLVABLE)
def test_the_reference_plan_solves_every_family_under_the_new_names(condition):
    async def scored(seed: int):
        pool, renaming = CONDITIONS[condition](STARTER, seed)
        tasks = [suite.task(level, "test", seed) for suite in SUITES.values() for level in suite.levels]
        tasks = [replace(task, oracle_turn=rename_in_turn(task.oracle_turn, renaming)) for task in tasks]
        async with live_pool(pool) as live:
            return await evaluate_orchestrator("oracle", tasks, live)

    for seed in range(2):
        result = asyncio.run(scored(seed))
        assert (result.mean, set(result.statuses)) == (1.0, {"OK"})


def test_held_out_words_share_nothing_with_the_starter_pool():
    starter = {text for spec in STARTER.workers for text in (spec.name, spec.description)}
    others = [text for words in OTHER_WORDS.values() for pair in words for text in (pair.name, pair.description)]
    assert not starter & set(others)
    assert len(set(others)) == len(others)
    assert set(OTHER_WORDS) == {spec.name for spec in STARTER.workers}
    assert not {spec.name for spec in load_condition_data().distractors} & {*starter, *others}


def own_pool(*descriptions: str) -> Pool:
    workers = (
        WorkerSpec(name=f"own_{k}", kind="sql", description=text, config={"database": f"/data/{k}.db"})
        for k, text in enumerate(descriptions)
    )
    return Pool(name="mine", workers=tuple(workers))


def test_workers_that_no_bank_knows_get_names_and_words_that_their_own_do_not_hold():
    mine = own_pool("Returns the city of a customer.", "Calculates the price of one item.", "Orders. Takes 'item 4'.")
    for seed in SEEDS:
        pool, renaming = CONDITIONS["renamed"](mine, seed)
        assert set(renaming) == {"own_0", "own_1", "own_2"} and len(set(renaming.values())) == 3
        for old in mine.workers:
            new = pool.worker(renaming[old.name])
            assert old.name not in new.name and (new.kind, new.config) == (old.kind, old.config)
            assert new.description != old.description
        assert "town of a client" in pool.worker(renaming["own_0"]).description
        assert "cost of one piece" in pool.worker(renaming["own_1"]).description
        assert "'item 4'" in pool.worker(renaming["own_2"]).description  # a value that is quoted stays


def test_a_starter_worker_in_an_own_pool_keeps_the_banks_words():
    pool, renaming = CONDITIONS["renamed"](Pool(name="mine", workers=(STARTER.worker("units"),)), 0)
    assert renaming["units"] in {words.name for words in OTHER_WORDS["units"]} and pool.workers[0].kind == "units"


def test_distractors_of_an_own_pool_come_from_other_pools_and_have_no_effects():
    mine = own_pool("Returns the city of a customer.")
    order = WorkerSpec(
        name="order", kind="http", description="Orders.", config={"url": "https://example.com", "method": "POST"}
    )
    theirs = Pool(name="theirs", workers=(*(STARTER.worker(name) for name in ("units", "clock", "calendar")), order))
    bank = {spec.name for spec in load_condition_data().distractors}
    for seed in SEEDS:
        pool, _ = apply_condition("distractors", mine, seed, [theirs])
        added = [spec.name for spec in pool.workers if spec.name != "own_0"]
        assert 2 <= len(added) <= 5 and "order" not in added
        assert len({"units", "clock", "calendar"} & set(added)) == min(3, len(added))
        alone, _ = apply_condition("distractors", mine, seed)
        assert {spec.name for spec in alone.workers} - {"own_0"} <= bank


def test_distractors_of_the_starter_pool_stay_those_of_the_bank():
    theirs = own_pool("Returns the city of a customer.")
    for seed in SEEDS:
        assert apply_condition("distractors", STARTER, seed, [theirs]) == apply_condition("distractors", STARTER, seed)


def test_a_missing_tool_has_one_substitute():
    for seed in SEEDS:
        pool, renaming = CONDITIONS["missing"](STARTER, seed)
        ((gone, substitute),) = renaming.items()
        assert gone not in {spec.name for spec in pool.workers} and len(pool.workers) == len(STARTER.workers)
        assert pool.worker(substitute).kind == STARTER.worker(gone).kind


def test_the_cheap_twin_is_the_one_that_the_renaming_names():
    pool, renaming = CONDITIONS["priced"](STARTER, 0)
    assert renaming
    for dear, cheap in renaming.items():
        assert 0 < pool.worker(cheap).price_call < pool.worker(dear).price_call


def test_remapping_touches_names_only():
    turn = Turn((Step(1, "a", {"x": "a"}), Step(2, "b", {"x": "$1"}, (1,))), "$2")
    assert rename_in_turn(turn, {"a": "c"}) == Turn((Step(1, "c", {"x": "a"}), Step(2, "b", {"x": "$1"}, (1,))), "$2")


def flaky_calculator(**config) -> WorkerSpec:
    inner = STARTER.worker("calculator").model_dump(mode="json")
    return WorkerSpec(
        name="calculator", kind="flaky", description="d", config={"inner": inner, **config}, timeout_s=0.2
    )


def outcomes(spec: WorkerSpec, count: int = 40) -> list[Status]:
    async def called():
        async with live_pool(Pool(name="p", workers=(spec,))) as live:
            return [(await live.call(Action("calculator", {"expression": f"{k}+1"}))).status for k in range(count)]

    return asyncio.run(called())


def test_a_flaky_tool_fails_on_the_same_calls_every_time():
    spec = flaky_calculator(rate=0.5, seed=7)
    first, again, other = outcomes(spec), outcomes(spec), outcomes(flaky_calculator(rate=0.5, seed=8))
    assert first == again != other
    assert set(first) == {Status.OK, Status.EXEC_ERR} and 8 < first.count(Status.OK) < 32


def test_a_flaky_tool_can_hang_until_its_time_out():
    assert outcomes(flaky_calculator(rate=1, statuses=["TIMEOUT"]), 1) == [Status.TIMEOUT]
    assert set(outcomes(flaky_calculator(rate=0))) == {Status.OK}


def test_a_flaky_agent_or_a_broken_inner_worker_is_refused():
    for inner in (
        STARTER.worker("solver").model_dump(mode="json"),
        {"name": "x", "kind": "nope", "description": "d"},
        {"name": "x", "kind": "memos", "description": "d", "config": {"room": "z"}},
        {},
    ):
        with pytest.raises(InvalidPool, match="inner"):
            check_pool(Pool(name="p", workers=(flaky_calculator().model_copy(update={"config": {"inner": inner}}),)))


def test_asking_the_twin_of_a_flaky_tool_recovers_the_task():
    pool, _ = CONDITIONS["flaky"](STARTER, 0)
    twins = {spec.name: words.name for spec in pool.workers if spec.kind == "flaky" for words in OTHER_WORDS[spec.name]
             if words.name in {other.name for other in pool.workers}}  # fmt: skip
    tasks = [find_task("ledger", 2, "test", index) for index in range(4)]
    tasks = [replace(task, oracle_turn=rename_in_turn(task.oracle_turn, twins)) for task in tasks]

    async def scored():
        async with live_pool(pool) as live:
            return await evaluate_orchestrator("oracle", tasks, live)

    assert twins and asyncio.run(scored()).mean == 1.0


def test_a_kind_says_which_settings_do_not_tell_works_apart():
    def flaky(seed, rate):
        inner = STARTER.workers[0].model_dump(mode="json")
        return WorkerSpec(name="w", kind="flaky", description="d", config={"inner": inner, "rate": rate, "seed": seed})

    assert describe_work(flaky(1, 0.5)) == describe_work(flaky(2, 0.5)) != describe_work(flaky(1, 0.2))
    strange = WorkerSpec(name="w", kind="stranger", description="d", config={"seed": 1})
    assert describe_work(strange) != describe_work(strange.model_copy(update={"config": {"seed": 2}}))
