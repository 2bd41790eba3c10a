"""Caps on tokens and cost that hold for calls in parallel: a call reserves what it may use, and settles what it used.

A call is admitted while what is spent, what is reserved and what it may use itself stay within the cap. Else it waits
until other calls have settled; when none is left to wait for and the cap is not reached, it is admitted alone. So a cap
is exceeded by less than one reservation, however wide a plan is. An exact cap is not exceeded: a call that may use more
than is left is refused.

Spendings nest: a turn's or a step's within its episode's, an episode's within its job's. A call counts in all of them.
Which one a call is charged to travels with the task that makes it, so that retries, judges, reflections and whatever a
worker runs inside count without being told. So do the waits of a job's calls for peers that refuse them
(patience.py), by which deadlines move.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from pool_registry.actions import NO_USAGE, Usage
from pool_registry.calls.patience import RATE_LIMITED, Patience
from pool_registry.errors import WorkerFault

Asked = TypeVar("Asked")
Result = TypeVar("Result")
Cap = Literal["max_tokens", "max_cost"]
CAP_CODES = frozenset({"max_tokens", "max_cost", "no_price"})  # of calls that a cap refuses
ROUNDING = 1e-9  # dollars by which sums of prices may be off


class Spending:
    """What has been used and reserved, against caps on tokens and on cost in US dollars; None is no cap.

    Bound to the running event loop. `refused` says that a call was not made because a cap is reached, of this level or
    around it. With `patience` its calls wait for peers that refuse them for a while; `held_s` is for how long, and
    `lost` says that one of them was given up.
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        parent: Spending | None = None,
        *,
        exact: bool = False,
        patience: Patience | None = None,
    ) -> None:
        self._patience = patience
        self._holds = 0  # calls that wait for a peer now
        self._held_before = self._held_since = 0.0
        self.max_tokens = max_tokens
        self.max_cost = max_cost
        self.exact = exact
        self._outer: tuple[Spending, ...] = () if parent is None else parent.levels
        self.used = NO_USAGE
        self.refused = self.lost = False
        self._reserved: dict[int, Usage] = {}
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def levels(self) -> tuple[Spending, ...]:
        """This one and those around it."""
        return (self, *self._outer)

    @property
    def patience(self) -> Patience | None:
        """Whose it is to wait for peers, on any level; None where calls fail instead."""
        return next((level._patience for level in self.levels if level._patience is not None), None)  # noqa: SLF001

    @property
    def held_s(self) -> float:
        """For how many seconds any of its calls has waited for a peer, until now."""
        return self._held_before + (asyncio.get_running_loop().time() - self._held_since if self._holds else 0.0)

    @contextmanager
    def hold_deadlines(self) -> Iterator[None]:
        """Count the time of the body as a wait for a peer, on every level."""
        for level in self.levels:
            level.begin_hold()
        try:
            yield
        finally:
            for level in self.levels:
                level.end_hold()

    def begin_hold(self) -> None:
        """One more call of this level waits."""
        if not self._holds:
            self._held_since = asyncio.get_running_loop().time()
        self._holds += 1

    def end_hold(self) -> None:
        """One of its calls waits no more."""
        self._holds -= 1
        if not self._holds:
            self._held_before += asyncio.get_running_loop().time() - self._held_since

    def give_up(self) -> None:
        """Say on every level that a peer took no call for longer than anybody waits."""
        for level in self.levels:
            level.lost = True

    @property
    def limits_cost(self) -> bool:
        return any(level.max_cost is not None for level in self.levels)

    def charge(self, usage: Usage) -> None:
        """Count what has been used, on every level."""
        if usage is not NO_USAGE:
            for level in self.levels:
                level.used += usage

    def charge_rest(self, usage: Usage, recorded: bool = False) -> None:
        """Count what of `usage` this level does not hold yet: what was used by other means than calls. What a
        `recorded` call had used counts against limits all the same, but exact caps are of money, and nobody pays."""
        if usage is NO_USAGE:
            return
        rest = Usage(
            max(0, usage.tokens_in - self.used.tokens_in),
            max(0, usage.tokens_out - self.used.tokens_out),
            max(0.0, usage.cost - self.used.cost),
        )
        for level in self.levels:
            if not (recorded and level.exact):
                level.used += rest

    def find_reached(self) -> tuple[Cap, str] | None:
        """The code of a cap that is reached on some level and a sentence about it, or None."""
        return next((reached for level in self.levels if (reached := level.find_own_reached())), None)

    def find_own_reached(self) -> tuple[Cap, str] | None:
        """The code of a cap of this level that is reached and a sentence about it, or None."""
        if self.max_tokens is not None and self.used.tokens >= self.max_tokens:
            return "max_tokens", f"The limit of {self.max_tokens:,} tokens is reached."
        if self.max_cost is not None and self.used.cost >= self.max_cost:
            return "max_cost", f"The limit of {self.max_cost} US dollars is reached."
        return None

    def find_own_overrun(self, estimate: Usage) -> tuple[Cap, str] | None:
        """The code of an exact cap of this level that a call of `estimate` might pass and a sentence about it, or
        None."""
        left = (self.max_cost or 0.0) - self.used.cost
        if not self.exact or self.max_cost is None or estimate.cost <= left + ROUNDING:
            return None
        return "max_cost", (
            f"A call that may cost ${estimate.cost:.6g} was not made: ${max(0.0, left):.6g} is left of the "
            f"${self.max_cost:g} that this run may cost."
        )

    async def reserve(self, estimate: Usage) -> Reservation:
        """Hold `estimate` on every level, once there is room for it. Raises WorkerFault when a cap refuses it."""
        while True:
            for place, level in enumerate(self.levels, start=1):
                if (reached := level.find_own_reached() or level.find_own_overrun(estimate)) is not None:
                    for inner in self.levels[:place]:  # what is around them may spend more
                        inner.refused = True
                    raise WorkerFault(*reached)
            full = next((level for level in self.levels if not level.has_room(estimate)), None)
            if full is None:
                return Reservation(self, estimate)
            await full.wait_for_change()

    def has_room(self, estimate: Usage) -> bool:
        """Whether this level's caps admit one more reservation now."""
        if not self._reserved:
            return True
        held = sum(self._reserved.values(), self.used + estimate)
        fits_tokens = self.max_tokens is None or held.tokens <= self.max_tokens
        return fits_tokens and (self.max_cost is None or held.cost <= self.max_cost)

    async def wait_for_change(self) -> None:
        """Return when a reservation on this level has been settled."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(woken)
        await woken

    def hold(self, key: int, estimate: Usage) -> None:
        """Keep a reservation."""
        self._reserved[key] = estimate

    def release(self, key: int) -> None:
        """Give a reservation back, and let others see whether there is room now."""
        self._reserved.pop(key, None)
        waiting, self._waiting = self._waiting, []
        for woken in waiting:
            if not woken.done():
                woken.set_result(None)


@dataclass(slots=True, eq=False)
class Reservation:
    """What one call may use, held until `settle` says what it has used. A call that is to use nothing holds nothing."""

    spending: Spending
    estimate: Usage
    settled: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.estimate is not NO_USAGE:
            for level in self.spending.levels:
                level.hold(id(self), self.estimate)

    def settle(self, used: Usage) -> None:
        """Count `used` in place of what was held. Only the first time counts."""
        if self.settled:
            return
        self.settled = True
        self.spending.charge(used)
        if self.estimate is not NO_USAGE:
            for level in self.spending.levels:
                level.release(id(self))


class Bill:
    """The reservations of one call and its retries. `price_call` is due for every attempt.

    An attempt that its worker refuses with a fault has cost its price per call, but nothing where it takes no calls for
    now. One that is cut off may have cost all that it was to use: its provider goes on.
    """

    __slots__ = ("_estimate", "_price_call", "_reservation", "_spending")

    def __init__(self, spending: Spending | None, estimate: Usage, price_call: float) -> None:
        self._spending = spending
        self._estimate = estimate
        self._price_call = price_call
        self._reservation: Reservation | None = None

    async def reserve(self) -> None:
        """Reserve the next attempt. Raises WorkerFault when a cap is reached."""
        if self._spending is not None:
            self._reservation = await self._spending.reserve(self._estimate)

    async def pay_attempt(self, attempt: Callable[[Asked], Awaitable[Result]], asked: Asked) -> Result:
        """Make an attempt; a second one reserves anew. `settle` must follow when it succeeds."""
        if self._reservation is None:
            await self.reserve()
        try:
            return await attempt(asked)
        except WorkerFault as fault:
            self.settle(self._price_failure(fault.code))
            raise
        except BaseException:
            self.settle(self._estimate)
            raise

    def _price_failure(self, code: str) -> Usage:
        if code == RATE_LIMITED:
            return NO_USAGE
        return self._estimate if code == "timeout" else Usage(cost=self._price_call)

    def settle(self, used: Usage) -> None:
        """Count what the attempt has used."""
        if self._reservation is not None:
            self._reservation.settle(used)
            self._reservation = None

    def close(self) -> None:
        """Give back what was reserved for an attempt that was never made."""
        self.settle(NO_USAGE)


_CURRENT: ContextVar[Spending | None] = ContextVar("spending", default=None)


def charge_this_task_to(spending: Spending) -> None:
    """Charge the calls that this task makes from here on, and those of tasks that it starts, to `spending`."""
    _CURRENT.set(spending)


def current_spending() -> Spending | None:
    """What the calls of this task are charged to; None where nothing limits them."""
    return _CURRENT.get()


@contextmanager
def charge_calls_to(spending: Spending | None) -> Iterator[None]:
    """Charge the calls of the body, and of tasks that it starts, to `spending`."""
    token = _CURRENT.set(spending)
    try:
        yield
    finally:
        _CURRENT.reset(token)
