"""The exceptions of this room. Each message says what to do next."""

from __future__ import annotations


class TrainerError(Exception):
    """Anything a person can mend in how tasks, training or an evaluation was asked for."""


class UnknownTask(TrainerError):
    """There is no suite, level, split or index like this."""
