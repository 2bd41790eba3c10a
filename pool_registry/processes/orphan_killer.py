"""Keeps one program, and everything that it starts, from outliving the studio. Run as a script.

    python -I -S orphan_killer.py LIFELINE PROGRAM ARGUMENT...

The program gets standard input, output and error untouched; the guard only waits. When the program ends,
whatever it left behind is killed. When the other end of the pipe LIFELINE (a file descriptor) closes,
because the studio asked for it or is dead, all get SIGTERM and after GRACE_S SIGKILL; the byte `k` on it
means SIGKILL at once. On Linux the guard adopts orphans (subreaper), so that a daemon does not escape.

Standard library alone, and no import of ours: it starts in some 20 ms.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from pathlib import Path

GRACE_S = 2.0
CANNOT_START = 127  # as shells say it
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main(lifeline: int, command: list[str]) -> int:
    """Run `command` until it ends or the lifeline does. Returns its exit status, 128 + n for signal n."""
    os.set_inheritable(lifeline, False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    bell, ring = os.pipe()
    os.set_blocking(ring, False)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    child = os.fork()
    if child == 0:
        _become(command)
    _let_go_of_streams()
    status = None
    while status is None:
        ready, _, _ = select.select([lifeline, bell], [], [])
        if lifeline in ready:
            _ask_to_end(child, at_once=os.read(lifeline, 1) == b"k")
            break
        numbers = os.read(bell, 64)
        if any(number != signal.SIGCHLD for number in numbers):
            _ask_to_end(child, at_once=False)
            break
        status = _reap(child)
    _kill_all(child)
    return 1 if status is None else status


def _become(command: list[str]) -> None:
    """Turn the forked child into the program. Never returns."""
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606  a list of arguments; no shell
    except OSError as error:
        os.write(2, f"{command[0]} cannot be started: {error.strerror}\n".encode())
    finally:
        os._exit(CANNOT_START)


def _let_go_of_streams() -> None:
    """Close the pipes here, so that only the program holds them and they end with it."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)


def _ask_to_end(child: int, at_once: bool) -> None:
    if at_once:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGTERM)
    end = time.monotonic() + GRACE_S
    while time.monotonic() < end and _reap(child) is None:
        time.sleep(0.01)


def _reap(child: int) -> int | None:
    """Collect ended children; return the program's exit status if it is among them."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return CANNOT_START
        if pid == 0:
            return None
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _kill_all(child: int) -> None:
    """Send SIGKILL to the program's group, then to every orphan that the guard inherits, until none is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    while True:
        for pid in _children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.002)
        except ChildProcessError:
            return


def _children() -> list[int]:
    """List the children of the guard (Linux; elsewhere only the group can be killed)."""
    own, children = os.getpid(), []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # "pid (name) state parent ...": the name may hold spaces and brackets
            if int(entry.read_text().rpartition(")")[2].split()[1]) == own:
                children.append(int(entry.parent.name))
    return children


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, int(value), 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
