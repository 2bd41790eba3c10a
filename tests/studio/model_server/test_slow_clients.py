"""Clients that read slowly or send half a request hold up nobody else."""

from __future__ import annotations

import contextlib
import json
import socket
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlparse

import httpx
import pytest

from orchestrator.traces.store import TraceFilter
from tests.studio.support.edge_home import home, model
from tests.studio.support.served import opened, serving
from tests.trust.trials import count_trials

__all__ = ["home", "model"]

pytestmark = pytest.mark.slow
SLOW_READERS, HALF_SENT = 200, 100
REQUESTS, TRIES = 15, 5  # of a normal client, each time
LONG = "say " + "word " * 40_000  # more than the kernel's buffers take: the server has to wait for its reader
AT_ONCE = 50


def open_socket(url: str) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    client.connect((urlparse(url).hostname, urlparse(url).port))
    return client


def send_request(client: socket.socket, content: str, sent: float = 1.0) -> None:
    """Send a streamed chat request, or its first part only."""
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": content}]}).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
    client.sendall(request[: int(len(request) * sent)])


def time_requests(url: str) -> float:
    """The median time of a normal request in seconds, the best of several tries: the cores are not ours alone."""
    return min(_time_once(url) for _ in range(TRIES))


def _time_once(url: str) -> float:
    times = []
    with httpx.Client(base_url=url, timeout=60) as client:
        for _ in range(REQUESTS):
            start = time.perf_counter()
            message = {"role": "user", "content": "say 42"}
            reply = client.post("/v1/chat/completions", json={"model": "m", "messages": [message]})
            assert reply.status_code == 200, reply.text
            times.append(time.perf_counter() - start)
    return statistics.median(times)


@contextlib.contextmanager
def many_slow_clients(url: str, home: Path) -> Iterator[None]:
    """Clients that send half a request, and clients whose answer is there and who read the first bytes of it."""
    with contextlib.ExitStack() as stack:
        half_sent, readers = (
            [stack.enter_context(contextlib.closing(open_socket(url))) for _ in range(count)]
            for count in (HALF_SENT, SLOW_READERS)
        )
        for client in half_sent:
            send_request(client, LONG, 0.5)
        for start in range(0, SLOW_READERS, AT_ONCE):  # more at once than are answered at once would be refused
            for client in readers[start : start + AT_ONCE]:
                send_request(client, LONG)
            for client in readers[start : start + AT_ONCE]:
                client.settimeout(120)
                assert client.recv(12) == b"HTTP/1.1 200"
            wait_until_answered(home)
        yield


def wait_until_answered(home: Path) -> None:
    """Wait until no episode runs any more: from then on the others only read."""
    deadline = time.monotonic() + 240
    with opened(home) as store:
        while any(row.state == "running" for row in store.traces.search(TraceFilter(limit=1000))):
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_two_hundred_slow_readers_and_a_hundred_half_sent_requests_slow_nobody_down(home):
    options = ("--pool", "edge", "--orchestrator", "direct:agent", "--name", "m")
    with serving(home, *options) as url:
        time_requests(url)  # connections and imports
        alone = time_requests(url)
        with many_slow_clients(url, home):
            beside = time_requests(url)
        print(f"alone {alone:.3f} s, beside them {beside:.3f} s")
        assert beside <= 2 * alone
    count_trials(SLOW_READERS + HALF_SENT, 0)
