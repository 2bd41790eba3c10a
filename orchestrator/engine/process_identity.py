"""Identifies processes by pid and start time, so that a reused pid is never mistaken for its owner."""

from __future__ import annotations

import os
from functools import cache

import psutil


def this_process() -> str:
    """This process, as `process_of` writes it."""
    return _identify(os.getpid())


def process_of(pid: int) -> str:
    """A running process as pid and start time. Raises psutil.Error when there is none."""
    return f"{pid}:{psutil.Process(pid).create_time():.2f}"


@cache
def _identify(pid: int) -> str:  # by pid: a fork is another process
    return process_of(pid)


def is_alive(owner: str) -> bool:
    """Whether the process that `process_of` named still runs (a zombie does not)."""
    pid, _, started = owner.partition(":")
    try:
        process = psutil.Process(int(pid))
        return f"{process.create_time():.2f}" == started and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError):
        return False
