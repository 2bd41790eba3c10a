"""Which processes are there: for tests that nothing stays behind."""

from __future__ import annotations

import asyncio
import time

import psutil

PATIENCE_S = 120.0  # a busy machine may take its time; a stray process would stay for ever


async def gone(pid: int) -> bool:
    """Whether the process ends (or is a zombie) within PATIENCE_S."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if not alive(pid):
            return True
        await asyncio.sleep(0.02)
    return False


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
