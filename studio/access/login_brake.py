"""The brake on guessing: each wrong password makes the next try of the same name from the same address slower.

Nobody is locked out: the right password opens after its wait, and from another address at once. Tries of one pair wait
in one line, so that sending many at once brings nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field

FREE_TRIES = 3
FIRST_WAIT_S = 0.5
MAX_WAIT_S = 20.0
MAX_IN_LINE = 5
FORGET_S = 900.0

Pair = tuple[str, str]  # name and address


@dataclass(slots=True)
class Record:
    """What is known about a pair: its wrong passwords, the time of the last one, and the tries under way."""

    failures: int = 0
    at: float = 0.0
    waiting: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def note(self, is_right: bool) -> None:
        """Note how a try ended."""
        self.failures = 0 if is_right else self.failures + 1
        self.at = time.monotonic()


class LoginBrake:
    """Wrong passwords by name and address. At most `max_pairs` are kept, the newest."""

    def __init__(self, max_pairs: int = 10_000) -> None:
        self._max_pairs = max_pairs
        self._records: OrderedDict[Pair, Record] = OrderedDict()

    def open_record(self, name: str, address: str) -> Record:
        """The record of a pair, as the newest one."""
        pair = (name[:64], address)
        record = self._records.setdefault(pair, Record())
        self._records.move_to_end(pair)
        while len(self._records) > self._max_pairs:
            self._records.popitem(last=False)
        if time.monotonic() - record.at >= FORGET_S:
            record.failures = 0
        return record


def compute_wait_s(failures: int) -> float:
    """The seconds that a try waits after so many wrong passwords: none at first, then twice as long each time."""
    if failures < FREE_TRIES:
        return 0.0
    return min(MAX_WAIT_S, FIRST_WAIT_S * 2.0 ** min(failures - FREE_TRIES, 16))
