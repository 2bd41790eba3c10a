"""An HTTP peer that misbehaves on request: a real socket server, each path a different fault."""

from __future__ import annotations

import base64
import gzip
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote


def completion(text: object = "four", **message: object) -> dict[str, Any]:
    return {
        "choices": [{"message": {"role": "assistant", "content": text, **message}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }


CALLS = [{"id": "1", "function": {"name": "sql", "arguments": '{"query": "select 1", "access": []}'}}]


_BOMB = gzip.compress(b"0" * 300 * 2**20, compresslevel=1)


class Peer(BaseHTTPRequestHandler):
    """The last part of the base URL names the behaviour: http://host/hang/chat/completions."""

    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, dict[str, Any]]] = []

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        name = self.path.split("/")[1]
        Peer.seen.append((name, {"headers": dict(self.headers), "body": body}))
        getattr(self, f"_{name}", self._ok)()

    def do_GET(self) -> None:
        name = self.path.split("/")[1]
        if self.path.endswith("/models"):
            self._json(200, {"data": [{"id": "tiny"}]})
        else:
            getattr(self, f"_{name}", self._ok)()

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

    def _echoed(self) -> str:
        """The key that came with the request, as it is and written in other ways."""
        key = (self.headers.get("authorization") or "").removeprefix("Bearer ")
        raw = key.encode()
        forms = (key, base64.b64encode(raw), base64.b64encode(b"user:" + raw), base64.urlsafe_b64encode(b"x" + raw))
        texts = [form if isinstance(form, str) else form.decode() for form in forms]
        return " | ".join([*texts, quote(key, safe=""), quote(key), raw.hex(), json.dumps(key)])

    def _echo(self) -> None:
        self._json(200, completion(self._echoed()))

    def _echo_value(self) -> None:
        said = self._echoed()
        self._json(200, completion(json.dumps({said: [said, {"deep": said}]})))

    def _echo_call(self) -> None:
        function = {"name": self._echoed(), "arguments": json.dumps({"x": self._echoed()})}
        self._json(200, completion(None, tool_calls=[{"id": "1", "function": function}]))

    def _echo_finish(self) -> None:
        answer = completion(None)
        answer["choices"][0]["finish_reason"] = self._echoed()
        self._json(200, answer)

    def _echo_refusal(self) -> None:
        self._json(200, completion(None, refusal=self._echoed()))

    def _echo_400(self) -> None:
        self._json(400, {"error": {"message": self._echoed(), "code": self._echoed()}})

    def _echo_429(self) -> None:
        self._json(429, {"error": {"message": self._echoed()}}, retry_after="0")

    def _echo_500(self) -> None:
        self._json(500, self._echoed().encode())

    def _echo_within(self) -> None:
        self._json(200, {"error": self._echoed()})

    def _echo_html(self) -> None:
        self._json(200, f"<html>{self._echoed()}</html>".encode())

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

    def _slow_headers(self) -> None:
        with suppress(OSError):
            for byte in b"HTTP/1.1 200 OK\r\nx-slow: " + b"x" * 1000:
                self.connection.sendall(bytes([byte]))
                time.sleep(0.05)

    def _slow_body(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "1000")
        self.end_headers()
        for _ in range(1000):
            self.wfile.write(b"x")
            self.wfile.flush()
            time.sleep(0.05)

    def _endless_chunks(self) -> None:
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        while True:
            self.wfile.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")

    def _endless_headers(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            self.wfile.write(b"x-more: " + b"x" * 1000 + b"\r\n")

    def _endless_hints(self) -> None:
        while True:
            self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" * 100)

    def _gzip_bomb(self) -> None:
        self._json(200, _BOMB, content_encoding="gzip")

    def _surrogate(self) -> None:
        self._json(200, json.dumps(completion("a\x00b\ud800c")).encode())

    def _cut(self) -> None:
        self._json(200, json.dumps(completion()).encode()[:-7])

    def _empty(self) -> None:
        self._json(200, b"")

    def _no_answer(self) -> None:
        self.close_connection = True

    def _not_http(self) -> None:
        self.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        self.close_connection = True

    def _bad_length(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n{}")
        self.close_connection = True

    def _busy(self) -> None:
        self._json(429, {"error": {"message": "slow down"}}, retry_after="7")

    def _liar(self) -> None:
        self._json(200, {**completion(), "usage": {"prompt_tokens": 10**30, "completion_tokens": -1}})

    def _error_within(self) -> None:
        self._json(200, {"error": {"message": "Provider returned error", "code": 502}})

    def _parts(self) -> None:
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
        self._json(200, completion([thought, {"type": "text", "text": "fo"}, {"type": "text", "text": "ur"}, 7]))

    def _reasoned(self) -> None:
        self._json(200, completion("four", reasoning_content="long thoughts", reasoning="long thoughts"))

    def _refused(self) -> None:
        self._json(200, completion(None, refusal="I cannot help with that"))

    def _stopped(self) -> None:
        answer = completion("fo")
        answer["choices"][0]["finish_reason"] = "content_filter"
        self._json(200, answer)

    def _thought(self) -> None:
        answer = completion("")
        answer["choices"][0]["finish_reason"] = "length"
        self._json(200, answer)

    def log_message(self, *_: object) -> None:
        return


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

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
