"""How many trials a test makes, and how many it has made: what `python -m tests.trust` sets and reads."""

from __future__ import annotations

import os
from dataclasses import dataclass

VARIABLE = "PODIUM_TRIALS"


@dataclass(slots=True)
class Tally:
    """The trials of the running test, and how many of them failed."""

    trials: int = 0
    failures: int = 0


TALLY = Tally()


def choose_trials(usual: int) -> int:
    """How many trials a test makes: its usual number, or the one that `python -m tests.trust` asks for."""
    return int(os.environ.get(VARIABLE) or usual)


def count_trials(trials: int = 1, failures: int = 0) -> None:
    """Count trials of the running test. A test that counts none is one trial."""
    TALLY.trials += trials
    TALLY.failures += failures
