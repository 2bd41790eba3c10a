"""The circuit breaker: a worker that fails repeatedly is not called for a while, then tried once.

One per worker spec and process, shared by every open pool of the process: an edited worker is another
spec and starts afresh. Closed -> (5 failures in a row) -> open for 30 s -> half-open: one call tries it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal
from weakref import WeakValueDictionary

from pool_registry.worker import WorkerSpec

FAILURES = 5
OPEN_S = 30.0


class Admission(StrEnum):
    """Whether a call may proceed, proceeds as the trial of an open circuit, or ends at once."""

    YES = "yes"
    TRIAL = "trial"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Circuit:
    """The state of a breaker as a page shows it; `seconds` is how long it stays open, 0 otherwise."""

    state: Literal["closed", "open", "half-open"] = "closed"
    failures: int = 0
    seconds: float = 0.0


class Breaker:
    """Counts failures in a row. `admit` before a call, then exactly one of `settle` and `abandon`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # pools of one process may live on several loops
        self._failures = 0
        self._open_until: float | None = None
        self._trying = False

    def admit(self) -> Admission:
        """Decide whether a call may start now."""
        if self._open_until is None:
            return Admission.YES
        with self._lock:
            if self._open_until is None:
                return Admission.YES
            if self._trying or self._clock() < self._open_until:
                return Admission.NO
            self._trying = True
            return Admission.TRIAL

    def settle(self, admission: Admission, failed: bool) -> None:
        """Record how an admitted call ended."""
        if not failed and not self._failures:
            return
        with self._lock:
            if not failed:
                self._failures, self._open_until, self._trying = 0, None, False
            elif self._open_until is None or admission is Admission.TRIAL:  # late failures prolong nothing
                self._failures += 1
                if self._failures >= FAILURES:
                    self._open_until, self._trying = self._clock() + OPEN_S, False

    def abandon(self, admission: Admission) -> None:
        """Record that an admitted call was cancelled: it counts as neither, and the next call may try."""
        if admission is Admission.TRIAL:
            with self._lock:
                self._trying = False

    @property
    def circuit(self) -> Circuit:
        with self._lock:
            if self._open_until is None:
                return Circuit("closed", self._failures)
            left = self._open_until - self._clock()
            return Circuit("open", self._failures, left) if left > 0 else Circuit("half-open", self._failures)

    def say_when_tried(self) -> str:
        """Tell a model why an open circuit refuses its call, and what it can do."""
        left = self.circuit.seconds
        when = f"is tried again in {left:.0f} s" if left > 0 else "is being tried again right now"
        return f"failed {FAILURES} times in a row and {when}; use another worker, or try later"


_breakers: WeakValueDictionary[str, Breaker] = WeakValueDictionary()
_making = threading.Lock()


def breaker_of(spec: WorkerSpec) -> Breaker:
    """Return the breaker of a worker in this process; it lives as long as a pool with the worker is open."""
    with _making:
        return _breakers.setdefault(spec.model_dump_json(), Breaker())


def circuit_of(spec: WorkerSpec) -> Circuit:
    """Return the state of a worker's breaker; closed when no open pool has the worker."""
    breaker = _breakers.get(spec.model_dump_json())
    return Circuit() if breaker is None else breaker.circuit
