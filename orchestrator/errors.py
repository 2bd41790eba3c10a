"""The exceptions of this room. Each message says what to do next."""

from __future__ import annotations


class OrchestratorError(Exception):
    """Anything a person can mend in how an episode was asked for."""


class UnknownOrchestrator(OrchestratorError):
    """The name of an orchestrator does not resolve on this pool."""


class InvalidQuery(OrchestratorError):
    """The query is empty or longer than an episode takes."""


class DamagedTrace(OrchestratorError):
    """The events of a stored episode do not follow each other."""


class EpisodeNotFound(OrchestratorError):
    """No episode with this id is stored."""
