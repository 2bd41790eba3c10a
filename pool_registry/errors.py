"""The exceptions of this room. Each message says what to do next."""

from __future__ import annotations


class PoolError(Exception):
    """A problem in a pool, its storage or its workers that a person can fix."""


class PoolNotFound(PoolError):
    """No pool, or no version of it, has this name."""


class InvalidPool(PoolError):
    """A pool or worker definition breaks a rule; `problems` lists every one as (field, message)."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{where}: {what}" if where else what for where, what in problems))


class StorageError(PoolError):
    """The data folder or the database cannot be used as it is."""


class SecretNotFound(PoolError):
    """A secret reference does not resolve on this machine."""


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
