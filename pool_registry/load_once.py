"""Values that take a moment to load: made once per process, and never on the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class LoadOnce(Generic[T]):
    """A function without arguments that runs at most once; threads that call it meanwhile wait for its result.

    A coroutine awaits `ready` first, which runs the function in a thread.
    """

    def __init__(self, load: Callable[[], T]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._results: list[T] = []  # one, once it is loaded

    def __call__(self) -> T:
        with self._lock:
            if not self._results:
                self._results.append(self._load())
        return self._results[0]

    async def ready(self) -> None:
        if not self._results:
            await asyncio.to_thread(self)
