"""What a client has been told is on disk: a server that dies afterwards has its trace."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import closing, suppress
from pathlib import Path

import pytest

from orchestrator.traces import writer
from pool_registry.errors import StorageError
from studio.model_server.errors import ApiError
from studio.model_server.request import EpisodeRequest
from studio.model_server.served_episode import ServedEpisode
from studio.model_server.service import ServedModel, Service
from studio.prepare import prepare_store
from tests.studio.support.edge_home import home, model
from tests.studio.support.served import START_S, free_port
from tests.trust.trials import choose_trials, count_trials

__all__ = ["home", "model"]

QUERY = "What is 2 + 2?"


def read_state(folder: Path, episode_id: str) -> str | None:
    """The state of an episode as another process sees it."""
    with closing(sqlite3.connect(folder / "podium.db")) as connection:
        row = connection.execute("SELECT state FROM episode WHERE id = ?", (episode_id,)).fetchone()
    return None if row is None else str(row[0])


def serve_once(folder: Path) -> tuple[ServedEpisode, str | None, str | None]:
    """Answer one query; returns the state on disk at the moment when the answer is there, and the error's code."""
    store = prepare_store(str(folder))
    pool = store.pools.latest("starter").pool
    store.pools.save(pool.model_copy(update={"limits": pool.limits.model_copy(update={"fallback": "off"})}))

    async def once() -> tuple[ServedEpisode, str | None, str | None]:
        service = Service(store, ServedModel("starter", "random_plan"))
        served = service.start_episode(EpisodeRequest(QUERY, question=QUERY), "")
        await served.result()
        state, code = read_state(folder, served.id), None
        try:
            await served.answer()
        except ApiError as error:
            code = error.code
        await service.close()
        return served, state, code

    outcome = asyncio.run(once())
    store.close()
    return outcome


def test_an_answer_is_there_when_its_trace_is_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "GATHER_S", 0.5)  # without a flush, the trace lags behind the answer
    _, state, error = serve_once(tmp_path)
    assert state not in (None, "running") and error != "not_recorded"


def test_an_answer_whose_trace_cannot_be_recorded_is_not_sent(tmp_path, monkeypatch):
    def refuse(_: object) -> None:
        raise StorageError("traces cannot be written: database or disk is full")

    monkeypatch.setattr(writer.TraceWriter, "flush", refuse)
    _, _, error = serve_once(tmp_path)
    assert error == "not_recorded"


def ask(url: str, answers: list[str]) -> None:
    """Send one request; keeps the trace's id of an answer that arrived whole."""
    body = json.dumps({"model": "podium-edge", "messages": [{"role": "user", "content": "say hello"}]}).encode()
    request = urllib.request.Request(f"{url}/v1/chat/completions", body, {"content-type": "application/json"})
    with suppress(OSError), urllib.request.urlopen(request, timeout=60) as response:
        json.loads(response.read())
        answers.append(response.headers["x-podium-trace"])


@pytest.mark.slow
def test_a_killed_server_has_the_trace_of_every_answer(home):
    chance, answers = random.Random(11), list[str]()
    for _ in range(choose_trials(6)):
        port, before = free_port(), len(answers)
        url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "studio", "serve", "--port", str(port), "--home", str(home), "--pool", "edge"]
        server = subprocess.Popen(
            [*command, "--orchestrator", "direct:agent"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for(url, server)
        clients = [threading.Thread(target=ask, args=(url, answers)) for _ in range(12)]
        for client in clients:
            client.start()
        while len(answers) == before:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.15))
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        for client in clients:
            client.join()
    states = [read_state(home, trace) for trace in answers]
    count_trials(len(states), sum(state != "answered" for state in states))
    assert len(answers) >= 12 and states == ["answered"] * len(answers), states


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while True:
        assert server.poll() is None and time.monotonic() < deadline
        with suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=2):
            return
        time.sleep(0.05)
