"""The job of *Train on this pool* is killed in each of its stages and goes on where it was."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.support.small_presets import shrink_recipe
from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from tests.trainer.jobs.test_durability import learnt, trainer, until
from tests.trainer.support.shop import build_shop
from trainer.jobs.job_folder import JobFolder, read_lines
from trainer.jobs.queue import JobStore
from trainer.pool_recipe import build_pool_recipe
from trainer.recipe import Recipe
from trainer.results.rows import read_results

STEPS, EVERY, TESTED = 6, 2, 6


def build_recipe(base: Path) -> Recipe:
    """The recipe of the button on a random model, with few steps and a checkpoint after every second."""
    recipe = shrink_recipe(build_pool_recipe("shop", 12), base)
    saving = recipe.sft.saving.model_copy(update={"every": EVERY})
    sft = recipe.sft.model_copy(update={"steps": STEPS, "saving": saving})
    evaluate = recipe.evaluate.model_copy(update={"count": TESTED, "concurrency": 1})
    return recipe.model_copy(update={"sft": sft, "evaluate": evaluate})


def run_until(home: Path, jobs: JobStore, key: str, moment: Callable[[], object]) -> None:
    """Start or resume the job and kill its process at a moment."""
    if jobs.get(key).state != "queued":
        jobs.resume(key)
    process = trainer(home, "run", key)
    until(lambda: moment() or process.poll() is not None, 240)
    assert process.poll() is None, process.communicate()[1][-3000:]
    process.kill()
    assert process.wait(60) == -signal.SIGKILL
    process.communicate()


@pytest.mark.slow
def test_a_job_that_is_killed_in_each_stage_does_nothing_twice_and_loses_nothing(tmp_path, tiny_base):
    home = tmp_path / "home"
    store = open_store(find_home(str(home)))
    store.pools.save(build_shop(tmp_path))
    jobs = JobStore(store.engine, store.home)
    key = jobs.submit(build_recipe(tiny_base)).id
    job_folder = jobs.folder(key)
    tasks = home / "tasks" / "shop.jsonl"

    run_until(home, jobs, key, lambda: jobs.get(key).state == "running")  # and tasks are made
    assert not tasks.exists()
    run_until(home, jobs, key, lambda: read_lines(job_folder.demonstrations))
    made, taught = tasks.read_bytes(), read_lines(job_folder.demonstrations)
    run_until(home, jobs, key, lambda: len(learnt(job_folder)) > EVERY)
    run_until(home, jobs, key, lambda: len(read_results(job_folder.results)) >= 2)
    graded = [row.episode for row in read_results(job_folder.results)]
    assert [row.code for row in jobs.all()] == ["killed"]

    jobs.resume(key)
    process = trainer(home, "run", key)
    assert process.wait(240) == 0, process.communicate()
    process.communicate()
    assert jobs.get(key).state == "done" and tasks.read_bytes() == made
    check_nothing_was_done_twice(job_folder, taught, graded)
    store.close()


def check_nothing_was_done_twice(job_folder: JobFolder, taught: list[dict], graded: list[str]) -> None:
    """What had been done before a kill is there, once."""
    demonstrations = read_lines(job_folder.demonstrations)
    assert demonstrations[: len(taught)] == taught
    assert max(Counter(row["query"] for row in demonstrations).values()) == 1
    assert learnt(job_folder) == list(range(1, STEPS + 1))
    rows = read_results(job_folder.results)
    assert [row.episode for row in rows][: len(graded)] == graded
    assert len({row.slot for row in rows}) == len(rows) >= 2
    assert time.time() - max(row.at for row in rows) < 600
