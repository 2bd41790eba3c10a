"""Programs that Podium starts and talks to: MCP servers, and the processes of Python functions.

None of them outlives the studio, nor does anything that they start: each runs under orphan_killer.py. What they write
to standard error is kept, its last part only, for error messages. This is no sandbox: a program runs with the
rights of the person who started Podium; model-written code belongs into pool_registry/sandbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pool_registry.actions import clean_text
from pool_registry.errors import WorkerFault
from pool_registry.secrets import redact

GUARD = Path(__file__).with_name("orphan_killer.py")
SIGNALLED = 128  # orphan_killer.py adds this to the number of the signal that ended the program
KEPT_BYTES = 8000  # of standard error
TOLD_LINES = 4
TOLD_CHARS = 600
END_S = 2.0  # for a program to end by itself once its standard input is closed
ENDING_S = 15.0  # for one that has closed its output to end as well
COLLECT_S = 10.0  # for the guard to end after that; it needs GRACE_S at most


class Child:
    """A running program. Bound to the event loop that started it."""

    def __init__(self, process: asyncio.subprocess.Process, lifeline: int) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None, "pipes"
        self.stdin, self.stdout = process.stdin, process.stdout
        self._process = process
        self._lifeline: int | None = lifeline
        self._told = b""
        self._listener = asyncio.ensure_future(self._listen(process.stderr))

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def ending(self) -> str:
        """Describe the end for a message: exit status and last lines. Waits a moment for both."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), ENDING_S)
        await asyncio.wait({self._listener}, timeout=ENDING_S)
        return f"{_how(self._process.returncode)}{self.last_words()}"

    def last_words(self) -> str:
        """Return the last lines of standard error, without secrets: " and said: ...", or nothing."""
        lines = [" ".join(line.split()) for line in self._told.decode("utf-8", "replace").splitlines()]
        last_lines = redact(clean_text(" | ".join([line for line in lines if line][-TOLD_LINES:])))
        return f" and said: {last_lines[-TOLD_CHARS:]}" if last_lines else ""

    async def end(self) -> None:
        """Close its standard input, and if that does not end it, end it and all that it started."""
        with contextlib.suppress(OSError, RuntimeError):
            self.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), END_S)
        await self._collect()

    async def kill(self) -> None:
        """End it and all that it started at once."""
        if self._lifeline is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._lifeline, b"k")
        await self._collect()

    async def _collect(self) -> None:
        self._cut_lifeline()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), COLLECT_S)
        self._listener.cancel()

    def _cut_lifeline(self) -> None:
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    async def _listen(self, stderr: asyncio.StreamReader) -> None:
        while part := await stderr.read(65536):
            self._told = (self._told + part)[-KEPT_BYTES:]


def _how(status: int | None) -> str:
    """Describe an exit status as the guard gives it."""
    if status is None:
        return "still runs"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(status - SIGNALLED).name}"
    return f"ended (exit status {status})"


async def start(command: Sequence[str], env: Mapping[str, str], cwd: str | None = None, limit: int = 2**16) -> Child:
    """Start a program; no shell reads its arguments. Raises WorkerFault when that is impossible.

    A program that cannot be found starts as well, and ends at once saying so. `limit` is the longest line, in
    bytes, that can be read from it as one.
    """
    if os.name != "posix":
        raise WorkerFault("unsupported", f"no programs are started on {sys.platform} yet; use Linux or macOS")
    theirs, ours = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(GUARD), str(theirs), *command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(env),
            cwd=cwd or None,
            start_new_session=True,
            pass_fds=(theirs,),
            limit=limit,
        )
    except (OSError, ValueError) as error:
        os.close(ours)
        raise WorkerFault("cannot_start", f"{command[0]} cannot be started: {error}") from error
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return Child(process, ours)
