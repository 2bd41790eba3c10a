"""Tasks that bring their own pool: it is opened once for all who use it, closed in the end, and found for a trace."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from orchestrator.engine.episode_loop import NoSink
from orchestrator.traces.store import open_store
from pool_registry.actions import JsonValue
from pool_registry.calls.caching_pool import CachingPool
from pool_registry.calls.live_pool import LivePool, open_live_pool
from pool_registry.kinds import KINDS, add_kind
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from pool_registry.storage.data_folder import find_home
from pool_registry.worker import Call, Reply, Worker, WorkerSpec, one_string
from trainer.demonstrations.collect import DemonstrationCollector
from trainer.evaluation.trials import evaluate_orchestrator
from trainer.recipe_sections import DemonstrationSettings, ModelSettings
from trainer.tasks import find_task
from trainer.tasks.pool_conditions import apply_condition
from trainer.tasks.task import Task
from trainer.tasks.task_conditions import rename_in_task
from trainer.tasks.task_pools import TaskPools

HOME = Pool(name="home", workers=(WorkerSpec(name="calculator", kind="calculator", description="adds"),))


class Counted(Worker):
    """A worker that counts how many of it are open."""

    open_now = 0
    opened = 0

    def __init__(self, spec, config) -> None:
        super().__init__(spec, config)
        Counted.open_now += 1
        Counted.opened += 1

    @property
    def parameters(self) -> dict[str, JsonValue]:
        return one_string("text", "anything")

    async def call(self, call: Call) -> Reply:
        return Reply(call.text("text"))

    async def close(self) -> None:
        await asyncio.sleep(0)  # other episodes go on while a worker closes
        Counted.open_now -= 1


@pytest.fixture(autouse=True)
def counted():
    add_kind("counted", Counted)
    Counted.open_now = Counted.opened = 0
    yield
    del KINDS.built_in["counted"]


def counted_pool(number: int) -> Pool:
    return Pool(name=f"p{number}", workers=(WorkerSpec(name="counted", kind="counted", description="counts"),))


def task_on(pool: Pool | None, index: int = 0) -> Task:
    return replace(find_task("forge", 1, "train", index), pool=pool)


def renamed_task(index: int) -> Task:
    """A task on a renamed starter pool of its own."""
    pool, renaming = apply_condition("renamed", starter_pool(), index)
    return replace(rename_in_task(renaming, find_task("forge", 1, "train", index)), pool=pool)


def with_pools(use, home: Pool = HOME, **options):
    async def run():
        live = open_live_pool(home)
        pools = TaskPools(live, **options)
        try:
            return await use(pools)
        finally:
            await pools.close()
            await live.close()

    return asyncio.run(run())


def test_a_task_without_a_pool_runs_on_the_jobs():
    async def use(pools: TaskPools):
        async with pools.open(task_on(None)) as pool:
            return pool is pools.home

    assert with_pools(use)


def test_tasks_of_equal_pools_share_one_open_pool():
    async def use(pools: TaskPools):
        async with pools.open(task_on(counted_pool(1))) as one, pools.open(task_on(counted_pool(1))) as other:
            return one is other and one.pool.name == "p1"

    assert with_pools(use) and (Counted.opened, Counted.open_now) == (1, 0)


def test_idle_pools_are_closed_beyond_the_limit_the_oldest_first():
    async def use(pools: TaskPools):
        async with pools.open(task_on(counted_pool(0))):
            for number in range(1, 6):
                async with pools.open(task_on(counted_pool(number))):
                    assert Counted.open_now <= 4, "two idle ones, and the two in use"
        opened = Counted.opened
        async with pools.open(task_on(counted_pool(5))):
            assert Counted.opened == opened, "the newest is still open"
        async with pools.open(task_on(counted_pool(1))):
            assert Counted.opened == opened + 1, "an old one was closed"

    with_pools(use, max_open=2)
    assert Counted.open_now == 0


def test_episodes_that_end_while_a_pool_closes_close_every_pool_once():
    async def use(pools: TaskPools):
        async def run_episode(number: int) -> None:
            async with pools.open(task_on(counted_pool(number))):
                await asyncio.sleep(0)

        for number in range(5):
            await run_episode(number)
        await asyncio.gather(*map(run_episode, range(5, 10)))
        return Counted.open_now

    assert with_pools(use, max_open=5) == 5
    assert Counted.open_now == 0


def test_calls_are_cached_where_those_of_the_job_are():
    async def run():
        home = open_live_pool(HOME)
        pools = TaskPools(CachingPool(home))
        async with pools.open(task_on(starter_pool())) as pool:
            assert isinstance(pool, CachingPool)
        await pools.close()
        await home.close()
        return pools.hits

    assert asyncio.run(run()) == 0


def test_an_evaluation_runs_every_task_on_its_pool_and_traces_find_it(tmp_path):
    store = open_store(find_home(str(tmp_path)))
    store.pools.save(HOME)
    tasks = [renamed_task(index) for index in range(4)]

    async def scored():
        home = open_live_pool(HOME)
        try:
            return await evaluate_orchestrator("oracle", tasks, home, sink=store.traces)
        finally:
            await home.close()

    result = asyncio.run(scored())
    store.traces.flush()
    rows = [store.traces.row(key) for key in store.traces.distinct("id")]
    assert result.mean == 1.0 and len(rows) == 4
    for row in rows:
        stored = store.pools.by_hash(row.pool, row.pool_hash)
        assert stored is not None and stored.version == 0
        called = {run.step.worker for run in store.traces.episode(row.id).steps.values()}
        assert called <= {spec.name for spec in stored.pool.enabled}
    assert store.pools.names() == ["home"], "pools of tasks fill no list"
    store.close()


def test_demonstrations_show_the_pool_of_their_task():
    tasks = [renamed_task(index) for index in range(6)]
    settings = DemonstrationSettings(faults=0.5)

    async def collect(home: LivePool):
        return await DemonstrationCollector(settings, ModelSettings(), home, NoSink(), seed=1).collect(tasks)

    async def run():
        home = open_live_pool(HOME)
        try:
            return await collect(home)
        finally:
            await home.close()

    rows = asyncio.run(run())
    assert len(rows) > 3
    for row in rows:
        task = next(task for task in tasks if task.query == row.query)
        assert all(spec.name in row.messages[0].content for spec in task.pool.enabled)
