"""The time-out of a worker's calls: many calls, one timer of the event loop.

Calls with the same time-out run out in the order in which they started. So a timer for the oldest is enough, and the
event loop does not have to keep one for every call, nearly all of which end in time.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


class TimeLimit:
    """Cancels calls that take longer than `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running: dict[CallClock, None] = {}  # a set that keeps the order, the oldest first
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> CallClock:
        """Limit the running task from now on, until its clock is stopped."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # calls of a loop that has ended have ended, too
            self._loop, self._timer, self._running = loop, None, {}
        clock = CallClock(self, loop, asyncio.current_task(), loop.time())
        self._running[clock] = None
        if self._timer is None:
            self._timer = loop.call_at(clock.started + self._seconds, self._end_late, loop)
        return clock

    def stop(self, clock: CallClock) -> None:
        """Forget a call that has ended."""
        self._running.pop(clock, None)

    def close(self) -> None:
        """Give the timer back, unless calls still run: a pool may be closed long before it would ring."""
        if self._timer is not None and not self._running:
            self._timer.cancel()
            self._timer = None

    def _end_late(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel what has run out, and set the timer for the oldest call that is left."""
        self._timer = None
        for clock in list(self._running):
            ends_at = clock.started + self._seconds
            if ends_at > loop.time():
                self._timer = loop.call_at(ends_at, self._end_late, loop)
                return
            self.stop(clock)
            clock.expire()


@dataclass(slots=True, eq=False)
class CallClock:
    """Measures a call, by its loop's clock, and cancels its task at the limit."""

    limit: TimeLimit
    loop: asyncio.AbstractEventLoop
    task: asyncio.Task[object] | None
    started: float
    expired: bool = False

    @property
    def elapsed_s(self) -> float:
        return self.loop.time() - self.started

    def expire(self) -> None:
        self.expired = True
        if self.task is not None:
            self.task.cancel()

    def stop(self) -> None:
        """End the limit, and undo its cancellation of the task if it has fired."""
        self.limit.stop(self)
        if self.expired and self.task is not None:
            self.task.uncancel()
