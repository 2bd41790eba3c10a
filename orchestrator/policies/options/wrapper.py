"""The base of what an option makes of an orchestrator."""

from __future__ import annotations

from orchestrator.engine.release import Orchestrator


class Wrapper(Orchestrator):
    """An orchestrator around `inner`, whose name is that one's with `option` behind it."""

    def __init__(self, inner: Orchestrator, option: str) -> None:
        self.inner = inner
        self.name = f"{inner.name}{option}"
        self.gives_up = inner.gives_up


def unwrap(orchestrator: Orchestrator) -> Orchestrator:
    """The orchestrator below all options."""
    while isinstance(orchestrator, Wrapper):
        orchestrator = orchestrator.inner
    return orchestrator
