"""Runs a program that may change these folders alone: `write_fence.py FOLDER ... -- PROGRAM ARGUMENT ...`

Standard library only, and jail.py by its path. Everything can be read; what is written elsewhere fails with "permission
denied", and so does a socket of any kind. The wall is Landlock and seccomp, which every process that the program starts
inherits.
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
IO_URING_SETUP = 425  # a ring makes sockets, too
CHANGES = sum(1 << bit for bit in (1, *range(4, 15)))  # linux/landlock.h: write, remove, make, link, truncate


def main() -> None:
    """Fence this process in and become the program."""
    place = sys.argv.index("--")
    folders, command = sys.argv[1:place], sys.argv[place + 1 :]
    try:
        fence(folders)
    except (OSError, KeyError) as error:
        sys.exit(f"no what-if runs on a copy: this machine cannot keep a program from the originals ({error})")
    os.execvp(command[0], command)  # noqa: S606


def fence(folders: list[str]) -> None:
    """Keep this process and its children from changing anything but these folders, and from the network. Raises OSError
    without Landlock, KeyError on an unknown machine."""
    jail = _load_jail()
    jail.check(jail.LIBC.prctl(jail.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    abi = jail.check(jail.LIBC.syscall(jail.CREATE_RULESET, None, 0, 1), "landlock")
    rights = CHANGES & jail.RIGHTS_BY_ABI[min(abi, 5)]
    attributes = struct.pack("=Q", rights)
    ruleset = jail.check(jail.LIBC.syscall(jail.CREATE_RULESET, attributes, len(attributes), 0), "ruleset")
    for path in (*folders, *DEVICES):
        jail.allow(ruleset, path, rights)
    jail.check(jail.LIBC.syscall(jail.RESTRICT_SELF, ruleset, 0), "restrict_self")
    jail.refuse_calls(os.uname().machine, (jail.SOCKET[os.uname().machine], IO_URING_SETUP))


def _load_jail() -> Any:
    spec = importlib.util.spec_from_file_location("podium_jail", JAIL)
    assert spec is not None and spec.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
