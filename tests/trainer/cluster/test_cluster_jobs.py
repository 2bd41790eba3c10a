"""Jobs on a real Ray cluster of two nodes: the same results as in one process, whatever happens to a node."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.traces.store import TraceFilter, open_store
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Limits, Pool
from pool_registry.starter import starter_pool
from pool_registry.storage.data_folder import choose_home
from pool_registry.worker import WorkerSpec
from scripts.local_cluster import ROOT, start_cluster
from tests.trainer.jobs.test_durability import until
from trainer.cluster import episodes
from trainer.cluster.connection import connect, import_ray
from trainer.cluster.episodes import start_episodes
from trainer.cluster.placement import place_actors
from trainer.demonstrations.collect import DemonstrationCollector
from trainer.demonstrations.transcripts import Demonstration
from trainer.errors import TrainingFailed
from trainer.evaluation.side_by_side import compare_jobs
from trainer.job_place import parse_place
from trainer.job_process import run_job
from trainer.recipe import Recipe, dump_recipe, parse_recipe
from trainer.recipe_sections import DemonstrationSettings, ModelSettings
from trainer.results.rows import ResultRow, read_results
from trainer.results.tables import build_tables
from trainer.run_recipe import open_teacher
from trainer.tasks.registry import open_source

pytestmark = pytest.mark.slow

CALCULATOR = WorkerSpec(name="calculator", kind="calculator", description="arithmetic")
EPISODES = 90


@pytest.fixture(scope="module")
def cluster():
    with start_cluster() as running:
        yield running


@pytest.fixture
def store(tmp_path):
    opened = open_store(choose_home(str(tmp_path / "home")))
    yield opened
    opened.close()


@pytest.fixture
def sums(tmp_path) -> Path:
    """A file of sums with their plans."""
    plans = [{"steps": [{"worker": "calculator", "instruction": f"{k} + 1"}], "answer": "$1"} for k in range(40)]
    lines = [{"query": f"What is {k} plus 1?", "answer": k + 1, "plan": plan} for k, plan in enumerate(plans)]
    return write_tasks(tmp_path / "sums.jsonl", lines)


@pytest.fixture
def calls(tmp_path) -> Path:
    """The file that gets a line for every call of the slow worker."""
    return tmp_path / "calls.txt"


@pytest.fixture
def words(tmp_path, store, calls) -> Path:
    """A file of tasks for the pool `words`, whose one worker takes 0.4 seconds."""
    code = tmp_path / "say.py"
    code.write_text(
        "def say(word: str) -> str:\n"
        f"    with open({str(calls)!r}, 'a') as file:\n"
        "        file.write(word + '\\n')\n"
        "    return word\n"
    )
    inner = {"name": "say", "kind": "function", "description": "says a word", "config": {"target": f"{code}:say"}}
    slow = WorkerSpec(name="slow", kind="delayed", description="says a word", max_concurrency=8,
                      config={"latency_ms": 400, "inner": inner})  # fmt: skip
    store.pools.save(Pool(name="words", workers=(slow,), limits=Limits()))
    plans = [
        {"steps": [{"worker": "slow", "arguments": {"word": f"word{k}"}}], "answer": "$1"} for k in range(EPISODES)
    ]
    lines = [{"query": f"Say word{k}.", "answer": f"word{k}", "plan": plan} for k, plan in enumerate(plans)]
    return write_tasks(tmp_path / "words.jsonl", lines)


def write_tasks(path: Path, lines: list[dict]) -> Path:
    path.write_text("".join(f"{json.dumps({**line, 'split': 'test'})}\n" for line in lines))
    return path


def make_recipe(tasks: Path, where: str = "here", pool: str = "sums", **evaluate: object) -> Recipe:
    section = {"orchestrators": ["oracle"], "source": f"file:{tasks}", "count": 1000, "concurrency": 4, **evaluate}
    return parse_recipe(json.dumps({"name": "measure", "pool": pool, "where": where, "evaluate": section}))


def run(recipe: Recipe, store, jobs):
    row = jobs.submit(recipe, here=True)
    run_job(row.id, store, jobs)
    return jobs.get(row.id)


def read_calls(calls: Path) -> Counter[str]:
    return Counter(calls.read_text().split())


def list_words(rows: list[ResultRow]) -> set[str]:
    return {row.query.removeprefix("Say ").rstrip(".") for row in rows}


def test_two_nodes_give_the_table_of_one_process_and_the_traces_come_back(cluster, store, jobs, sums):
    store.pools.save(Pool(name="sums", workers=(CALCULATOR,), limits=Limits()))
    options = {"orchestrators": ["oracle", "random_plan"], "samples": 2, "conditions": ["seen", "renamed", "missing"]}
    places = ("here", cluster.place)
    rows = {where: run(make_recipe(sums, where, **options), store, jobs) for where in places}

    def read_table(job: str):
        comparison = compare_jobs(jobs, [job])
        parts = build_tables(comparison.rows, comparison.reference)[:-1]  # the last one holds times
        return [
            (title, [[column.cell(row) for column in columns] for row in comparison.rows]) for title, columns in parts
        ]

    ended = rows[cluster.place]
    log = jobs.folder(ended.id).log
    assert ended.state == "done", (ended.message, log.read_text()[-3000:] if log.exists() else "")
    tables = {where: read_table(row.id) for where, row in rows.items()}
    assert tables["here"] == tables[cluster.place]
    results = read_results(jobs.folder(ended.id).results)
    assert len(results) == len({result.slot for result in results}) == 2 * 2 * 3 * 40
    for result in results[::40]:
        assert str(store.traces.episode(result.episode).query) == result.query
        assert store.traces.row(result.episode).correct == result.correct


def test_a_killed_node_loses_no_episode_and_repeats_none_that_finished(cluster, store, jobs, words, calls):
    doomed = cluster.add_node()
    job = jobs.submit(make_recipe(words, cluster.place, pool="words"), here=True).id
    results = jobs.folder(job).results
    finished: set[str] = set()

    def kill_in_the_middle() -> None:
        until(lambda: len(read_results(results)) >= 24 or jobs.get(job).ended_at, seconds=180)
        finished.update(list_words(read_results(results)))
        cluster.kill_node(doomed)

    killing = threading.Thread(target=kill_in_the_middle)
    killing.start()
    run_job(job, store, jobs)
    killing.join()
    rows, made = read_results(results), read_calls(calls)
    assert jobs.get(job).state == "done", jobs.get(job).message
    assert 24 <= len(finished) < EPISODES, "the kill must fall into the work"
    assert len(rows) == len(results.read_text().splitlines()) == EPISODES and all(row.correct for row in rows)
    assert all(made[word] == 1 for word in finished), "what had a row was not run again"
    assert EPISODES <= made.total() <= EPISODES + 12, "only what the killed node had in hand was run again"
    assert store.traces.row(rows[-1].episode).correct
    assert len(store.traces.search(TraceFilter(limit=1000))) == EPISODES, "an episode that was lost left no half trace"


def test_models_have_a_gpu_each_and_when_one_is_lost_the_others_go_on(
    cluster, store, jobs, words, calls, tiny_base, monkeypatch
):
    model = WorkerSpec(name="model", kind="local_model", description="answers", config={"model": str(tiny_base)})
    plain = store.pools.latest("words").pool
    pool = plain.model_copy(update={"workers": (*plain.workers, model)})
    store.pools.save(pool)
    doomed, spared = cluster.add_node(gpus=1), cluster.add_node(gpus=2)
    try:
        with connect(parse_place(cluster.place)) as nodes:
            places = place_actors(nodes, [pool], ["oracle"])
            assert sorted(place.gpus for place in places) == [0, 0, 1, 1, 1]
            with start_episodes(places, 4):
                assert not import_ray().available_resources().get("GPU"), "each is claimed"
                monkeypatch.setattr(episodes, "START_S", 3.0)
                with pytest.raises(TrainingFailed, match="other work holds them"), start_episodes(places[-1:], 4):
                    pass
                monkeypatch.undo()
        job = jobs.submit(make_recipe(words, cluster.place, pool="words"), here=True).id
        results = jobs.folder(job).results

        def kill_in_the_middle() -> None:
            until(lambda: len(read_results(results)) >= 24 or jobs.get(job).ended_at, seconds=180)
            cluster.kill_node(doomed)

        killing = threading.Thread(target=kill_in_the_middle)
        killing.start()
        run_job(job, store, jobs)
        killing.join()
    finally:
        cluster.kill_node(spared)
    rows = read_results(results)
    assert jobs.get(job).state == "done", jobs.get(job).message
    assert len(rows) == EPISODES and all(row.correct for row in rows)
    assert EPISODES <= read_calls(calls).total() <= EPISODES + 12


def test_the_rate_of_a_worker_holds_over_all_nodes(cluster, store, jobs, words, tmp_path):
    """60 calls a minute: 60 at first, then one a second, however many nodes there are."""
    starts = tmp_path / "starts.txt"
    code = tmp_path / "note.py"
    code.write_text(
        "import time\n"
        "def note(word: str) -> str:\n"
        f"    with open({str(starts)!r}, 'a') as file:\n"
        "        file.write(f'{time.time()}\\n')\n"
        "    return word\n"
    )
    rated = WorkerSpec(name="slow", kind="function", description="says a word", rate_limit=60.0, max_concurrency=2,
                       config={"target": f"{code}:note"})  # fmt: skip
    store.pools.save(Pool(name="words", workers=(rated,), limits=Limits()))
    ended = run(make_recipe(words, cluster.place, pool="words", count=72, concurrency=40), store, jobs)
    assert ended.state == "done", ended.message
    times = sorted(float(line) for line in starts.read_text().split())
    assert len(times) == 72
    for count, at in enumerate(times, start=1):
        assert count <= 60 + 2 + (at - times[0]), "more calls than the rate allows"


def test_a_killed_process_goes_on_with_the_episodes_that_are_missing(cluster, store, jobs, words, calls):
    job = jobs.submit(make_recipe(words, cluster.place, pool="words", count=40)).id
    results = jobs.folder(job).results
    command = [sys.executable, "-m", "trainer", "run", job, "--home", str(store.home.root)]
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL)
    try:
        until(lambda: len(read_results(results)) >= 12 or process.poll() is not None, seconds=180)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    finished, lines = list_words(read_results(results)), results.read_bytes()
    jobs.mark_lost()
    assert jobs.get(job).code == "killed" and 12 <= len(finished) < 40
    jobs.resume(job)
    run_job(job, store, jobs)
    assert jobs.get(job).state == "done", jobs.get(job).message
    assert results.read_bytes().startswith(lines) and len(read_results(results)) == 40
    assert all(read_calls(calls)[word] == 1 for word in finished), "what had a row was not run again"


def test_demonstrations_of_two_nodes_are_those_of_one_process(cluster, store, jobs):
    tasks = open_source("ledger").tasks("train", 12, 0, (1,))
    settings = DemonstrationSettings(where=cluster.place, faults=0.5)
    recipe = parse_recipe(json.dumps({"sft": {"demonstrations": settings.model_dump()}}))
    pool = starter_pool_without_models()

    async def collect(place) -> list[Demonstration]:
        async with live_pool(pool) as live:
            collector = DemonstrationCollector(
                settings, ModelSettings(prompt="query"), live, store.traces, seed=1, place=place
            )
            return await collector.collect(tasks)

    here = asyncio.run(collect(None))
    with open_teacher(recipe, settings, pool, store) as place:
        there = asyncio.run(collect(place))
    assert [row.messages for row in there] == [row.messages for row in here] and len(there) == 12
    store.traces.flush()
    assert len(store.traces.search(TraceFilter(limit=100))) == 24


def test_nodes_say_what_they_lack_before_anything_runs(cluster, store, jobs, sums, tmp_path, monkeypatch):
    older = copy_code(tmp_path / "older")
    (older / "trainer" / "errors.py").write_text((ROOT / "trainer" / "errors.py").read_text() + "\n# older\n")
    without = tmp_path / "without"
    (without / "trainer").mkdir(parents=True)
    (without / "trainer" / "__init__.py").write_text('raise ImportError("no trainer here")\n')
    nodes = [cluster.add_node(environment={"PYTHONPATH": str(folder)}) for folder in (older, without)]
    monkeypatch.setenv("ONLY_HERE", "a-value-of-this-machine")
    chat = WorkerSpec(name="asker", kind="chat", description="asks", config={
        "base_url": "https://models.example.com/v1", "model": "m", "api_key": "env:ONLY_HERE"})  # fmt: skip
    store.pools.save(Pool(name="sums", workers=(CALCULATOR, chat), limits=Limits()))
    try:
        refused = run(make_recipe(sums, cluster.place, orchestrators=["oracle", "nobody@4"]), store, jobs)
    finally:
        for node in nodes:
            cluster.kill_node(node)
    assert (refused.state, refused.code) == ("failed", "cluster")
    for sentence in (
        "has another version of Podium", "does not have this Podium", "pip install -e '.[cluster]'",
        "secret env:ONLY_HERE is not set there", "export ONLY_HERE before `ray start`", "it does not have nobody@4",
    ):  # fmt: skip
        assert sentence in refused.message, refused.message
    assert "a-value-of-this-machine" not in refused.message and not jobs.folder(refused.id).results.exists()


def test_the_spend_cap_holds_over_all_nodes(cluster, store, jobs, sums):
    paid = CALCULATOR.model_copy(update={"price_call": 0.01})
    store.pools.save(Pool(name="sums", workers=(paid,), limits=Limits()))
    stopped = run(make_recipe(sums, cluster.place, max_cost=0.105), store, jobs)
    rows = read_results(jobs.folder(stopped.id).results)
    assert stopped.code == "max_cost" and 0 < sum(row.cost for row in rows) <= 0.105
    jobs.folder(stopped.id).recipe.write_text(dump_recipe(make_recipe(sums, cluster.place, max_cost=5.0)))
    jobs.resume(stopped.id)
    run_job(stopped.id, store, jobs)
    assert jobs.get(stopped.id).state == "done" and len(read_results(jobs.folder(stopped.id).results)) == 40


def starter_pool_without_models() -> Pool:
    """The tools of the starter pool: nothing is loaded."""
    starter = starter_pool()
    return starter.model_copy(update={"workers": tuple(spec for spec in starter.workers if spec.kind != "local_model")})


def copy_code(folder: Path) -> Path:
    for room in ("assets", "pool_registry", "orchestrator", "trainer"):
        shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__", "web"))
    return folder


def test_a_cluster_that_is_gone_ends_the_job_with_what_to_do(store, jobs, words, monkeypatch):
    monkeypatch.setenv("RAY_CLIENT_RECONNECT_GRACE_PERIOD", "5")
    job = jobs.submit(make_recipe(words, "ray://127.0.0.1:1", pool="words"), here=True).id
    results = jobs.folder(job).results
    with start_cluster(nodes=1) as lost:
        recipe = make_recipe(words, lost.place, pool="words")
        jobs.folder(job).recipe.write_text(dump_recipe(recipe))

        def kill_in_the_middle() -> None:
            until(lambda: len(read_results(results)) >= 8 or jobs.get(job).ended_at, seconds=180)
            lost.kill_all()

        killing = threading.Thread(target=kill_in_the_middle)
        killing.start()
        run_job(job, store, jobs)
        killing.join()
    row = jobs.get(job)
    assert (row.state, row.code) == ("failed", "cluster"), row.message
    assert "the connection to the cluster was lost. What is finished counts; resume goes on" in row.message
    assert 8 <= len(read_results(results)) < EPISODES
