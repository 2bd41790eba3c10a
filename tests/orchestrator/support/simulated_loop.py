"""An event loop whose clock jumps to the next timer: an hour of waiting takes no time, and is the same every time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class Deadlock(Exception):
    """Nothing is ready, no timer is set, and yet something is awaited."""


class SimulatedLoop(asyncio.SelectorEventLoop):
    """A loop with a clock of its own, which begins at 0."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_JumpingSelector(self._jump))

    def time(self) -> float:
        return self.now

    def _jump(self, seconds: float | None) -> None:
        if seconds is None:
            raise Deadlock
        self.now += seconds


class _JumpingSelector(selectors.DefaultSelector):
    """Waits for no file: what it would have waited, it jumps."""

    def __init__(self, jump: Callable[[float | None], None]) -> None:
        super().__init__()
        self._jump = jump

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and (timeout is None or timeout > 0):
            self._jump(timeout)
        return ready


def simulate(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end on a simulated loop. Raises Deadlock."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.get_loop().run_until_complete(main)  # Runner.run's handler of Ctrl-C costs a third of an episode
