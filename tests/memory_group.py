"""A group of processes whose memory the kernel limits: it kills a process that needs more. Needs a cgroup that this
account may write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
# Version 1 mounts a tree of its own for memory; version 2 has one tree, where memory may be delegated.
TREE, LIMIT = (
    (CGROUPS / "memory", "memory.limit_in_bytes")
    if (CGROUPS / "memory" / "cgroup.procs").exists()
    else (CGROUPS, "memory.max")
)


def can_limit_memory() -> bool:
    """Whether this account may make such a group."""
    try:
        with memory_group():
            return True
    except OSError:
        return False


@contextmanager
def memory_group() -> Iterator[Path]:
    """An empty group below the tree's root. Raises OSError where this account may make none."""
    group = TREE / f"podium-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / LIMIT).read_text(encoding="ascii")  # version 2 has the file where memory is delegated
        yield group
    finally:
        group.rmdir()


def limit_memory(group: Path, pid: int, size: int) -> None:
    """Move a process into the group, which gets `size` bytes beyond what the process has already."""
    (group / LIMIT).write_text(str(size), encoding="ascii")
    (group / "cgroup.procs").write_text(str(pid), encoding="ascii")
