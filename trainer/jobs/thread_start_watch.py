"""Notices a thread that never starts, for which Python waits forever.

A new thread that gets no memory for its own bookkeeping ends before it has said that it runs, and `Thread.start` waits
for that word without a limit (CPython 3.11 and 3.12). A job would then stand still, with no error to explain.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

START_S = 30.0  # a thread starts within milliseconds, on a busy machine within seconds


class ThreadStartWatch:
    """Looks at every thread of this process from time to time."""

    def __init__(self, limit_s: float = START_S) -> None:
        self._limit_s = limit_s
        self._since: dict[FrameType, float] = {}

    def is_stuck(self) -> bool:
        """Whether one call of `Thread.start` has waited for longer than the limit since it was first seen here."""
        now = time.monotonic()
        self._since = {frame: self._since.get(frame, now) for frame in _list_starts()}
        return any(now - since > self._limit_s for since in self._since.values())


def _list_starts() -> Iterator[FrameType]:
    """The calls of `Thread.start` that are under way in this process."""
    for newest in sys._current_frames().values():  # noqa: SLF001  the one way to see what other threads do
        frame: FrameType | None = newest
        while frame is not None:
            if frame.f_code is threading.Thread.start.__code__:
                yield frame
            frame = frame.f_back
