"""Practice tasks that a command of a page has started to make."""

from __future__ import annotations

import time

from trainer.tasks.practice.making import Making
from trainer.tasks.practice.stored import find_making

LONGEST_S = 60.0


def wait_for_making(pool: str) -> Making:
    """How it ended."""
    end = time.monotonic() + LONGEST_S
    while time.monotonic() < end:
        making = find_making(pool)
        if making is not None and making.state != "running":
            return making
        time.sleep(0.02)
    raise AssertionError(f"tasks for {pool} are still being made after {LONGEST_S} s")
