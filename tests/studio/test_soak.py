"""A studio that runs one query after another: its memory, open files and threads stay as they are.

`PODIUM_TRIALS=2000 pytest tests/studio/test_soak.py -s` soaks longer and prints the figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from studio.prepare import prepare_store
from tests.studio.support.recorded import record_run
from tests.studio.support.served import START_S, free_port
from tests.trainer.support.waiting import until
from tests.trust.trials import choose_trials, count_trials

pytestmark = pytest.mark.slow

WARM_UP, RUNS = 250, choose_trials(200)  # small models and caches are loaded by then
AT_ONCE = 4
GROWTH_BYTES = 4 * 2**20  # of each 100 runs, at most
SPARE = 4  # files that are open at the moment of the count, and threads that wait in pools of a fixed size


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a process holds: resident bytes, open files and threads."""

    bytes: int
    files: int
    threads: int


def measure(process: psutil.Process) -> Footprint:
    return Footprint(process.memory_info().rss, process.num_fds(), process.num_threads())


@contextmanager
def live_studio(home: Path) -> Iterator[tuple[str, psutil.Process]]:
    """A studio of its own; its address and process."""
    url = f"http://127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "studio", "--port", url.rpartition(":")[2], "--no-browser", "--home", str(home)]
    with (home / "studio.log").open("wb") as log:
        process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=log, stderr=log)
    try:
        until(lambda: process.poll() is not None or is_ready(url), START_S, every=0.2)
        assert process.poll() is None, (home / "studio.log").read_text()[-3000:]
        yield url, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(60)


def is_ready(url: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(url, timeout=10):
        return True
    return False


def send(url: str, body: object = None) -> Any:
    raw = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, raw, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.loads(response.read())


def run_again(url: str, episode: str, count: int) -> None:
    """Run the query of a recorded episode so often, some at a time, and look at each trace as a page does."""
    left = count
    while left > 0:
        started = [
            send(f"{url}/api/episodes/{episode}/again", {"orchestrator": "oracle"})["episode"]
            for _ in range(min(AT_ONCE, left))
        ]
        for each in started:
            until(lambda each=each: has_ended(f"{url}/api/episodes/{each}"), 120.0, every=0.1)
        left -= len(started)


def has_ended(address: str) -> bool:
    with suppress(urllib.error.HTTPError):  # 404 until its first event is written
        return send(address)["outcome"] is not None
    return False


def test_a_studio_that_runs_for_long_keeps_its_memory_files_and_threads(tmp_path):
    home = tmp_path / "home"
    store = prepare_store(str(home))
    episode = record_run(store, "oracle")
    store.close()
    with live_studio(home) as (url, process):
        run_again(url, episode, WARM_UP)
        before, started = measure(process), time.monotonic()
        run_again(url, episode, RUNS)
        seconds, after = time.monotonic() - started, measure(process)
    count_trials(RUNS)
    growth = (after.bytes - before.bytes) * 100 / RUNS
    print(
        f"{RUNS:,} runs in {seconds:,.0f} s: {before.bytes / 2**20:.0f} MB, then {after.bytes / 2**20:.0f} MB "
        f"({growth / 2**20:+.2f} MB each 100 runs); files {before.files}, then {after.files}; "
        f"threads {before.threads}, then {after.threads}"
    )
    assert growth < GROWTH_BYTES
    assert after.files <= before.files + SPARE
    assert after.threads <= before.threads + SPARE
