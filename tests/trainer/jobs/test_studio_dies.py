"""A job lives on when what has started it is killed, at whatever moment, and is known for what it is afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from orchestrator.traces.store import open_store
from pool_registry.pool import Pool
from pool_registry.storage.data_folder import find_home
from pool_registry.worker import WorkerSpec
from tests.trainer.support.waiting import until
from tests.trust.trials import choose_trials, count_trials
from trainer.jobs.queue import JobStore
from trainer.recipe import parse_recipe
from trainer.results.rows import read_results

STUDIO = """
import sys, time
from studio.prepare import prepare_store
from studio.runtime import Runtime
from trainer.jobs.queue import JobStore

store = prepare_store(sys.argv[1])
runtime = Runtime(store)
JobStore(store.engine, store.home).start(sys.argv[2])  # unless the studio has begun it by itself
print("started", flush=True)
time.sleep(600)
"""
TASKS = 40
LONGEST_S = 2.0  # from the start of the job until the studio is killed
ENDS_S = 300.0


def write_tasks(file: Path) -> None:
    def line(number: int) -> str:
        plan = {"steps": [{"worker": "calculator", "instruction": f"{number} + 1"}], "answer": "$1"}
        return json.dumps({"query": f"What is {number} plus 1?", "answer": number + 1, "plan": plan, "split": "test"})

    file.write_text("".join(f"{line(number)}\n" for number in range(TASKS)))


@pytest.mark.slow
def test_a_job_lives_on_when_its_studio_is_killed(tmp_path):
    random, trials = Random(5), choose_trials(3)
    write_tasks(tmp_path / "sums.jsonl")
    store = open_store(find_home(str(tmp_path / "home")))
    jobs = JobStore(store.engine, store.home)
    store.pools.save(
        Pool(name="sums", workers=(WorkerSpec(name="calculator", kind="calculator", description="Sums."),))
    )
    section = {"orchestrators": ["oracle"], "source": f"file:{tmp_path / 'sums.jsonl'}", "count": TASKS}
    recipe = parse_recipe(json.dumps({"name": "measure", "pool": "sums", "evaluate": section}))
    for _ in range(trials):
        key = jobs.submit(recipe).id
        command = [sys.executable, "-c", STUDIO, str(store.home.root), key]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as studio:
            assert studio.stdout is not None and studio.stdout.readline() == "started\n"
            time.sleep(random.uniform(0, LONGEST_S))
            os.killpg(studio.pid, signal.SIGKILL)  # as a terminal that closes takes its processes along
        until(lambda: jobs.get(key).state not in ("queued", "running"), ENDS_S)  # noqa: B023
        count_trials()
        ended = jobs.get(key)
        assert (ended.state, ended.message) == ("done", ""), jobs.folder(key).log.read_text()[-2000:]
        assert len(read_results(jobs.folder(key).results)) == TASKS
    store.close()
