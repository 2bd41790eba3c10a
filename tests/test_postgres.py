"""PostgreSQL as the studio's own database and as a worker's, against a real server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from orchestrator.engine.events import Graded
from orchestrator.traces.agent_track_record import read_track_record
from orchestrator.traces.store import TraceFilter, open_store
from pool_registry.actions import Action, Observation, Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Pool
from pool_registry.starter import starter_pool
from pool_registry.storage.data_folder import find_home
from pool_registry.worker import WorkerSpec
from tests.machine import needs
from tests.orchestrator.policies.baselines.test_scored_cascade import play
from tests.orchestrator.support.endpoint import endpoint
from tests.postgres import postgres, programs
from trainer.tasks import find_task

__all__ = ["endpoint"]
pytestmark = [pytest.mark.slow, needs(programs() is not None, "PostgreSQL")]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as url:
        yield url


def test_pools_and_traces_live_in_postgresql(server, tmp_path, monkeypatch):
    query = find_task("forge", 1, "test", 0).query
    environment = {**os.environ, "PODIUM_DATABASE_URL": server}
    command = [
        sys.executable,
        "-m",
        "studio",
        "run",
        query,
        "--orchestrator",
        "starter-grpo",
        "--json",
        "--home",
        str(tmp_path),
    ]
    traces = []
    for _ in range(2):  # the second finds the schema and the pool there
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
        assert done.returncode == 0, done.stderr
        traces.append(json.loads(done.stdout))
    assert not list(tmp_path.glob("*.db"))
    monkeypatch.setenv("PODIUM_DATABASE_URL", server)
    store = open_store(find_home(str(tmp_path)))
    try:
        first, second = store.pools.save(starter_pool()), store.pools.save(_without("units"))
        assert (first.version, second.version) == (1, 2)
        assert store.pools.latest("starter").pool == _without("units")
        found = store.traces.search(TraceFilter(text="MOD 1009", state="correct"))
        assert {row.id for row in found} == {trace["id"] for trace in traces}
        assert store.traces.episode(traces[0]["id"]).answer == traces[0]["answer"]
        assert store.traces.pool_stats({"python": {row.pool_hash for row in found}})["python"].calls == 4
        assert store.traces.mark_interrupted() == 0
    finally:
        store.close()


def test_what_agents_were_right_about_is_read_from_postgresql(server, tmp_path, monkeypatch, endpoint):
    monkeypatch.setenv("PODIUM_DATABASE_URL", server)
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path))
    store = open_store(find_home(str(tmp_path)))
    try:
        episode = play(endpoint, {"a": 14, "b": 14, "c": 13}, {"a": "x", "b": "y", "c": "x"}, sink=store.traces)
        store.traces.append(episode.id, Graded(True, "", 1.0))
        store.traces.flush()
        record = read_track_record("p")
        assert [[outcome.right for outcome in record.outcomes(name)] for name in "abc"] == [[True], [False], [True]]
    finally:
        store.close()


def _without(name: str) -> Pool:
    return starter_pool().without_worker(name)


def select(server: str, query: str, **spec) -> Observation:
    async def once() -> Observation:
        worker = WorkerSpec(name="db", kind="sql", description="d", config={"database": server}, **spec)
        async with live_pool(Pool(name="p", workers=(worker,))) as pool:
            return await pool.call(Action("db", {"query": query}))

    return asyncio.run(once())


@pytest.fixture(scope="module")
def table(server) -> str:
    import psycopg

    with psycopg.connect(server) as connection:
        connection.execute("create table fruit (name text, price numeric)")
        connection.execute("insert into fruit values ('apple', 1.5), ('100% pear', 2)")
    return server


def test_a_worker_reads_postgresql(table):
    assert select(table, "select price from fruit where name = 'apple'").value == 1.5
    assert select(table, "select name from fruit where name like '100%';").value == "100% pear"
    assert len(select(table, "select * from fruit").value) == 2


@pytest.mark.parametrize(
    "query",
    [
        "delete from fruit",
        "insert into fruit values ('fig', 3)",
        "with gone as (delete from fruit returning *) select * from gone",
        "select 1; drop table fruit",
        "select 1) x; drop table fruit; select * from (select 1",
        "set transaction read write",
        "commit",
        "copy fruit to '/tmp/podium-fruit'",
        "select nextval('s')",
        "create table x (y int)",
        "select nothing from nowhere",
    ],
)
def test_a_worker_only_reads_postgresql(table, query):
    seen = select(table, query)
    assert seen.status in (Status.PARSE_ERR, Status.EXEC_ERR) and seen.error.code != "worker_raised"
    assert len(select(table, "select * from fruit").value) == 2


def test_a_query_that_runs_too_long_is_cancelled_on_the_server(table):
    import time

    import psycopg

    assert select(table, "select pg_sleep(30)", timeout_s=0.5).status is Status.TIMEOUT
    deadline = time.monotonic() + 10
    with psycopg.connect(table, autocommit=True) as connection:
        while time.monotonic() < deadline:
            row = connection.execute(
                "select count(*) from pg_stat_activity where query like '%pg_sleep(30)%'"
            ).fetchone()
            if row[0] == 1:  # only this very question
                return
            time.sleep(0.2)
    raise AssertionError("the query still runs on the server")


def test_a_database_that_is_down_is_a_connection_fault():
    seen = select("postgresql://nobody@127.0.0.1:9/none", "select 1")
    assert seen.error.code == "connection"
