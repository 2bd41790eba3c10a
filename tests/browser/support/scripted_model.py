"""A chat endpoint at the network's edge that gives its replies in order, whoever asks."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKENS_IN, TOKENS_OUT = 7, 3


@contextmanager
def scripted_model(replies: Sequence[str]) -> Iterator[str]:
    """The base URL of a running endpoint; after the last reply the first one follows."""
    order = itertools.cycle(replies)
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            with lock:
                reply = next(order)
            body = json.dumps(_complete(reply)).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


def _complete(reply: str) -> dict[str, object]:
    return {
        "choices": [{"message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT},
    }


def sums_pool(name: str, base_url: str, agents: Sequence[str] = ("planner",)) -> str:
    """A pool document with chat agents at `base_url` and a calculator."""
    config = {"base_url": base_url, "model": "scripted"}
    planners = [
        {"name": agent, "kind": "chat", "description": "Plans.", "config": config, "timeout_s": 60} for agent in agents
    ]
    calculator = {"name": "calculator", "kind": "calculator", "description": "Evaluates an expression."}
    return json.dumps({"podium_pool": 1, "name": name, "workers": [*planners, calculator]})


def compute(expression: str) -> str:
    """A turn that answers with the value of an expression."""
    step = {"worker": "calculator", "arguments": {"expression": expression}, "access": []}
    return json.dumps({"steps": [step], "answer": "$1"})
