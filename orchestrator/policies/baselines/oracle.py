"""`oracle`: replays the reference plan of a generated task. The ceiling of every table."""

from __future__ import annotations

from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Turn
from orchestrator.policies.base import only_turn, write_turn
from pool_registry.actions import as_text


class OraclePolicy(Orchestrator):
    name = "oracle"

    def __init__(self, reference: Turn) -> None:
        self._turn = write_turn(reference.steps, as_text(reference.answer))

    async def turn(self, episode: Episode) -> Turn:
        return only_turn(episode, self._turn)
