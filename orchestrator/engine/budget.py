"""The budget of an episode, shared by all episodes inside it."""

from __future__ import annotations

import asyncio
from typing import Any

from orchestrator.engine.events import Outcome
from pool_registry.actions import Failure, Usage
from pool_registry.calls.spending import Spending, current_spending
from pool_registry.pool import Limits

CLOCK_TICK_S = 1e-9


class Budget:
    """Counts steps, tokens, cost and time against `Limits`, and holds the stop signal.

    Bound to the running event loop, whose clock it goes by. What is spent counts against the caps of
    whatever runs the episode, too. `max_cost` is a cap of this run that no call may pass, also in episodes inside.
    """

    def __init__(self, limits: Limits, max_cost: float | None = None) -> None:
        self.limits = limits
        loop = asyncio.get_running_loop()
        self._clock = loop.time
        self.started = loop.time()
        outer = current_spending()
        if max_cost is not None:
            outer = Spending(max_cost=max_cost, parent=outer, exact=True)
        self.spending = Spending(limits.max_tokens, limits.max_cost, outer)
        self.steps = 0
        self.stopped: asyncio.Future[None] = loop.create_future()

    def stop(self) -> None:
        """Stop the episode: what is running ends, nothing new starts."""
        if not self.stopped.done():
            self.stopped.set_result(None)

    def resume(self, usage: Usage, steps: int, elapsed_s: float) -> None:
        """Go on from what an episode had used before it waited for a person."""
        self.steps = steps
        self.spending.charge(usage)
        self.started = self._clock() - elapsed_s

    def skip(self, seconds: float) -> None:
        """Move the deadline: a person has thought for so long."""
        self.started += seconds

    @property
    def remaining_s(self) -> float:
        return self.started + self.limits.deadline_s + self.spending.held_s - self._clock()

    async def wait_for(self, awaited: asyncio.Future[Any]) -> None:
        """Return when `awaited` is done, at the deadline, or on `stop()`, whichever comes first.

        `asyncio.wait` does the same in three times the time, and this runs twice in every round.
        """
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()
        alarm: asyncio.TimerHandle

        def wake(_: object = None) -> None:
            if not woken.done():
                woken.set_result(None)

        def ring() -> None:
            # uvloop's alarms are up to half a millisecond early, which is time for a round, and none for its turn.
            nonlocal alarm
            if (rest_s := self.remaining_s) > 0:
                alarm = loop.call_later(max(rest_s, CLOCK_TICK_S), ring)
            else:
                wake()

        alarm = loop.call_later(max(0.0, self.remaining_s), ring)
        awaited.add_done_callback(wake)
        self.stopped.add_done_callback(wake)
        try:
            await woken
        finally:
            alarm.cancel()
            awaited.remove_done_callback(wake)
            self.stopped.remove_done_callback(wake)

    @property
    def usage(self) -> Usage:
        return self.spending.used

    def open_spending(self) -> Spending:
        """What one turn or one step spends, within the episode."""
        return Spending(parent=self.spending)

    def check_limits(self) -> Outcome | None:
        """The limit that is reached, if any."""
        if self.stopped.done():
            return "stopped"
        return self.check_caps() or ("deadline" if self.remaining_s <= 0 else None)

    def check_caps(self) -> Outcome | None:
        """The cap on tokens or cost that is reached, if any."""
        reached = self.spending.find_reached()
        return None if reached is None else reached[0]

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
        "rejected": "The plan was rejected.",
        "deadline": f"The deadline of {limits.deadline_s:g} s passed.",
        "max_tokens": f"The limit of {limits.max_tokens:,} tokens is reached.",
        "max_cost": f"The limit of {limits.max_cost} US dollars is reached.",
        "max_rounds": f"No answer after {limits.max_rounds} rounds, the limit of this pool.",
    }
    return sentences.get(outcome, outcome)
