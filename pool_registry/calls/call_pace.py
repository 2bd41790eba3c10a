"""The pace of a worker's calls: so many a minute, and none while its peer has asked to wait."""

from __future__ import annotations

import asyncio
from collections import deque

MINUTE_S = 60.0


class CallPace:
    """Admits at most `rate` calls in any minute, in the order in which they came. Below one a minute, one in
    1 / `rate` minutes; without a rate, any number."""

    def __init__(self, rate: float | None) -> None:
        count = max(1, int(rate)) if rate else 0
        self._window_s = MINUTE_S * count / rate if rate else 0.0
        self._admitted: deque[float] = deque(maxlen=count)  # when, by the loop's clock: the last `count`
        self._paused_until = float("-inf")
        self._turn = asyncio.Lock()

    def pause(self, seconds: float) -> None:
        """Admit nothing for so long: what the peer asked for."""
        self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + seconds)

    async def admit(self) -> None:
        """Wait until a call may be made."""
        loop = asyncio.get_running_loop()
        if not self._window_s and loop.time() >= self._paused_until:
            return
        async with self._turn:
            while (wait_s := self._find_next_time() - loop.time()) > 0:  # noqa: ASYNC110  a pause may grow meanwhile
                await asyncio.sleep(wait_s)
            self._admitted.append(loop.time())

    def _find_next_time(self) -> float:
        """When the next call may be made, by the loop's clock."""
        is_full = len(self._admitted) == self._admitted.maxlen
        free_at = self._admitted[0] + self._window_s if is_full and self._admitted else float("-inf")
        return max(free_at, self._paused_until)
