"""Runs a program that may change these folders alone: `write_fence.py FOLDER ... -- PROGRAM ARGUMENT ...`

Standard library only, and jail.py by its path. Everything can be read; what is written elsewhere, or sent to the
network where the kernel can keep that back (6.7), fails with "permission denied". The wall is Landlock, which every
process that the program starts inherits.
"""

from __future__ import annotations

import importlib.util
import os
import struct
import sys
from pathlib import Path
from typing import Any

JAIL = Path(__file__).parents[1] / "sandbox" / "jail.py"
DEVICES = ("/dev/null", "/dev/tty", "/dev/full", "/dev/zero", "/dev/shm")  # noqa: S108
CHANGES = sum(1 << bit for bit in (1, *range(4, 15)))  # linux/landlock.h: write, remove, make, link, truncate


def main() -> None:
    """Fence this process in and become the program."""
    place = sys.argv.index("--")
    folders, command = sys.argv[1:place], sys.argv[place + 1 :]
    try:
        fence(folders)
    except OSError as error:
        sys.exit(f"no what-if runs on a copy: this machine cannot keep a program from the originals ({error})")
    os.execvp(command[0], command)  # noqa: S606


def fence(folders: list[str]) -> None:
    """Keep this process and its children from changing anything but these folders. Raises OSError without Landlock."""
    jail = _load_jail()
    jail.check(jail.LIBC.prctl(jail.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    abi = jail.check(jail.LIBC.syscall(jail.CREATE_RULESET, None, 0, 1), "landlock")
    rights = CHANGES & jail.RIGHTS_BY_ABI[min(abi, 5)]
    attributes = struct.pack("=QQ", rights, 0b11) if abi >= 4 else struct.pack("=Q", rights)  # no bind, no connect
    ruleset = jail.check(jail.LIBC.syscall(jail.CREATE_RULESET, attributes, len(attributes), 0), "ruleset")
    for path in (*folders, *DEVICES):
        jail.allow(ruleset, path, rights)
    jail.check(jail.LIBC.syscall(jail.RESTRICT_SELF, ruleset, 0), "restrict_self")


def _load_jail() -> Any:
    spec = importlib.util.spec_from_file_location("podium_jail", JAIL)
    assert spec is not None and spec.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
