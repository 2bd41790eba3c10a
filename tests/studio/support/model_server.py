"""An OpenAI-compatible model server at the network's edge, as Ollama, vLLM and LM Studio list and answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OWNERS = {"vllm": "vllm", "ollama": "library", "lmstudio": "organization_owner", "llamacpp": "llamacpp"}


@contextmanager
def model_server(kind: str, models: Sequence[str], reply: str = "hello") -> Iterator[int]:
    """The port of a running server of that kind."""
    listing = {"object": "list", "data": [{"id": name, "object": "model", "owned_by": OWNERS[kind]} for name in models]}
    said = {
        "choices": [{"message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200 if self.path == "/v1/models" else 404, listing)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self._send(200, said)

        def _send(self, status: int, document: object) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
