"""The part of a worker's limits that this process has, where several processes call the same workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pool_registry.calls.call_pace import CallPace
from pool_registry.worker import WorkerSpec

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


def make_pace(spec: WorkerSpec) -> CallPace:
    """What holds calls to this process's part of the rate, and to the waits that the worker's server asks for."""
    return CallPace(spec.rate_limit / _PROCESSES.get() if spec.rate_limit else None)
