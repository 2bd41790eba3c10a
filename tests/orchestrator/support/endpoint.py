"""A scripted chat endpoint and a short way to play an episode of a pool of agents behind it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import EpisodeSpec, run_episode
from orchestrator.policies.registry import make_orchestrator
from pool_registry.calls.live_pool import live_pool
from pool_registry.pool import Limits, Pool
from pool_registry.worker import WorkerSpec

Message = dict[str, Any]
Reply = Callable[[list[Message]], str | list[Message]]


class Endpoint(BaseHTTPRequestHandler):
    """Answers /chat/completions with what `reply(messages)` says: text, or structured tool calls. Where `refuse()`
    gives seconds it answers 429 and asks to wait so long; `bodies` are the requests that it took."""

    reply: Reply = staticmethod(lambda messages: "")
    refuse: Callable[[], float | None] = staticmethod(lambda: None)
    bodies: list[dict[str, Any]] = []
    refused = 0

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if (wait_s := Endpoint.refuse()) is not None:
            Endpoint.refused += 1
            self._send(429, {"error": {"message": "slow down", "type": "rate_limit_error"}}, str(wait_s))
            return
        Endpoint.bodies.append(body)
        said = Endpoint.reply(body["messages"])
        message = {"role": "assistant", "content": said} if isinstance(said, str) else {"tool_calls": said}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        about = {"id": "1", "object": "chat.completion", "created": 0, "model": body.get("model", "")}
        self._send(200, {**about, "choices": choices, "usage": usage})

    def _send(self, status: int, document: dict[str, Any], retry_after: str = "") -> None:
        raw = json.dumps(document).encode()
        self.send_response(status)
        if retry_after:
            self.send_header("retry-after", retry_after)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        return


class RateLimit:
    """Takes at most `count` calls in any `seconds` that begin with one; to others it gives the seconds to wait."""

    def __init__(self, count: int, seconds: float) -> None:
        self._count, self._seconds = count, seconds
        self._began, self._taken = float("-inf"), 0
        self._lock = threading.Lock()

    def __call__(self) -> float | None:
        with self._lock:
            now = time.monotonic()
            if now - self._began >= self._seconds:
                self._began, self._taken = now, 0
            self._taken += 1
            return None if self._taken <= self._count else round(self._began + self._seconds - now, 2) + 0.01


@pytest.fixture
def endpoint() -> Iterator[str]:
    Endpoint.bodies, Endpoint.refused = [], 0
    Endpoint.refuse = staticmethod(lambda: None)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def agent(name: str, url: str, **changes: Any) -> WorkerSpec:
    config = {"base_url": url, "model": name, "role": f"You are {name}.", "max_tokens": 32}
    described = {"description": f"Agent {name}.", "retries": 0, **changes}
    return WorkerSpec(name=name, kind="chat", config=config, **described)


def pool_of(url: str, *agents: str | WorkerSpec, **limits: int) -> Pool:
    """A calculator and these agents; three rounds unless `limits` say otherwise."""
    calculator = WorkerSpec(name="calc", kind="calculator", description="Computes.")
    workers = (each if isinstance(each, WorkerSpec) else agent(each, url) for each in agents)
    return Pool(name="p", workers=(calculator, *workers), limits=Limits.model_validate({"max_rounds": 3, **limits}))


def play(
    name: str,
    url: str,
    reply: Reply,
    agents: Sequence[str | WorkerSpec] = ("boss",),
    query: str = "6*7?",
    **limits: int,
) -> Episode:
    Endpoint.reply = staticmethod(reply)

    async def once() -> Episode:
        async with live_pool(pool_of(url, *agents, **limits)) as live:
            return await run_episode(EpisodeSpec(query), make_orchestrator(name, live), live)

    return asyncio.run(once())


def asked() -> list[tuple[str, str]]:
    """(agent, what it was sent last) of every request, in the order in which they came."""
    return [(body["model"], body["messages"][-1]["content"]) for body in Endpoint.bodies]
