"""The fork server inside the sandbox: one fresh, locked-in interpreter for each snippet.

Standard library only. It imports what snippets usually import, once, and then only ever forks: the child
locks itself in (jail.py), runs one snippet (snippet.py) and ends; nothing that a snippet does is seen by the
next one, because the server itself never reads a snippet. It says `ready` on its control socket (descriptor
0) and gets on it one Unix socket for each call. The host writes the snippet into that socket, half-closes
it, and reads the child's JSON and, on a last line that the child cannot write after, its exit status. When
the host closes the socket the child is killed; when the control socket closes, all are.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys

from pool_registry.sandbox import jail, snippet

USUAL = (
    *("bisect", "calendar", "collections", "copy", "csv", "dataclasses", "datetime", "decimal", "fractions"),
    *("functools", "hashlib", "heapq", "itertools", "json", "math", "operator", "random", "re", "statistics"),
    *("string", "textwrap", "threading", "time", "typing"),
)
CHANNEL = 3  # the child's only open descriptor besides /dev/null on 0, 1 and 2


def main() -> None:
    """Serve until the host closes the socket."""
    jail.die_with_parent()
    bars = json.loads(sys.argv[1])
    bars = jail.Bars(**{**bars, "readable": tuple(bars["readable"])})
    sys.path.pop()  # our own place: snippets import from the standard library alone
    for name in USUAL:
        importlib.import_module(name)
    gc.freeze()
    Server(bars).serve()


class Server:
    """The calls in progress, each by its socket and by a descriptor of its process."""

    def __init__(self, bars: jail.Bars) -> None:
        self._bars = bars
        self._control = socket.socket(fileno=0)
        self._poll = select.poll()
        self._poll.register(self._control, select.POLLIN)
        self._channels: dict[int, tuple[int, socket.socket]] = {}  # socket -> process
        self._processes: dict[int, tuple[int, socket.socket]] = {}  # process's descriptor -> process

    def serve(self) -> None:
        self._control.sendall(b"ready\n")
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor == self._control.fileno():
                    if not self._start():
                        return
                elif descriptor in self._processes:
                    self._finish(descriptor)
                elif descriptor in self._channels:
                    self._abandon(descriptor)

    def _start(self) -> bool:
        """Fork a child for the next call. False when the host has gone."""
        word, sockets, _, _ = socket.recv_fds(self._control, 1, 1)
        if not word:
            return False
        for descriptor in sockets:
            with socket.socket(fileno=descriptor) as channel:
                self._fork(channel)
        return True

    def _fork(self, channel: socket.socket) -> None:
        """Fork a child. Without room for another process the socket just closes, which the host sees."""
        try:
            child = os.fork()
        except OSError:
            return
        if child == 0:
            become_child(channel, self._bars)
        kept = channel.dup()
        process = os.pidfd_open(child)
        self._channels[kept.fileno()] = self._processes[process] = (child, kept)
        self._poll.register(kept, 0)  # hang-up alone
        self._poll.register(process, select.POLLIN)

    def _abandon(self, channel: int) -> None:
        """Kill a call whose caller has gone."""
        child, _ = self._channels.pop(channel)
        self._poll.unregister(channel)
        os.kill(child, signal.SIGKILL)

    def _finish(self, process: int) -> None:
        child, channel = self._processes.pop(process)
        self._poll.unregister(process)
        os.close(process)
        if self._channels.pop(channel.fileno(), None) is not None:
            self._poll.unregister(channel)
        _, status = os.waitpid(child, 0)
        with channel:
            try:
                channel.send(b"\n%d" % os.waitstatus_to_exitcode(status), socket.MSG_DONTWAIT)
            except OSError:  # the host does not read, or has gone
                return


def become_child(channel: socket.socket, bars: jail.Bars) -> None:
    """Close everything but the one socket, run the snippet that arrives on it, and exit."""
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        answer = os.dup(channel.fileno())
        for stream in (0, 1, 2):  # what writes past sys.stdout must not mix with the answer, nor fill a pipe
            os.dup2(nowhere, stream)
        os.dup2(answer, CHANNEL)
        os.closerange(CHANNEL + 1, os.sysconf("SC_OPEN_MAX"))
        encoded = run_and_encode(bars)
        sent = 0
        while sent < len(encoded):
            sent += os.write(CHANNEL, encoded[sent:])
    finally:
        os._exit(0)


def run_and_encode(bars: jail.Bars) -> bytes:
    """Run the snippet and return its result as JSON; it is not run when the process cannot be locked in."""
    problem = None
    try:
        jail.lock_in(bars)
    except (OSError, KeyError, ValueError) as error:
        problem = {"error": "sandbox_failed", "message": f"{type(error).__name__}: {error}"}
    with open(CHANNEL, "rb", closefd=False) as source:
        code = source.read()
    return json.dumps(problem or snippet.run(code.decode("utf-8", "replace"))).encode()
