"""`direct`: one agent gets the query and its reply is the answer. The floor that orchestration must beat."""

from __future__ import annotations

from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Turn
from orchestrator.policies.base import agent_step, only_turn, write_turn
from orchestrator.quotes import escape


class DirectPolicy(Orchestrator):
    def __init__(self, agent: str) -> None:
        self.name = f"direct:{agent}"
        self._agent = agent

    async def turn(self, episode: Episode) -> Turn:
        plan = write_turn([agent_step(1, self._agent, escape(episode.query))], "$1")
        return only_turn(episode, plan)
