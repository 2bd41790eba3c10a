"""Deletion from the pages: chosen traces and a pool, what depends on them, and the undo."""

from __future__ import annotations

import time

import pytest

from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from studio.pages.pool.commands import PoolCommands
from studio.pages.traces.commands import TraceCommands
from studio.runtime import Runtime

CALC = WorkerSpec(name="calc", kind="calculator", description="Arithmetic.")


@pytest.fixture
def mine(runtime: Runtime) -> str:
    runtime.store.pools.save(Pool(name="mine", workers=(CALC,)))
    return "mine"


def test_chosen_traces_are_deleted_and_put_back(client, runtime, mine):
    episode = runtime.start_episode(mine, "random_plan:1", "1 + 1")
    commands = TraceCommands(runtime)
    while runtime.store.traces.row(episode).state == "running":
        time.sleep(0.05)
    assert commands.run("star", {"ids": [episode]})["ok"]
    assert "starred" in commands.run("check", {"ids": [episode]})["affected"][0]
    deleted = commands.run("delete", {"ids": [episode]})
    rows = client.get("/api/traces?source=mine").json()["rows"]
    assert deleted["ok"] and episode not in [row["id"] for row in rows]
    assert commands.run("restore", {"trash": deleted["trash"]})["ok"]
    page = client.get("/api/traces?source=mine&sort=-tokens").json()
    assert episode in [row["id"] for row in page["rows"]] and page["sources"] == ["mine"]
    assert not commands.run("delete", {"ids": []})["ok"]


@pytest.mark.parametrize(("order", "ascending"), [("", False), ("-started_at", False), ("started_at", True)])
def test_traces_are_listed_newest_first_unless_an_order_is_named(client, runtime, mine, order, ascending):
    for query in ("1 + 2", "1 + 3"):
        episode = runtime.start_episode(mine, "random_plan:1", query)
        while runtime.store.traces.row(episode).state == "running":
            time.sleep(0.01)
    starts = [row["started_at"] for row in client.get(f"/api/traces?sort={order}").json()["rows"]]
    assert len(starts) >= 2 and starts == sorted(starts, reverse=not ascending)


def test_a_pool_is_renamed_deleted_and_put_back(runtime, mine):
    commands = PoolCommands(runtime)
    assert not commands.run("rename_pool", {"pool": mine, "name": "starter"})["ok"]
    renamed = commands.run("rename_pool", {"pool": mine, "name": "ours"})
    assert renamed["ok"] and renamed["state"]["pool"]["name"] == "ours"
    assert commands.run("dependents", {"pool": "starter"})["blocking"]
    deleted = commands.run("delete_pool", {"pool": "ours"})
    assert "ours" not in deleted["state"]["pools"]
    back = commands.run("put_back", {"trash": deleted["trash"]})
    assert back["state"]["pool"]["name"] == "ours"
