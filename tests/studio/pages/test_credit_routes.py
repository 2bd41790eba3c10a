"""The credit of a recorded run: over HTTP, and by `podium credit`."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from pool_registry.pool import Pool
from studio.__main__ import app
from tests.trainer.support.shop import describe_worker
from trainer.tasks import find_task


@pytest.fixture(scope="module")
def episode(runtime):
    """A run of a suite's query by its reference plan."""
    started = runtime.start_episode("starter", "oracle", find_task("forge", 1, "test", 4).query)
    while runtime.store.traces.row(started).state == "running":
        pass
    return started


def test_a_graded_run_has_a_credit_for_each_step_worker_and_entry(client, runtime, episode):
    credit = client.post(f"/api/episodes/{episode}/credit").json()
    recorded = runtime.store.traces.episode(episode)
    assert credit["score"] == 1 and credit["reason"] == ""
    assert len(credit["steps"]) == len(recorded.steps)
    assert {line["worker"] for line in credit["workers"]} == {run.step.worker for run in recorded.steps.values()}
    assert len(credit["access"]) == sum(len(run.step.access) for run in recorded.steps.values())
    assert any(line["value"] == 1 for line in credit["steps"]) and 0 < credit["needed_share"] <= 1


def test_measuring_leaves_no_trace_behind(client, runtime, episode):
    before = len(runtime.store.traces.distinct("id"))
    client.post(f"/api/episodes/{episode}/credit")
    runtime.store.traces.flush()
    assert len(runtime.store.traces.distinct("id")) == before


def test_a_run_that_nothing_grades_says_why_and_an_unknown_one_is_404(client, runtime):
    calc = Pool(name="plain", workers=(describe_worker("calc", "calculator", "Evaluates."),))
    runtime.store.pools.save(calc)
    started = runtime.start_episode("plain", "random_plan:1", "what is it?")
    while runtime.store.traces.row(started).state == "running":
        pass
    assert "nothing grades this run" in client.post(f"/api/episodes/{started}/credit").json()["reason"]
    assert client.post("/api/episodes/nothing/credit").status_code == 404


def test_the_command_prints_the_same(runtime, episode):
    runtime.store.traces.flush()
    words = ["credit", episode, "--home", str(runtime.store.home.root)]
    text = CliRunner().invoke(app, words)
    assert text.exit_code == 0 and text.stdout.startswith("score 1; credit = score - score without it")
    document = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert document["episode"] == episode and document["steps"]
