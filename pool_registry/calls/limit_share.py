"""The part of a worker's limits that this process has, where several processes call the same workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from aiolimiter import AsyncLimiter

from pool_registry.worker import WorkerSpec

MINUTE_S = 60.0
_PROCESSES: ContextVar[int] = ContextVar("processes", default=1)


@contextmanager
def share_limits(processes: int) -> Iterator[None]:
    """Give workers that are opened in the body, or in tasks that it starts, an equal part of their limits."""
    token = _PROCESSES.set(processes)
    try:
        yield
    finally:
        _PROCESSES.reset(token)


def count_slots(spec: WorkerSpec, remote: bool) -> int:
    """The calls at a time. What runs in this process is not shared with others, and has all of its slots."""
    return max(1, spec.max_concurrency // _PROCESSES.get()) if remote else spec.max_concurrency


def make_limiter(spec: WorkerSpec) -> AsyncLimiter | None:
    """What holds calls to the rate; None without one."""
    if spec.rate_limit is None:
        return None
    rate = spec.rate_limit / _PROCESSES.get()  # a minute
    return AsyncLimiter(rate, MINUTE_S) if rate >= 1 else AsyncLimiter(1, MINUTE_S / rate)
