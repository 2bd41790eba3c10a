"""Evaluation jobs: every sample once, whatever happens; conditions, spend cap, references, and tables that repeat."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import signal
import time
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from orchestrator.errors import UnknownOrchestrator
from orchestrator.traces.store import TraceFilter
from pool_registry.calls.live_pool import open_live_pool
from pool_registry.pool import Limits, Pool
from pool_registry.starter import starter_pool
from pool_registry.worker import WorkerSpec
from tests.trainer.jobs.test_durability import forked, until
from tests.trainer.support.results import row
from trainer.__main__ import app
from trainer.errors import InvalidRecipe, JobRefused, UnknownReference, UnknownTask
from trainer.evaluation import stage
from trainer.evaluation.side_by_side import compare_jobs
from trainer.evaluation.stage import EvaluationCell, expand_agents
from trainer.evaluation.trials import make_task_key, plan_trials
from trainer.job_process import run_job
from trainer.jobs.job_folder import read_lines
from trainer.recipe import parse_recipe
from trainer.results.rows import append_result, read_results, repair_last_line
from trainer.results.tables import build_tables, render_csv, render_markdown
from trainer.tasks import find_task, pool_conditions, task_conditions
from trainer.tasks.pool_conditions import apply_condition

pytestmark = pytest.mark.medium

CALCULATOR = WorkerSpec(name="calculator", kind="calculator", description="arithmetic")
SOLVER = WorkerSpec(name="solver", kind="local_model", description="a model that no test here calls")
KILLS, EPISODES = 12, 1000


@pytest.fixture
def sums(tmp_path) -> Path:
    """A file of sums with their plans: an episode takes a millisecond."""

    def line(k: int) -> str:
        plan = {"steps": [{"worker": "calculator", "instruction": f"{k} + 1"}], "answer": "$1"}
        return json.dumps({"query": f"What is {k} plus 1?", "answer": k + 1, "plan": plan, "split": "test"})

    path = tmp_path / "sums.jsonl"
    path.write_text("".join(f"{line(k)}\n" for k in range(250)))
    return path


def save_pool(store, *workers: WorkerSpec, **limits) -> None:
    store.pools.save(Pool(name="sums", workers=workers or (CALCULATOR,), limits=Limits(**limits)))


def a_recipe(sums: Path, **evaluate):
    section = {"orchestrators": ["oracle"], "source": f"file:{sums}", "count": 20, "concurrency": 4, **evaluate}
    return parse_recipe(json.dumps({"name": "measure", "pool": "sums", "evaluate": section}))


def run(recipe, store, jobs) -> str:
    key = jobs.submit(recipe, here=True).id
    run_job(key, store, jobs)
    return key


def raw_lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


@pytest.mark.slow
def test_a_thousand_episodes_survive_kills_and_none_is_run_again(store, jobs, sums):
    save_pool(store)
    recipe = a_recipe(sums, count=250, samples=2, conditions=["seen", "renamed"], concurrency=8)
    key, random = jobs.submit(recipe).id, Random(3)
    results = jobs.folder(key).results
    torn = 0
    with forked(store.home.root, key) as processes:
        for kill in range(KILLS):
            if jobs.get(key).state != "queued":
                jobs.resume(key)
            before = raw_lines(results)
            enough = len(before) + random.choice([0, 1, 5, 20, 60])
            process = processes.start(key)
            until(lambda: len(raw_lines(results)) >= enough or enough >= EPISODES, every=0.002)  # noqa: B023
            time.sleep(random.uniform(0, 0.05))
            os.kill(process, signal.SIGKILL)
            assert processes.ended() == signal.SIGKILL, jobs.folder(key).log.read_text()[-3000:]
            assert raw_lines(results)[: len(before)] == before
            if kill % 4 == 1:
                torn += 1
                with results.open("ab") as file:
                    file.write(b'{"orchestrator": "oracle", "condi')
            store.traces.mark_interrupted()
            assert all(store.traces.row(found.episode).correct for found in read_results(results)[len(before) - torn :])
        assert 0 < len(read_results(results)) < EPISODES, "the kills must fall into the work"
        if jobs.get(key).state != "queued":
            jobs.resume(key)
        processes.start(key)
        assert processes.ended() == 0

    rows = read_results(results)
    whole = [json.loads(line) for line in raw_lines(results) if line.endswith(b"}")]
    assert len(whole) == len(rows) == len({found.slot for found in rows}) == EPISODES
    assert len({found.episode for found in rows}) == EPISODES and all(found.correct for found in rows)
    ended = jobs.get(key)
    assert (ended.state, ended.step, ended.steps) == ("done", EPISODES, EPISODES)
    summaries = read_lines(jobs.folder(key).evaluations)
    assert [(each["condition"], each["tasks"], each["samples"], each["mean"]) for each in summaries] == [
        ("seen", 250, 2, 1.0),
        ("renamed", 250, 2, 1.0),
    ]
    run_twice = store.traces.search(TraceFilter(limit=5000))
    assert len(run_twice) - EPISODES <= (KILLS + 1) * 8, "only what was in flight at a kill was started again"


def test_two_runs_with_the_same_seeds_give_the_same_table(store, jobs, sums):
    save_pool(store)
    recipe = a_recipe(
        sums,
        orchestrators=["oracle", "random_plan"],
        samples=3,
        conditions=["seen", "renamed", "missing"],
        reference="oracle",
        concurrency=7,
    )
    first, second = (compare_jobs(jobs, [run(recipe, store, jobs)]) for _ in range(2))

    def told(found):
        parts = build_tables(found.rows, found.reference)[:-1]  # the last one holds times
        return [(title, [[column.cell(line) for column in columns] for line in found.rows]) for title, columns in parts]

    assert told(first) == told(second)
    assert len(first.rows) == 6 and first.rows[1].paired.losses > 0
    drawn = [line.figures.shares for line in first.rows if line.orchestrator == "random_plan"]
    assert len(drawn) == 3
    other = compare_jobs(jobs, [run(recipe.model_copy(update={"evaluate": recipe.evaluate.model_copy(
        update={"seed": 5})}), store, jobs)])  # fmt: skip
    assert told(other) != told(first)


def test_the_spend_cap_stops_the_job_and_a_higher_one_lets_it_go_on(store, jobs, sums):
    save_pool(store, CALCULATOR.model_copy(update={"price_call": 0.01}))
    key = run(a_recipe(sums, max_cost=0.105, concurrency=4), store, jobs)
    stopped, job_folder = jobs.get(key), jobs.folder(key)
    spent = sum(found.cost for found in read_results(job_folder.results))
    assert (stopped.state, stopped.code) == ("stopped", "max_cost") and spent == pytest.approx(0.10)
    for said in ("$0.1000 spent on 10 of 20 episodes", "$0.105", "raise evaluate.max_cost"):
        assert said in stopped.message
    assert read_lines(job_folder.evaluations) == []
    jobs.resume(key)
    run_job(key, store, jobs)
    assert jobs.get(key).code == "max_cost" and len(read_results(job_folder.results)) == 10
    jobs.resume(key, 1.0)
    with pytest.raises(JobRefused, match="queued"):
        jobs.resume(key, 0.2)
    assert jobs.recipe(key).evaluate.max_cost == 1.0, "a resumption that was refused changes nothing"
    run_job(key, store, jobs)
    assert jobs.get(key).state == "done" and len(raw_lines(job_folder.results)) == 20
    assert read_lines(job_folder.evaluations)[0]["cost"] == pytest.approx(0.20)


def test_a_cap_that_is_met_by_the_last_episode_is_no_reason_to_stop(store, jobs, sums):
    save_pool(store, CALCULATOR.model_copy(update={"price_call": 0.25}))
    key = run(a_recipe(sums, max_cost=1.0, count=4, concurrency=1), store, jobs)
    assert (jobs.get(key).state, jobs.get(key).code) == ("done", "")


def test_a_stop_lets_running_episodes_end_and_resume_goes_on(store, jobs, sums, monkeypatch):
    save_pool(store)
    key = jobs.submit(a_recipe(sums, concurrency=3), here=True).id
    job_folder = jobs.folder(key)

    def stop_after_seven(path, found):
        append_result(path, found)
        if len(raw_lines(path)) == 7:
            job_folder.stop_file.touch()

    monkeypatch.setattr(stage, "append_result", stop_after_seven)
    run_job(key, store, jobs)
    stopped = len(raw_lines(job_folder.results))
    assert jobs.get(key).state == "stopped" and 7 <= stopped <= 9
    states = {found.state for found in store.traces.search(TraceFilter(limit=100))}
    assert states == {"answered"}, "no episode was cut off"
    jobs.resume(key)
    run_job(key, store, jobs)
    assert jobs.get(key).state == "done" and len(raw_lines(job_folder.results)) == 20


def test_how_far_it_is_stands_in_the_metrics(store, jobs, sums):
    save_pool(store)
    key = run(a_recipe(sums, samples=2), store, jobs)
    notes = [found for found in read_lines(jobs.folder(key).metrics) if found["stage"] == "evaluate"]
    assert (notes[0]["evaluate/done"], notes[-1]["evaluate/done"], notes[-1]["evaluate/total"]) == (0, 40, 40)
    assert (jobs.get(key).step, jobs.get(key).steps, jobs.get(key).stage) == (40, 40, "evaluate")


def test_a_file_of_tasks_is_known_by_its_name_and_generated_tasks_whatever_drew_them(store, jobs, sums):
    save_pool(store)
    key = run(a_recipe(sums, count=3), store, jobs)
    assert {found.source for found in read_results(jobs.folder(key).results)} == {"file:sums.jsonl"}
    task = find_task("ledger", 1, "test", 3)
    assert make_task_key(task, "ledger") == make_task_key(task, "atlas,ledger") == make_task_key(task)


def test_what_cannot_be_measured_is_told_before_anything_runs(store, jobs, sums):
    save_pool(store, CALCULATOR, SOLVER)
    for changes, code, said in (
        ({"orchestrators": ["oracle", "direct:nobody"]}, "UnknownOrchestrator", "solver"),
        ({"orchestrators": ["direct:solver"], "conditions": ["without:solver"]}, "UnknownOrchestrator", "agent"),
        ({"conditions": ["without:nobody"]}, "UnknownTask", "calculator"),
        ({"conditions": ["without:calculator,solver"]}, "UnknownTask", "nothing would be left"),
        ({"reference": "nope"}, "UnknownReference", "JOB/ORCHESTRATOR"),
        ({"source": "file:/nowhere.jsonl"}, "UnusableTasks", "nowhere"),
    ):
        key = run(a_recipe(sums, **changes), store, jobs)
        failed = jobs.get(key)
        assert (failed.state, failed.code) == ("failed", code) and said in failed.message
        assert "Traceback" not in failed.message and raw_lines(jobs.folder(key).results) == []


def test_an_orchestrator_that_only_an_ablation_takes_away_is_left_out_there(caplog):
    starter, tasks = starter_pool(), [find_task("forge", 1, "test", 0)]

    def cell(name: str, condition: str) -> EvaluationCell:
        pool, renaming = apply_condition(condition, starter)
        trials = plan_trials(name, tasks, condition=condition)
        return EvaluationCell(name, condition, open_live_pool(pool), trials, renaming)

    async def kept():
        cells = [cell(*each) for each in (("direct:solver", "seen"), ("direct:solver", "without:solver"),
                                          ("direct:solver", "renamed"), ("oracle", "without:solver"))]  # fmt: skip
        found = await stage._select_runnable(cells)
        with pytest.raises(UnknownOrchestrator):
            await stage._select_runnable(cells[1:2])
        return (
            [each.title for each in found],
            cells[2].rename_orchestrator("direct:solver"),
            cells[2].rename_orchestrator("JOB@4"),
        )

    titles, renamed, checkpoint = asyncio.run(kept())
    assert titles == ["direct:solver", "direct:solver, renamed", "oracle, without:solver"]
    assert renamed == "direct:sage" and checkpoint == "JOB@4"
    assert "direct:solver, without:solver is not measured" in caplog.text


def test_direct_each_is_every_agent_alone():
    assert expand_agents(["oracle", "direct:each", "direct:solver"], starter_pool()) == [
        "oracle",
        "direct:solver",
        "direct:planner",
        "direct:verifier",
    ]


def test_recipe_and_engine_know_the_same_conditions():
    assert (*pool_conditions.CONDITIONS, *task_conditions.TASK_CONDITIONS, "varied") == task_conditions.CONDITIONS
    for wrong in ("without:", "without:A b", "sunny", "without:a,", "seen:x"):
        with pytest.raises(InvalidRecipe, match="conditions"):
            parse_recipe(json.dumps({"evaluate": {"conditions": [wrong]}}))
    assert parse_recipe('{"evaluate": {"conditions": ["without:sql,fx_desk"]}}').evaluate.conditions


def test_switching_workers_off_takes_them_and_who_falls_back_on_them():
    leaning = CALCULATOR.model_copy(update={"name": "leaning", "fallback": "calculator"})
    pool, renaming = apply_condition("without:calculator", Pool(name="p", workers=(CALCULATOR, leaning)))
    assert [(spec.name, spec.fallback) for spec in pool.workers] == [("leaning", "")] and renaming == {}
    assert pool.name == "p-without-calculator"
    with pytest.raises(UnknownTask, match="no condition"):
        apply_condition("without:", pool)


@given(st.integers(1, 6), st.integers(0, 99))
def test_samples_differ_in_seed_and_greed(samples, seed):
    trials = plan_trials("x", [find_task("forge", 1, "test", k) for k in range(2)], samples=samples, seed=seed)
    assert len({trial.draw.seed for trial in trials}) == len({trial.slot for trial in trials}) == 2 * samples
    assert {trial.draw.temperature for trial in trials} == {0.0 if samples == 1 else 1.0}
    assert [trial.slot.sample for trial in trials] == sorted(trial.slot.sample for trial in trials)
    other = plan_trials("y", [trial.task for trial in trials[:2]], samples=samples, seed=seed)
    assert [trial.draw for trial in other] == [trial.draw for trial in trials]


def test_a_torn_line_loses_itself_alone(tmp_path, caplog):
    path = tmp_path / "results.jsonl"
    append_result(path, row(0))
    with path.open("ab") as file:
        file.write(b'{"orchestrator": "mi')
    repair_last_line(path)
    append_result(path, row(1))
    append_result(path, row(1, False))
    found = read_results(path)
    assert [(each.index, each.correct) for each in found] == [(0, True), (1, True)], "of one slot the first counts"
    assert "line 2" in caplog.text and read_results(tmp_path / "none.jsonl") == []


def test_the_log_says_how_far_each_orchestrator_is(store, jobs, sums, monkeypatch, caplog):
    monkeypatch.setattr(stage, "LOG_S", 0.0)
    save_pool(store)
    with caplog.at_level("INFO", "trainer.evaluation.stage"):
        run(a_recipe(sums, orchestrators=["oracle", "random_plan"], count=3, concurrency=1), store, jobs)
    told = [line for line in caplog.messages if "to go" in line]
    assert [line.partition(" done")[0] for line in told[:3]] == [f"oracle: {k} of 3" for k in (1, 2, 3)]
    assert told[-1].startswith("random_plan: 3 of 3 done, about 0 s to go; 6 of 6 episodes")


def test_a_saved_evaluation_is_the_reference_of_a_later_one(store, jobs, sums):
    save_pool(store)
    saved = run(a_recipe(sums), store, jobs)
    later = run(a_recipe(sums, orchestrators=["random_plan"], reference=f"{saved}/oracle"), store, jobs)
    found = compare_jobs(jobs, [later])
    assert found.reference.label == f"oracle ({saved})"
    assert (found.rows[0].paired.tasks, found.rows[0].paired.wins) == (20, 0) and found.rows[0].paired.losses > 0
    assert compare_jobs(jobs, [later], saved).reference.label == found.reference.label
    both = compare_jobs(jobs, [saved, later], "random_plan")
    assert [(line.orchestrator, line.paired is None) for line in both.rows] == [
        ("oracle", False),
        ("random_plan", True),
    ]
    for job, reference in ((later, "nope"), (later, f"{saved}/nope"), (later, "../x")):
        with pytest.raises(UnknownReference, match="JOB/ORCHESTRATOR"):
            compare_jobs(jobs, [job], reference)
    with pytest.raises(UnknownReference, match="broken down"):
        compare_jobs(jobs, [later], breakdown="colour")


def test_the_compare_command_prints_every_form(store, jobs, sums):
    save_pool(store)
    key = run(a_recipe(sums, orchestrators=["oracle", "random_plan"], samples=2), store, jobs)
    home = ["--home", str(store.home.root)]

    def said(*more: str) -> str:
        done = CliRunner().invoke(app, ["compare", key, *more, *home], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    assert "oracle" in said() and "sign test" in said("--by", "family")
    lines = said("--markdown").splitlines()
    heads = next(line for line in lines if "pass^k" in line)
    assert "1.000 [" in lines[lines.index(heads) + 2] and all(line.count("|") for line in lines if line.startswith("|"))
    wide = list(csv.DictReader(io.StringIO(said("--csv"))))
    assert [each["orchestrator"] for each in wide] == ["oracle", "random_plan"]
    assert float(wide[0]["mean_mean"]) == 1.0 and wide[1]["paired_losses"] == "20" and wide[0]["paired_losses"] == ""
    document = json.loads(said("--json"))
    assert document[1]["paired"]["regressed"][0]["task"][0] == "file:sums.jsonl"
    shown = json.loads(CliRunner().invoke(app, ["jobs", "show", key, "--json", *home]).output)
    assert [(each["orchestrator"], each["samples"]) for each in shown["evaluations"]] == [
        ("oracle", 2),
        ("random_plan", 2),
    ]


def test_a_name_cannot_break_a_markdown_table(store, jobs, sums):
    save_pool(store)
    found = compare_jobs(jobs, [run(a_recipe(sums, count=2), store, jobs)])
    line = found.rows[0]
    odd = type(line)("a|b", line.condition, line.part, True, line.figures, None)
    assert "a\\|b (best single worker)" in render_markdown([odd], found.reference)
    assert list(csv.reader(io.StringIO(render_csv([odd], found.reference))))[1][0] == "a|b"
