"""Pools for the browser tests, brought into a studio the way a user would: through the Pool page."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

XSS = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>![x](http://evil.invalid/x.png)'


class SlowModel(BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint at the network's edge: it answers when `release` is set."""

    release = threading.Event()
    reply = "four"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.release.wait(60)
        body = json.dumps(
            {
                "choices": [{"message": {"role": "assistant", "content": self.reply}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 7, "completion_tokens": 3},
            }
        ).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def slow_model() -> Iterator[str]:
    """The base URL of a running SlowModel, not yet released."""
    SlowModel.release.clear()
    SlowModel.reply = "four"
    server = ThreadingHTTPServer(("127.0.0.1", 0), SlowModel)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    SlowModel.release.set()
    server.shutdown()


def chat_pool(name: str, base_url: str) -> str:
    """A pool document with two chat agents at `base_url`."""
    config = {"base_url": base_url, "model": "slow"}
    workers = [
        {"name": agent, "kind": "chat", "description": "Answers.", "config": config, "timeout_s": 60, "retries": 0}
        for agent in ("first", "second")
    ]
    return json.dumps({"podium_pool": 1, "name": name, "workers": workers})
