"""How a job waits for a peer that takes no more calls for a while (HTTP 429).

A person who waits for an answer is better served by an error at once. A job is not: an answer that nobody gave would
count as a wrong one. So a job's calls wait and are made again, and the deadlines of its episodes wait with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pool_registry.errors import WorkerFault

RATE_LIMITED = "rate_limited"  # the code of a call that its peer refused for now, and did no work for
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0  # where the peer does not say how long
PATIENCE_S = 3600.0  # that one call waits in all
LOOK_S = 0.5  # between two looks at whether the job was asked to stop


def never() -> bool:
    """What asks a job to stop that nothing stops."""
    return False


class Patience:
    """Waits for peers until `is_stopped`, or until one call has waited for `longest_s` seconds. Then `lost` says why,
    and an episode whose call was given up says nothing of who knows what."""

    def __init__(self, is_stopped: Callable[[], bool] = never, longest_s: float = PATIENCE_S) -> None:
        self._is_stopped = is_stopped
        self._longest_s = longest_s
        self.lost = ""

    async def wait(self, worker: str, fault: WorkerFault, tries: int, waited_s: float) -> float | None:
        """Wait as long as a peer asks after its refusal, or longer after each of `tries`. Returns the seconds; None
        where there is no more waiting."""
        seconds = fault.retry_after_s
        if seconds is None:
            seconds = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(tries, 16))
        if waited_s + seconds > self._longest_s:
            self.lost = f"{worker} has refused calls for {waited_s:,.0f} s: {fault}"
            return None
        return seconds if await self._sleep(worker, seconds) else None

    def explain_loss(self) -> str:
        """What keeps the job from going on, and how it goes on."""
        return f"{self.lost}. What is finished counts. Go on when calls are taken again: jobs resume JOB"

    async def _sleep(self, worker: str, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while (rest_s := end - loop.time()) > 0:
            if self._is_stopped():
                self.lost = f"the job was asked to stop while {worker} refused calls"
                return False
            await asyncio.sleep(min(rest_s, LOOK_S))
        return True
