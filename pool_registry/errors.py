"""The exceptions of this room. Each message says what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class PoolError(Exception):
    """A problem in a pool, its storage or its workers that a person can fix."""


class PoolNotFound(PoolError):
    """No pool, or no version of it, has this name."""


class InvalidPool(PoolError):
    """A pool or worker definition breaks a rule; `problems` lists every one as (field, message)."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{where}: {what}" if where else what for where, what in problems))


class InvalidRunLimits(PoolError):
    """The limits that a caller set for one run cannot be kept; `field` says which of them."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class StorageError(PoolError):
    """The data folder or the database cannot be used as it is."""


class UnwritablePath(PoolError):
    """A path that a person chose cannot be written; the message says why, and what to choose instead."""


class DatabaseBusy(StorageError):
    """Another program holds the database for longer than anybody waits; nothing was saved."""


class SecretNotFound(PoolError):
    """A secret reference does not resolve on this machine."""


class CannotFork(PoolError):
    """A what-if cannot run on a copy of what its workers may change; the message says of what, and why."""


class WorkerFault(Exception):
    """Raised inside a worker: the call becomes EXEC_ERR with this code and message.

    `retryable` marks faults that may pass by themselves (429, 5xx, connection); `retry_after_s` is the
    wait that the peer asked for; `episode` is the episode that a recursive worker ran without an answer.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after_s: float | None = None,
        episode: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.episode = episode


class BadCall(WorkerFault):
    """Raised inside a worker that cannot use the arguments: the call becomes PARSE_ERR."""

    def __init__(self, message: str, code: str = "bad_arguments") -> None:
        super().__init__(code, message)


@contextmanager
def writing_to(out: Path, option: str = "--out") -> Iterator[None]:
    """Raise UnwritablePath in the place of what the file system says of a path that a person chose. Other libraries'
    errors of the same class, which have no such words, pass."""
    try:
        yield
    except OSError as error:
        if error.strerror is None:
            raise
        raise UnwritablePath(
            f"{out} cannot be written ({error.strerror}); choose another path with {option}"
        ) from error
