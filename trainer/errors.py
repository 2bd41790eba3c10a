"""The exceptions of this room. Each message says what to do next."""

from __future__ import annotations


class TrainerError(Exception):
    """Anything a person can mend in how tasks, training or an evaluation was asked for."""


class UnknownTask(TrainerError):
    """There is no suite, level, split or index like this."""


class UnusableTasks(TrainerError):
    """A file or data set of tasks cannot be read, or nothing in it is a task."""


class InvalidRecipe(TrainerError):
    """A recipe breaks a rule. `problems` are (key, plain sentence)."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        self.problems = problems
        super().__init__(
            "the recipe cannot be used: " + "; ".join(f"{key}: {what}" if key else what for key, what in problems)
        )


class TrainingFailed(TrainerError):
    """Training cannot go on. `code` is machine-readable; the message names the next action."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class UnknownReference(TrainerError):
    """There is no evaluation like the one that is to be compared with."""


class SpendCapReached(TrainerError):
    """A job has spent what its recipe allows. What it has measured so far stays, and it can go on."""


class JobNotFound(TrainerError):
    """There is no job with this id."""


class JobRefused(TrainerError):
    """A job is not in a state in which this can be done."""
