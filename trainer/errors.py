"""The exceptions of this room. Each message says what to do next.

TrainerError
    UnknownTask, UnusableTasks, UnknownReference, NotGraded
    InvalidRecipe
    TrainingFailed
    SpendCapReached
    JobNotFound, JobRefused
"""

from __future__ import annotations

from orchestrator.engine.events import VerdictPlace
from orchestrator.errors import OrchestratorError
from pool_registry.errors import PoolError, WorkerFault


class TrainerError(Exception):
    """An error that a person can fix in a task, a recipe, a job or an evaluation."""


class UnknownTask(TrainerError):
    """There is no suite, level, split or index like this."""


class UnusableTasks(TrainerError):
    """A file or data set of tasks cannot be read, or nothing in it is a task."""


class NotGraded(TrainerError):
    """Nothing is known of an answer: what grades it, at `place`, failed or could not be asked."""

    place: VerdictPlace = "verifier"


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
    """The evaluation that others are to be compared with does not exist."""


class SpendCapReached(TrainerError):
    """A job has spent what its recipe allows. Its results so far are kept, and it can be resumed."""


class JobNotFound(TrainerError):
    """There is no job with this id."""


class JobRefused(TrainerError):
    """A job is not in a state in which this can be done."""


# The roots of the rooms' errors that a person can do something about: shown as a sentence, never as a traceback.
MENDABLE = (PoolError, OrchestratorError, TrainerError, WorkerFault)
