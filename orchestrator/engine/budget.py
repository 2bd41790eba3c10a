"""The budget of an episode, shared by all episodes inside it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from orchestrator.engine.events import Outcome
from pool_registry.actions import NO_USAGE, Failure, Usage
from pool_registry.pool import Limits


class Budget:
    """Counts steps, tokens, cost and time against `Limits`, and holds the stop signal.

    Bound to the running event loop. Times are `time.perf_counter()` seconds.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.started = time.perf_counter()
        self.usage = NO_USAGE
        self.steps = 0
        self.stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def stop(self) -> None:
        """Stop the episode: what is running ends, nothing new starts."""
        if not self.stopped.done():
            self.stopped.set_result(None)

    @property
    def remaining_s(self) -> float:
        return self.started + self.limits.deadline_s - time.perf_counter()

    async def wait_for(self, awaited: asyncio.Future[Any]) -> None:
        """Return when `awaited` is done, at the deadline, or on `stop()`, whichever comes first.

        `asyncio.wait` does the same in three times the time, and this runs twice in every round.
        """
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()

        def wake(_: object = None) -> None:
            if not woken.done():
                woken.set_result(None)

        alarm = loop.call_later(max(0.0, self.remaining_s), wake)
        awaited.add_done_callback(wake)
        self.stopped.add_done_callback(wake)
        try:
            await woken
        finally:
            alarm.cancel()
            awaited.remove_done_callback(wake)
            self.stopped.remove_done_callback(wake)

    def spend(self, usage: Usage) -> None:
        if usage is not NO_USAGE:
            self.usage += usage

    def check_limits(self) -> Outcome | None:
        """The limit that is reached, if any."""
        if self.stopped.done():
            return "stopped"
        if self.usage.tokens >= self.limits.max_tokens:
            return "max_tokens"
        if self.limits.max_cost is not None and self.usage.cost >= self.limits.max_cost:
            return "max_cost"
        return "deadline" if self.remaining_s <= 0 else None

    def admit_step(self) -> Failure | None:
        """Count one more step, or return why it may not start."""
        reached = self.check_limits()
        if reached is not None:
            return Failure(reached, explain_outcome(reached, self.limits))
        if self.steps >= self.limits.max_steps:
            return Failure("max_steps", f"the episode may use {self.limits.max_steps} steps; answer now")
        self.steps += 1
        return None


def explain_outcome(outcome: Outcome, limits: Limits) -> str:
    """A sentence for people about an outcome other than `answered`."""
    sentences: dict[str, str] = {
        "stopped": "Stopped by the user.",
        "deadline": f"The deadline of {limits.deadline_s:g} s passed.",
        "max_tokens": f"The limit of {limits.max_tokens:,} tokens is reached.",
        "max_cost": f"The limit of {limits.max_cost} US dollars is reached.",
        "max_rounds": f"No answer after {limits.max_rounds} rounds, the limit of this pool.",
    }
    return sentences.get(outcome, outcome)
