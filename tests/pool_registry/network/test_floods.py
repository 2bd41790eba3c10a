"""Eight workers at once whose servers answer in bursts of 429 and of slowness: no worker is asked more often than it
allows, nor by more calls at a time; a server that asks to wait is left alone; and the run ends in time.

The servers are threads of this process: what a server sees of a client it sees late on a busy machine. How late threads
run is measured all the while, and the servers' clocks are believed only up to that."""

from __future__ import annotations

import asyncio
import json
import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random

import pytest

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, NoSink, run_episode
from orchestrator.plan import Step, Turn
from pool_registry.actions import Status
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Limits, Pool
from pool_registry.worker import WorkerSpec
from tests.orchestrator.support.engine import Scripted
from tests.pool_registry.support.peer import completion
from tests.serve import serve
from tests.trust.trials import choose_trials, count_trials

pytestmark = pytest.mark.slow

WORKERS, STEPS = 8, 64
DEADLINE_S, SLACK_S = 25.0, 5.0
WAIT_S = 2  # what a 429 asks for
LAG_S = 0.7  # in which a client gets a 429, calls under way arrive, and a server sees that a client has gone
TICK_S = 0.02


@dataclass(slots=True)
class Traffic:
    """What one worker's server has seen."""

    texts: list[str] = field(default_factory=list)
    answered: list[tuple[float, float]] = field(default_factory=list)  # when a call arrived, and its answer was due
    given_up: list[tuple[float, float]] = field(default_factory=list)  # when a call arrived, and its end was seen
    refusals: list[float] = field(default_factory=list)

    def list_spans(self, lag_s: float) -> list[tuple[float, float]]:
        """From when until when each call surely was under way."""
        return self.answered + [(first, last - lag_s) for first, last in self.given_up]


@dataclass(slots=True)
class Lateness:
    """By how much a thread of this process has woken up too late, at most."""

    worst_s: float = 0.0


@contextmanager
def measure_lateness() -> Iterator[Lateness]:
    """Watch how late threads run for the body of the `with`."""
    lateness, ended = Lateness(), threading.Event()

    def tick() -> None:
        before = time.monotonic()
        while not ended.wait(TICK_S):
            lateness.worst_s = max(lateness.worst_s, time.monotonic() - before - TICK_S)
            before = time.monotonic()

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield lateness
    finally:
        ended.set()
        thread.join()


class FloodServer(ThreadingHTTPServer):
    """One server for all workers, by the first part of the path. Bursts of refusals and of slowness are drawn."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, random: Random) -> None:
        super().__init__(("127.0.0.1", 0), FloodHandler)
        self.random = random
        self.traffic = {f"w{k}": Traffic() for k in range(WORKERS)}
        self.moods = {name: [random.choice(("ok", "busy", "slow")) for _ in range(60)] for name in self.traffic}
        self.started = time.monotonic()

    def handle_error(self, *_: object) -> None:  # clients that give up are part of the test
        return


class FloodHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FloodServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        name, now = self.path.split("/")[1], time.monotonic()
        traffic = self.server.traffic[name]
        traffic.texts.append(body)
        mood = self.server.moods[name][int((now - self.server.started) / 1.5) % 60]
        due = time.monotonic() + (self.server.random.uniform(0.2, 5.0) if mood == "slow" else 0.0)
        if self._has_client_gone(due):
            traffic.given_up.append((now, time.monotonic()))
            self.close_connection = True
            return
        traffic.answered.append((now, due))  # not the time of this line, to which the thread may have come late
        if mood == "busy":
            traffic.refusals.append(time.monotonic())
        self._reply(mood)

    def _has_client_gone(self, due: float) -> bool:
        """Wait, and return at once when the client gives up: it sends nothing more but its end."""
        return bool(select.select([self.connection], [], [], max(0.0, due - time.monotonic()))[0])

    def _reply(self, mood: str) -> None:
        is_chat = self.path.endswith("/chat/completions")
        document = {"error": {"message": "slow down"}} if mood == "busy" else completion() if is_chat else "four"
        raw = json.dumps(document).encode()
        self.send_response(429 if mood == "busy" else 200)
        if mood == "busy":
            self.send_header("retry-after", str(WAIT_S))
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        return


def draw_workers(random: Random, url: str) -> tuple[WorkerSpec, ...]:
    """Models and APIs, with limits that a run of STEPS steps reaches."""
    return tuple(
        WorkerSpec(
            name=f"w{k}",
            kind="chat" if k % 2 else "http",
            description="for tests",
            config={"base_url": f"{url}/w{k}", "model": "m"}
            if k % 2
            else {"url": f"{url}/w{k}", "method": "POST", "body": {"text": "{instruction}"}},
            timeout_s=random.uniform(WAIT_S + 1, 6.0),
            max_concurrency=random.randint(1, 3),
            retries=random.randint(0, 3),
            rate_limit=random.choice((None, random.randint(3, 12))),
        )
        for k in range(WORKERS)
    )


async def run(workers: tuple[WorkerSpec, ...], random: Random) -> Episode:
    """One round with all steps at once."""
    steps = tuple(Step(k, random.choice(workers).name, {"instruction": f"step <{k}>"}, ()) for k in range(1, STEPS + 1))
    limits = Limits(max_steps=STEPS, max_rounds=1, deadline_s=DEADLINE_S)
    async with live_pool(Pool(name="p", workers=workers, limits=limits)) as live:
        return await run_episode(EpisodeSpec("a query"), Scripted(Turn(steps, "done")), live, sink=NoSink())


def list_violations(workers: tuple[WorkerSpec, ...], server: FloodServer, lag_s: float) -> list[str]:
    """What the servers have seen and should not have; `lag_s` is how late they may have seen it."""
    found = []
    for spec in workers:
        traffic = server.traffic[spec.name]
        spans = traffic.list_spans(lag_s)
        most = max((sum(first <= at < last for first, last in spans) for at, _ in spans), default=0)
        if most > spec.max_concurrency:
            found.append(f"{spec.name} got {most} calls at a time, it allows {spec.max_concurrency}")
        if spec.rate_limit and len(traffic.texts) > spec.rate_limit:  # the run is shorter than a minute
            found.append(f"{spec.name} got {len(traffic.texts)} calls in a minute, it allows {spec.rate_limit:g}")
        often = [k for k in range(1, STEPS + 1) if sum(f"<{k}>" in text for text in traffic.texts) > spec.retries + 1]
        if often:
            found.append(f"{spec.name} got steps {often} more often than {spec.retries} retries allow")
        found += [
            f"{spec.name} was asked {at - refused:.2f} s after it had asked to wait {WAIT_S} s"
            for refused in traffic.refusals
            for at, _ in spans
            if refused + lag_s < at < refused + WAIT_S - 0.05
        ]
    return found


@pytest.mark.parametrize("seed", range(choose_trials(3)))
def test_a_flood_of_refusals_and_slow_answers_breaks_no_limit(seed):
    random = Random(seed)
    with measure_lateness() as lateness, serve(FloodServer(random)) as server:
        workers = draw_workers(random, f"http://127.0.0.1:{server.server_address[1]}")
        started = time.monotonic()
        episode = asyncio.run(run(workers, random))
        seconds = time.monotonic() - started
        found = list_violations(workers, server, LAG_S + 2 * lateness.worst_s)  # sent late, and read late
    count_trials()
    assert found == []
    assert seconds < DEADLINE_S + SLACK_S
    assert episode.ended is not None and len(episode.steps) == STEPS
    states = [step.observation.status for step in episode.steps.values() if step.observation]
    assert len(states) == STEPS and states.count(Status.OK) > 0
