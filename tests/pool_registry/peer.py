"""An HTTP peer that misbehaves on request: a real socket server, each path a different fault."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def completion(text: object = "four", **message: object) -> dict:
    return {
        "choices": [{"message": {"role": "assistant", "content": text, **message}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }


CALLS = [{"id": "1", "function": {"name": "sql", "arguments": '{"query": "select 1", "access": []}'}}]


class Peer(BaseHTTPRequestHandler):
    """The last part of the base URL names the behaviour: http://host/hang/chat/completions."""

    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, dict]] = []

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        name = self.path.split("/")[1]
        Peer.seen.append((name, {"headers": dict(self.headers), "body": body}))
        getattr(self, f"_{name}", self._ok)()

    def do_GET(self) -> None:
        self._json(200, {"data": [{"id": "tiny"}]})

    def _json(self, status: int, document: object, **headers: str) -> None:
        raw = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _ok(self) -> None:
        self._json(200, completion())

    def _tools(self) -> None:
        self._json(200, completion(None, tool_calls=CALLS))

    def _unauthorized(self) -> None:
        self._json(401, {"error": {"message": f"bad key {self.headers.get('authorization')}"}})

    def _missing(self) -> None:
        self._json(404, {"error": {"message": "model not found"}})

    def _limited(self) -> None:
        if sum(name == "limited" for name, _ in Peer.seen) < 2:
            self._json(429, {"error": {"message": "slow down"}}, retry_after="0")
        else:
            self._ok()

    def _broken(self) -> None:
        self._json(500, b"<html>oops</html>")

    def _context(self) -> None:
        self._json(400, {"error": {"message": "maximum context length is 2048 tokens"}})

    def _filtered(self) -> None:
        self._json(400, {"error": {"message": "blocked by the content filter"}})

    def _html(self) -> None:
        self._json(200, b"<html>hello</html>")

    def _nan(self) -> None:
        self._json(200, b'{"choices": NaN}')

    def _utf8(self) -> None:
        self._json(200, b'{"choices": "\xff\xfe"}')

    def _deep(self) -> None:
        self._json(200, b"[" * 200_000)

    def _nochoices(self) -> None:
        self._json(200, {"choices": []})

    def _null(self) -> None:
        self._json(200, completion(None))

    def _redirect(self) -> None:
        self._json(302, {}, location="http://127.0.0.1:9/elsewhere")

    def _huge(self) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(200):
            self.wfile.write(b"x" * 1_000_000)

    def _half(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "1000")
        self.end_headers()
        self.wfile.write(b'{"choices":')
        self.close_connection = True

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())  # with lingering off: the client sees a reset

    def _hang(self) -> None:
        time.sleep(30)

    def _drip(self) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(200):
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(0.1)

    def log_message(self, *_: object) -> None:
        return


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:  # clients that go away are part of the tests
        return


@contextmanager
def peer() -> Iterator[str]:
    """The address of a running peer."""
    Peer.seen = []
    server = _Server(("127.0.0.1", 0), Peer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
