"""A thread that gets no memory to start, for which Python waits forever."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.trainer.support.waiting import until
from trainer.jobs.thread_start_watch import ThreadStartWatch
from trainer.recipe import parse_recipe

ROOT = Path(__file__).parents[3]
# As when memory ends between the system's thread and Python's: the thread is gone and has said nothing.
JOB_THAT_STANDS_STILL = """
import sys, threading
from orchestrator.traces.store import open_store
from pool_registry.storage.data_folder import find_home
from trainer import job_process, run_recipe
from trainer.jobs import thread_start_watch
from trainer.jobs.queue import JobStore

def start_what_never_starts(*_):
    threading._start_new_thread = lambda *_: 0
    threading.Thread(target=print).start()

home = find_home(sys.argv[1])
store = open_store(home)
run_recipe.run_recipe = start_what_never_starts
job_process.BEAT_S, job_process.ThreadStartWatch = 0.1, lambda: thread_start_watch.ThreadStartWatch(0.5)
job_process.run_job(sys.argv[2], store, JobStore(store.engine, home))
"""


@pytest.fixture
def thread_that_never_starts(monkeypatch):
    """A thread that waits for another one to start."""
    begun = threading.Event()
    waiting = threading.Thread(target=lambda: (begun.set(), lost.start()))
    lost = threading.Thread(target=print)
    start = threading._start_new_thread
    monkeypatch.setattr(
        threading, "_start_new_thread", lambda run, *rest: 0 if run == lost._bootstrap else start(run, *rest)
    )
    waiting.start()
    begun.wait()
    yield
    lost._started.set()
    waiting.join()


def test_a_thread_that_never_starts_is_noticed_after_the_limit(thread_that_never_starts):
    watch = ThreadStartWatch(0.2)
    assert not watch.is_stuck()
    until(watch.is_stuck, 5, every=0.05)


def test_threads_that_start_one_after_the_other_are_not_taken_for_one_that_never_does():
    watch, over = ThreadStartWatch(0.2), threading.Event()

    def start_many() -> None:
        while not over.is_set():
            threading.Thread(target=int).start()

    busy = threading.Thread(target=start_many)
    busy.start()
    try:
        ends = time.monotonic() + 1.0
        while time.monotonic() < ends:
            assert not watch.is_stuck()
    finally:
        over.set()
        busy.join()


@pytest.mark.medium
def test_a_job_that_waits_for_such_a_thread_ends_and_says_that_memory_ran_out(store, jobs):
    key = jobs.submit(parse_recipe("{name: lost, sft: {steps: 1, batch: 4}}")).id
    command = [sys.executable, "-c", JOB_THAT_STANDS_STILL, str(store.home.root), key]
    ended = subprocess.run(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=60, check=False)
    row = jobs.get(key)
    assert ended.returncode == 1
    assert (row.state, row.code) == ("failed", "out_of_memory")
    assert "not enough memory for another thread" in row.message and "sft.batch: 2" in row.message
