"""`fan_out`: every agent answers the query on its own, in parallel; one of them aggregates."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Turn
from orchestrator.policies.base import agent_step, only_turn, write_turn
from orchestrator.quotes import escape

AGGREGATE = "Several workers answered this question. Compare their answers and give the best one, alone.\n"


class FanOutPolicy(Orchestrator):
    name = "fan_out"

    def __init__(self, agents: Sequence[str], aggregator: str) -> None:
        self._agents = list(agents)
        self._aggregator = aggregator

    async def turn(self, episode: Episode) -> Turn:
        query = escape(episode.query)
        attempts = [agent_step(number, agent, query) for number, agent in enumerate(self._agents, start=1)]
        last = len(attempts) + 1
        verdict = agent_step(last, self._aggregator, AGGREGATE + query, range(1, last))
        return only_turn(episode, write_turn([*attempts, verdict], f"${last}"))
