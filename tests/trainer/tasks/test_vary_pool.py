"""Pools drawn for a task: the plan stays valid and right, every share does what it says, and seeds decide all."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.engine.episode_loop import NoSink
from orchestrator.plan import check_turn
from orchestrator.policies.baselines.oracle import OraclePolicy
from orchestrator.quotes import references
from pool_registry.calls.live_pool import live_pool, open_live_pool
from pool_registry.errors import InvalidPool
from pool_registry.pool import Pool, check_pool
from pool_registry.starter import starter_pool
from pool_registry.worker import WorkerSpec
from trainer.evaluation.trials import run_task
from trainer.tasks import SUITES, find_task
from trainer.tasks.pool_conditions import load_condition_data, unwrap_worker
from trainer.tasks.pool_settings import PoolSettings
from trainer.tasks.shared_pools import make_vary
from trainer.tasks.task import Task
from trainer.tasks.vary_pool import vary_pool

STARTER = starter_pool()
CELLS = [(family, level) for family, suite in SUITES.items() for level in suite.levels]
OFF = PoolSettings(
    subset=None, shuffle=False, distractors=0, rename=0, rename_parameters=0, redescribe=0, substitute=0, prices=0,
    latencies=0, flaky=0,
)  # fmt: skip
ALL = PoolSettings(
    rename=1, rename_parameters=1, redescribe=1, substitute=1, prices=1, latencies=1, max_latency_ms=10, flaky=1
)
OTHER = Pool(
    name="other",
    workers=(
        WorkerSpec(name="sums", kind="calculator", description="the same work as the starter's calculator"),
        WorkerSpec(name="archive", kind="search", description="other texts", config={"corpus": "starter:factbook"}),
    ),
)

shares = st.sampled_from([0.0, 0.3, 1.0])
any_settings = st.builds(
    PoolSettings,
    subset=st.none() | st.integers(0, 8),
    shuffle=st.booleans(),
    distractors=st.integers(0, 5),
    rename=shares,
    rename_parameters=shares,
    redescribe=shares,
    substitute=shares,
    prices=shares,
    latencies=shares,
    flaky=shares,
)


def a_task(index: int = 0, cell: tuple[str, int] = ("ledger", 2)) -> Task:
    return find_task(*cell, "train", index)


def run_plan(task: Task):
    async def run():
        async with live_pool(task.pool) as live:
            return await run_task(task, OraclePolicy(task.oracle_turn), live, NoSink())

    return asyncio.run(run())


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(CELLS), st.integers(0, 500), any_settings, st.integers(0, 5))
def test_a_plan_is_valid_on_every_pool_that_is_drawn(cell, index, drawn, seed):
    task = a_task(index, cell)
    varied = vary_pool(task, STARTER, drawn, seed, [OTHER])
    check_pool(varied.pool)
    live = open_live_pool(varied.pool)
    checked = check_turn(varied.oracle_turn, live, ())
    assert checked.error is None and not any(step.problem for step in checked.steps)
    for step, before in zip(varied.oracle_turn.steps, task.oracle_turn.steps, strict=True):
        assert step.worker in live.workers
        # A quoted value has its type only when the plan runs, which the next test does.
        values = {name: value for name, value in step.arguments.items() if not references(value)}
        properties = live.workers[step.worker].parameters["properties"]
        assert set(step.arguments) <= set(properties)
        assert values != step.arguments or live.workers[step.worker].argument_problem(values) is None
        assert (step.id, step.access, step.need) == (before.id, before.access, before.need)
        work, original = unwrap_worker(varied.pool.worker(step.worker)), STARTER.worker(before.worker)
        assert (work.kind, work.config) == (original.kind, original.config)
    assert (varied.query, varied.expected, varied.ref) == (task.query, task.expected, task.ref)


@pytest.mark.parametrize("cell", CELLS)
def test_the_plan_gives_the_expected_answer_whatever_is_drawn(cell):
    episode = run_plan(vary_pool(a_task(3, cell), STARTER, ALL, 1, [OTHER]))
    assert episode.graded.correct and {seen.status for seen in episode.observations().values()} == {"OK"}


@given(st.integers(0, 10_000), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_seed_and_task_decide_everything(index, seed):
    one, again = (vary_pool(a_task(index), STARTER, PoolSettings(), seed) for _ in range(2))
    assert one == again
    assert one.pool.hash != vary_pool(a_task(index), STARTER, PoolSettings(), seed + 1).pool.hash


def test_pools_differ_from_task_to_task():
    assert len({vary_pool(a_task(index), STARTER, PoolSettings(), 0).pool.hash for index in range(50)}) == 50


def test_nothing_varies_where_all_is_off():
    varied = vary_pool(a_task(), STARTER, OFF, 0, [OTHER])
    assert varied.pool.workers == STARTER.workers and varied.oracle_turn == a_task().oracle_turn
    assert varied.pool.name == "starter-varied"
    assert make_vary(STARTER, None, 0)(a_task()) == a_task()


@given(st.integers(0, 300), st.integers(0, 8))
@settings(max_examples=40, deadline=None)
def test_a_subset_holds_the_needed_workers_and_at_most_so_many_others(index, extra):
    task = a_task(index)
    names = [spec.name for spec in vary_pool(task, STARTER, OFF.model_copy(update={"subset": extra}), 0).pool.workers]
    assert set(task.workers) <= set(names) and len(names) <= len(task.workers) + extra
    assert names == [spec.name for spec in STARTER.workers if spec.name in names], "in the pool's order"


def test_subsets_have_every_size():
    sizes = {
        len(vary_pool(a_task(k), STARTER, OFF.model_copy(update={"subset": 8}), 0).pool.workers) for k in range(99)
    }
    assert len(sizes) >= 9


def test_a_task_without_a_plan_keeps_every_worker():
    task = replace(a_task(), oracle_turn=None)
    varied = vary_pool(task, STARTER, OFF.model_copy(update={"subset": 0}), 0)
    assert varied.pool.workers == STARTER.workers and varied.oracle_turn is None


def test_names_are_made_up_in_the_share_of_tasks_that_the_recipe_says():
    drawn = OFF.model_copy(update={"rename": 0.67})
    old = {spec.name for spec in STARTER.workers}
    pools = [vary_pool(a_task(index), STARTER, drawn, 0).pool for index in range(300)]
    fresh = [not old & {spec.name for spec in pool.workers} for pool in pools]
    assert all(new or pool.workers == STARTER.workers for new, pool in zip(fresh, pools, strict=True))
    assert 0.57 < sum(fresh) / len(fresh) < 0.77


def test_descriptions_come_from_the_training_part_of_the_bank():
    bank = load_condition_data().descriptions
    drawn = OFF.model_copy(update={"redescribe": 1.0})
    seen = {spec.name: set() for spec in STARTER.workers}
    for index in range(120):
        for spec in vary_pool(a_task(index), STARTER, drawn, 0).pool.workers:
            seen[spec.name].add(spec.description)
    for name, texts in seen.items():
        assert texts == {STARTER.worker(name).description, *bank[name].train}


def test_a_worker_of_another_work_keeps_its_description_though_it_has_a_known_name():
    config = {"database": "starter:ledger", "query": "select 1"}
    mine = WorkerSpec(name="calculator", kind="sql", description="not the starter's", config=config)
    drawn = OFF.model_copy(update={"redescribe": 1.0})
    task = replace(a_task(), oracle_turn=None)
    assert vary_pool(task, Pool(name="p", workers=(mine,)), drawn, 0).pool.workers == (mine,)


def test_a_substitute_does_the_work_of_a_needed_tool_that_is_gone():
    drawn = OFF.model_copy(update={"substitute": 1.0})
    for index in range(20):
        task = a_task(index)
        varied = vary_pool(task, STARTER, drawn, 0)
        (gone,) = set(task.workers) - set(varied.workers)
        assert varied.pool.find_worker(gone) is None and len(varied.pool.workers) == len(STARTER.workers)


def test_a_tool_that_fails_has_a_twin_that_the_plan_calls():
    drawn = OFF.model_copy(update={"flaky": 1.0})
    for index in range(20):
        varied = vary_pool(a_task(index), STARTER, drawn, 0)
        (weak,) = (spec for spec in varied.pool.workers if spec.kind == "flaky")
        assert weak.name in a_task(index).workers and weak.name not in varied.workers
        assert weak.config["statuses"] == ["EXEC_ERR"], "no call hangs until its time-out"


def test_distractors_come_from_the_bank_and_from_other_pools_and_do_no_work_of_the_pool():
    drawn = OFF.model_copy(update={"distractors": 5})
    old = {spec.name for spec in STARTER.workers}
    pools = [vary_pool(a_task(index), STARTER, drawn, 0, [OTHER]).pool for index in range(80)]
    added = [{spec.name for spec in pool.workers} - old for pool in pools]
    assert {len(names) for names in added} >= {0, 1, 2, 3, 4}
    bank = [spec.name for spec in load_condition_data().distractors]
    assert set().union(*added) == {*bank[:5], "archive"}, "`sums` does what the starter's calculator does"


def test_prices_are_drawn_and_told():
    varied = vary_pool(a_task(), STARTER, OFF.model_copy(update={"prices": 1.0}), 0)
    priced = [spec for spec in varied.pool.workers if spec.price_call]
    assert len(priced) == 8 and all(f"Costs {spec.price_call:g} US dollars" in spec.description for spec in priced)


def test_a_task_with_its_own_pool_varies_that_one():
    own = Pool(name="own", workers=tuple(STARTER.worker(name) for name in ("calculator", "sql", "calendar", "units")))
    task = replace(find_task("ledger", 1, "train", 0), pool=own)
    varied = vary_pool(task, Pool(name="empty"), OFF.model_copy(update={"rename": 1.0}), 0)
    assert varied.pool.name == "own-varied" and len(varied.pool.workers) == 4
    assert run_plan(varied).graded.correct


def test_parameters_of_other_names_reach_the_tool():
    drawn = OFF.model_copy(update={"rename_parameters": 1.0})
    task = find_task("ledger", 4, "train", 0)
    varied = vary_pool(task, STARTER, drawn, 0)
    wrapped = [spec for spec in varied.pool.workers if spec.kind == "renamed_parameters"]
    assert {spec.name for spec in wrapped} == {spec.name for spec in STARTER.workers[:15]}, "every tool, no agent"
    old, new = ([set(step.arguments) for step in turn.steps] for turn in (task.oracle_turn, varied.oracle_turn))
    assert all(not before & after for before, after in zip(old, new, strict=True))
    assert run_plan(varied).graded.correct


def test_wrong_names_of_parameters_are_refused_when_the_pool_is_opened():
    inner = STARTER.worker("units").model_dump(mode="json")
    for names, problem in (({"nope": "x"}, "no parameter 'nope'"), ({"value": "to_unit"}, "the same name")):
        config = {"inner": inner, "names": names}
        spec = WorkerSpec(name="units", kind="renamed_parameters", description="d", config=config)
        with pytest.raises(InvalidPool, match=problem):
            open_live_pool(Pool(name="p", workers=(spec,)))


def test_the_banks_hold_eight_wordings_for_every_worker_and_none_twice():
    data = load_condition_data()
    assert set(data.descriptions) == {spec.name for spec in STARTER.workers}
    texts = [text for bank in data.descriptions.values() for text in (*bank.train, *bank.test)]
    texts += [words.description for bank in data.words.values() for words in bank]
    texts += [spec.description for spec in STARTER.workers]
    assert len(set(texts)) == len(texts)
    assert all(len(bank.train) >= 6 and len(bank.test) == 2 for bank in data.descriptions.values())
