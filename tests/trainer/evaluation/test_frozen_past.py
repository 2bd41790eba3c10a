"""What an evaluation's router decides by is what was known before the job, whatever the job itself and others record
meanwhile, also after a kill."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.engine.events import Graded
from orchestrator.failure_memory.lessons import build_row
from orchestrator.plan import Lesson
from orchestrator.policies.baselines.router import MIN_TASKS
from orchestrator.policies.registry import make_orchestrator
from orchestrator.traces.store import open_store
from pool_registry.calls.live_pool import live_pool
from pool_registry.storage.data_folder import choose_home
from tests.orchestrator.support.endpoint import Endpoint, endpoint, pool_of
from tests.trainer.jobs.test_durability import trainer, until
from trainer.errors import TrainingFailed
from trainer.evaluation.frozen_past import freeze_past
from trainer.job_process import run_job
from trainer.jobs.queue import JobStore
from trainer.recipe import parse_recipe
from trainer.results.rows import read_results

pytestmark = pytest.mark.medium

__all__ = ["endpoint"]
TASKS = MIN_TASKS + 20


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("PODIUM_HOME", str(tmp_path / "home"))
    opened = open_store(choose_home(str(tmp_path / "home")))
    yield opened
    opened.close()


def right_if_b(messages: list[dict]) -> str:
    return "7" if messages[0]["content"].startswith("You are b.") else "8"


def file_of_tasks(folder: Path) -> Path:
    path = folder / "sevens.jsonl"
    lines = ({"query": f"Which number follows six? ({k})", "answer": 7, "split": "test"} for k in range(TASKS))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def routed_in(results: Path) -> int:
    return sum(row.orchestrator == "router" for row in read_results(results))


def recorded_successes(store, pool, queries) -> None:
    """Graded episodes of b alone, as a person's runs leave them."""

    async def play() -> None:
        async with live_pool(pool) as live:
            for query in queries:
                b = make_orchestrator("direct:b", live)
                episode = await run_episode(EpisodeSpec(query), b, live, sink=store.traces)
                store.traces.append(episode.id, Graded(True, "", 1.0))
        store.traces.flush()

    asyncio.run(play())


def test_a_router_that_was_killed_decides_as_before(store, endpoint, tmp_path):
    Endpoint.reply = staticmethod(right_if_b)
    pool = pool_of(endpoint, "a", "b")
    store.pools.save(pool)
    section = {"orchestrators": ["direct:b", "router"], "source": f"file:{file_of_tasks(tmp_path)}", "count": TASKS}
    jobs = JobStore(store.engine, store.home)
    key = jobs.submit(parse_recipe(json.dumps({"name": "r", "pool": "p", "evaluate": section}))).id
    results = jobs.folder(key).results
    process = trainer(store.home.root, "run", key)
    until(lambda: process.poll() is not None or routed_in(results) >= 5, every=0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    before = read_results(results)
    assert TASKS < len(before) < 2 * TASKS, "the kill must fall into the router's row"
    recorded_successes(store, pool, (f"Which number follows six? (again {k})" for k in range(MIN_TASKS)))
    jobs.resume(key)
    assert trainer(store.home.root, "run", key).wait(120) == 0
    routed = [row for row in read_results(results) if row.orchestrator == "router"]
    assert len(routed) == TASKS and {tuple(row.workers) for row in routed} == {("a",)}, "by rule, as when it began"
    later = jobs.submit(parse_recipe(json.dumps({"name": "r", "pool": "p", "evaluate": section | {"count": 3}}))).id
    assert run_job(later, store, jobs)
    routed = [row for row in read_results(jobs.folder(later).results) if row.orchestrator == "router"]
    assert {tuple(row.workers) for row in routed} == {("b",)}, "a job that begins now knows what was recorded"


def test_recorded_episodes_of_the_queries_that_are_asked_are_not_known(store, endpoint, tmp_path):
    Endpoint.reply = staticmethod(right_if_b)
    pool = pool_of(endpoint, "a", "b")
    recorded_successes(store, pool, ["asked", "another"])
    file = tmp_path / "known.json"
    known = freeze_past(file, store, ["p"], {"asked"})
    assert [alone.query for alone in known["p"].record] == ["another"]
    recorded_successes(store, pool, ["later"])
    assert freeze_past(file, store, ["p"], {"asked"}) == known
    more = freeze_past(file, store, ["p", "q"], {"asked"})
    assert more["p"] == known["p"] and more["q"].record == ()
    file.write_text("{")
    with pytest.raises(TrainingFailed, match="start a new job"):
        freeze_past(file, store, ["p"], set())


def test_lessons_of_the_queries_that_are_asked_are_not_shown(store, tmp_path):
    for query in ("asked", "another"):
        lesson = Lesson(query, "Call a worker.", "rule", f"episode of {query}", 0.0)
        store.lessons.add(build_row("p", lesson))
    past = freeze_past(tmp_path / "known.json", store, ["p"], {"asked"})
    assert [lesson.query for lesson in past["p"].lessons] == ["another"]
