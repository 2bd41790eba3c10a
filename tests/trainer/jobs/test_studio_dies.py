"""A job lives on when what has started it is killed, at whatever moment, and is known for what it is afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
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
LANES = 4  # folders in which jobs live at once: half of a trial is waiting
LONGEST_S = 2.0  # from the start of the job until the studio is killed
ENDS_S = 300.0


class Lane:
    """A data folder with a pool, and a studio at a time that starts a job in it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._random = Random(seed)
        folder.mkdir()
        write_tasks(folder / "sums.jsonl")
        self._store = open_store(find_home(str(folder / "home")))
        self._jobs = JobStore(self._store.engine, self._store.home)
        self._store.pools.save(
            Pool(name="sums", workers=(WorkerSpec(name="calculator", kind="calculator", description="Sums."),))
        )
        section = {"orchestrators": ["oracle"], "source": f"file:{folder / 'sums.jsonl'}", "count": TASKS}
        self._recipe = parse_recipe(json.dumps({"name": "measure", "pool": "sums", "evaluate": section}))

    def kill_a_studio(self) -> bool:
        """Kill a studio at some moment after it has started a job, and check what becomes of the job. Returns whether
        the job lived when its studio was killed."""
        key = self._jobs.submit(self._recipe).id
        command = [sys.executable, "-c", STUDIO, str(self._store.home.root), key]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as studio:
            assert studio.stdout is not None and studio.stdout.readline() == "started\n"
            time.sleep(self._random.uniform(0, LONGEST_S))
            os.killpg(studio.pid, signal.SIGKILL)  # as a terminal that closes takes its processes along
        lived = self._is_under_way(key)
        until(lambda: not self._is_under_way(key), ENDS_S, every=0.1)
        ended = self._jobs.get(key)
        assert (ended.state, ended.message) == ("done", ""), self._jobs.folder(key).log.read_text()[-2000:]
        assert len(read_results(self._jobs.folder(key).results)) == TASKS
        return lived

    def _is_under_way(self, key: str) -> bool:
        return self._jobs.get(key).state in ("queued", "running")

    def close(self) -> None:
        self._store.close()


def write_tasks(file: Path) -> None:
    def line(number: int) -> str:
        plan = {"steps": [{"worker": "calculator", "instruction": f"{number} + 1"}], "answer": "$1"}
        return json.dumps({"query": f"What is {number} plus 1?", "answer": number + 1, "plan": plan, "split": "test"})

    file.write_text("".join(f"{line(number)}\n" for number in range(TASKS)))


@pytest.mark.slow
def test_a_job_lives_on_when_its_studio_is_killed(tmp_path):
    trials, made = choose_trials(3), 0
    lanes = [Lane(tmp_path / f"lane-{seed}", seed) for seed in range(min(LANES, trials))]
    free: SimpleQueue[Lane] = SimpleQueue()
    for lane in lanes:
        free.put(lane)

    def kill_one(_: int) -> bool:
        lane = free.get()
        try:
            return lane.kill_a_studio()
        finally:
            free.put(lane)

    with ThreadPoolExecutor(len(lanes)) as threads:
        while made < trials:  # a job that had ended by itself was no trial
            for lived in threads.map(kill_one, range(trials - made)):
                made += lived
                count_trials(int(lived))
    for lane in lanes:
        lane.close()
