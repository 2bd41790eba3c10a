"""HTTP details of one call: the SDK reports that a request failed, but not with which status."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from pool_registry.errors import WorkerFault


@dataclass(slots=True)
class Exchange:
    """Notes on the last request of one call. The SDK carries a caller's context to where its request is sent."""

    fault: WorkerFault | None = None
    session_lost: bool = False  # the server has no such session (any more): it did not look at the call


exchange: ContextVar[Exchange | None] = ContextVar("exchange", default=None)
