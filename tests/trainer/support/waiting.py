"""Waits for what other processes and threads do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(what: Callable[[], T], seconds: float = 120.0, every: float = 0.02) -> T:
    """Wait for `what()` to be true and return it."""
    ends = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < ends, f"waited {seconds} s in vain"
        time.sleep(every)
    return value
