"""`podium serve` as a process of its own, for tests."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.errors import EpisodeNotFound
from orchestrator.traces.store import EpisodeRow, Store, open_store
from pool_registry.pool import Pool
from pool_registry.storage.data_folder import find_home
from pool_registry.worker import WorkerSpec

START_S = 240.0  # a busy machine is no failure
PRICE_CALL = 0.25


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def edge_pool(url: str) -> Pool:
    """A pool with one agent, which is the model at the network's edge."""
    agent = WorkerSpec(
        name="agent",
        kind="chat",
        description="Answers.",
        config={"base_url": url, "model": "edge"},
        price_call=PRICE_CALL,
        max_concurrency=200,
        timeout_s=120,
        retries=0,
    )
    return Pool(name="edge", workers=(agent,))


@contextmanager
def serving(home: Path, *arguments: str, **environment: str) -> Iterator[str]:
    """Serve until the end of the block; yields the base URL without /v1."""
    port = free_port()
    command = [sys.executable, "-m", "studio", "serve", "--port", str(port), "--home", str(home), *arguments]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    with (home / f"serve-{port}.log").open("wb") as log:
        process = subprocess.Popen(command, env=variables, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + START_S
        while True:
            said = (home / f"serve-{port}.log").read_text()
            assert process.poll() is None and time.monotonic() < deadline, said
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=2):
                break
            time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


@contextmanager
def opened(home: Path) -> Iterator[Store]:
    store = open_store(find_home(home))
    try:
        yield store
    finally:
        store.close()


def ended_row(store: Store, episode: str) -> EpisodeRow:
    """The summary of an episode once it has ended; the server writes it a moment after it answers."""
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(EpisodeNotFound):
            if (row := store.traces.row(episode)).state != "running":
                return row
        assert time.monotonic() < deadline, "the episode is not written, or goes on"
        time.sleep(0.05)
