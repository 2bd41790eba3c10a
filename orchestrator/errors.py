"""The exceptions of this room. Each message says what to do next."""

from __future__ import annotations


class OrchestratorError(Exception):
    """An error in a request for an episode that a person can correct."""


class UnknownOrchestrator(OrchestratorError):
    """The name of an orchestrator does not resolve on this pool."""


class MisplacedModel(UnknownOrchestrator):
    """The name is that of a model which belongs elsewhere, or is no orchestrator yet."""


class InvalidQuery(OrchestratorError):
    """The query is empty or longer than an episode takes."""


class InvalidEdits(OrchestratorError):
    """Edits of a recorded round break rules; `problems` lists them as (place, message), where the place is a step's
    number, "answer", or "" for the whole round."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        self.problems = problems
        sentences = (f"step {where}: {what}" if where.isdigit() else what for where, what in problems)
        super().__init__("; ".join(sentences))


class DamagedTrace(OrchestratorError):
    """The events of a stored episode are out of order or incomplete."""


class EpisodeNotFound(OrchestratorError):
    """No episode with this id is stored."""


class TrackerRefused(OrchestratorError):
    """A tracker cannot be used: there is none like it, its package is missing, or its address is wrong."""
