"""Simulated experts behind real HTTP, in the form of OpenAI's chat completions: one server, one model name per expert.

Every reply says that it is simulated, in its model name and its `system_fingerprint`; so does every card.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bench.agents.ground import Ground
from podium_lessons.agents.cases import Book
from podium_lessons.agents.experts import Expert
from podium_lessons.agents.reading import CallFails, Reader
from pool_registry.pool import Limits, Pool, check_pool
from pool_registry.worker import WorkerSpec

SIMULATED = "simulated/"  # begins every model name
CARD = "Simulated expert of the proving ground: no real model."  # only outcomes tell experts apart
PACE = 0.002  # of an expert's latency that a call really takes
CENT = 0.01  # US dollars
ROUNDS = 8  # enough for a cascade through every expert, and one more


class ExpertServer(ThreadingHTTPServer):
    """Serves the experts of one ground."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, experts: Sequence[Expert], book: Book, pace: float) -> None:
        super().__init__(("127.0.0.1", 0), ExpertHandler)
        self.readers = {SIMULATED + expert.name: Reader(expert, book) for expert in experts}
        self.pace = pace

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class ExpertHandler(BaseHTTPRequestHandler):
    """Answers GET /v1/models and POST /v1/chat/completions."""

    server: ExpertServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in self.server.readers]})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw)
            name, text = body["model"], read_messages(body["messages"])
        except (ValueError, KeyError, TypeError):
            return self._refuse(400, 'send a JSON object with "model" and "messages"')
        reader = self.server.readers.get(name)
        if reader is None:
            return self._refuse(404, f"there is no model {name!r} here; GET /v1/models lists them")
        time.sleep(reader.expert.latency * self.server.pace)
        try:
            return self._send(200, write_completion(name, text, reader.reply(text)))
        except CallFails as failure:
            return self._refuse(503, str(failure))

    def _refuse(self, status: int, sentence: str) -> None:
        self._send(status, {"error": {"message": sentence, "type": "simulated"}})

    def _send(self, status: int, document: Mapping[str, Any]) -> None:
        raw = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        return


def read_messages(messages: Sequence[Mapping[str, Any]]) -> str:
    """What an expert reads: everything but its role."""
    return "\n\n".join(message["content"] for message in messages if message["role"] != "system")


def write_completion(model: str, prompt: str, text: str) -> dict[str, Any]:
    """A chat completion that says that it is simulated."""
    sent, written = len(prompt.split()), len(text.split())
    return {
        "id": "chatcmpl-simulated",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "system_fingerprint": "simulated",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": sent, "completion_tokens": written, "total_tokens": sent + written},
    }


@contextmanager
def serve_experts(ground: Ground, book: Book, pace: float = PACE) -> Iterator[Pool]:
    """The pool of a ground's experts, which answer for the body of a `with`."""
    server = ExpertServer(ground.experts, book, pace)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield make_pool(ground.experts, server.base_url)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def make_pool(experts: Sequence[Expert], base_url: str) -> Pool:
    """The experts as ordinary agents. Calls are not tried again: what fails once is meant to."""
    workers = tuple(
        WorkerSpec(
            name=expert.name,
            kind="chat",
            description=CARD,
            config={"base_url": base_url, "model": SIMULATED + expert.name},
            retries=0,
            max_concurrency=16,
            price_call=round(expert.price * CENT, 6),
        )
        for expert in experts
    )
    pool = Pool(name="proving-ground", description=CARD, workers=workers, limits=Limits(max_rounds=ROUNDS))
    check_pool(pool)
    return pool
