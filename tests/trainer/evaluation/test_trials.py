"""Evaluations: figures from real episodes on disk, reproducible, and the commands that scripts rely on."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import UnknownOrchestrator
from orchestrator.traces.store import open_store
from pool_registry.calls.live_pool import live_pool
from pool_registry.starter import starter_pool
from pool_registry.storage.data_folder import find_home
from trainer.evaluation.trials import evaluate_orchestrator
from trainer.results.statistics import bootstrap_mean, quantile, wilson_interval
from trainer.tasks import find_task

pytestmark = pytest.mark.medium


def trainer(*arguments: str, home: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200", **({"PODIUM_HOME": home} if home else {})}
    return subprocess.run(
        [sys.executable, "-m", "trainer", *arguments], capture_output=True, text=True, env=environment, timeout=300
    )


def test_an_evaluation_counts_what_happened_and_keeps_every_episode(tmp_path):
    tasks = [find_task("atlas", level, "test", index) for level in (1, 2) for index in range(5)]
    store = open_store(find_home(str(tmp_path)))

    async def measured():
        async with live_pool(starter_pool()) as pool:
            return await evaluate_orchestrator("oracle", tasks, pool, sink=store.traces, concurrency=3)

    result = asyncio.run(measured())
    store.traces.flush()
    assert (result.mean, result.tasks, result.family, result.level) == (1.0, 10, "atlas", 0)
    assert [(cell.level, cell.tasks) for cell in result.cells] == [(1, 5), (2, 5)]
    assert result.statuses == {"OK": sum(len(task.oracle_turn.steps) for task in tasks)}
    assert result.outcomes == {"answered": 10} and result.interval[1] == 1.0 and 0.6 < result.interval[0] < 1
    rows = [store.traces.row(episode) for episode in result.episodes]
    assert all(row.correct and row.state == "answered" and row.family == "atlas" for row in rows)
    store.close()


def test_an_orchestrator_that_cannot_be_made_is_told_before_anything_runs(tmp_path):
    async def measured():
        async with live_pool(starter_pool()) as pool:
            await evaluate_orchestrator("direct:nobody", [find_task("forge", 1, "test", 0)], pool)

    with pytest.raises(UnknownOrchestrator, match="solver"):
        asyncio.run(measured())


def test_the_bootstrap_agrees_with_scipy():
    scores = [float(x) for x in np.random.default_rng(3).random(200) < 0.6]
    ours = bootstrap_mean(scores)
    theirs = scipy.stats.bootstrap((scores,), np.mean, method="percentile", n_resamples=9999, rng=1)
    assert ours.mean == np.mean(scores)
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.02)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.02)
    assert ours == bootstrap_mean(scores)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_an_interval_holds_its_mean(scores):
    estimate = bootstrap_mean(scores)
    assert 0 <= estimate.low <= estimate.mean + 1e-9 and estimate.mean <= estimate.high + 1e-9 <= 1 + 2e-9


@given(st.floats(0, 1), st.integers(1, 10_000))
def test_wilson_holds_the_share_it_was_made_from(share, count):
    low, high = wilson_interval(share, count)
    assert 0 <= low <= share <= high <= 1


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.floats(0, 1))
def test_quantiles_agree_with_numpy(values, share):
    assert quantile(values, share) == pytest.approx(float(np.quantile(values, share)), abs=1e-6)


def test_the_command_shows_a_task_for_people_and_for_programs():
    shown = trainer("tasks", "show", "--family", "atlas", "--level", "2", "--index", "7")
    task = find_task("atlas", 2, "test", 7)
    assert shown.returncode == 0
    plain = " ".join(shown.stdout.split())
    assert " ".join(task.query.split()) in plain and str(task.expected) in plain and "calculator" in plain
    document = json.loads(trainer("tasks", "show", "--family", "forge", "--json").stdout)
    assert document["query"] == find_task("forge", 1, "test", 0).query and document["plan"]["steps"]
    assert all(family in trainer("tasks", "list").stdout for family in ("ledger", "atlas", "forge"))
    listed = json.loads(trainer("tasks", "list", "--json").stdout)
    assert "ledger" in {row["name"] for row in listed["families"]}
    assert "reasoning_gym:FAMILY" in {row["source"] for row in listed["sources"]}


def test_the_command_evaluates_and_prints_the_figures(tmp_path):
    arguments = ("evaluate", "--orchestrator", "oracle", "--family", "forge", "--level", "2", "--split", "test")
    done = trainer(*arguments, "--tasks", "4", "--json", home=str(tmp_path))
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["mean"] == 1.0 and len(figures["interval"]) == 2 and figures["statuses"]["OK"] == 16
    assert figures["wall_s"] > 0 and len(figures["episodes"]) == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tasks", "show", "--family", "nope"), "no family 'nope'"),
        (("evaluate", "--orchestrator", "nope", "--family", "forge", "--tasks", "1"), "nope"),
        (("evaluate", "--orchestrator", "oracle", "--family", "forge", "--pool", "nope"), "nope"),
        (("evaluate", "evaluate-baselines", "--pool", "mine"), "--pool: a RECIPE is evaluated as its own section"),
        (("evaluate", "evaluate-baselines", "--json"), "--json: a RECIPE is evaluated as its own section"),
        (("tasks", "list", "--pool", "starter", "--split", "tets"), "no split 'tets'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, arguments, said):
    done = trainer(*arguments, home=str(tmp_path))
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
