"""`pipeline`: a planner, a solver that sees the plan, a verifier that sees both and answers.

Agents named planner, solver and verifier take these roles; a role without such an agent goes to the pool's agents in
order.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Turn
from orchestrator.policies.base import agent_step, only_turn, write_turn
from orchestrator.quotes import escape

PLAN = "Write a short plan for answering this question. Do not answer it yet.\n"
SOLVE = "Follow the plan and answer this question.\n"
VERIFY = "Check the solution against the plan, correct it if needed, and give the final answer alone.\n"


class PipelinePolicy(Orchestrator):
    name = "pipeline"

    def __init__(self, agents: Sequence[str]) -> None:
        self._planner, self._solver, self._verifier = (
            role if role in agents else agents[index % len(agents)]
            for index, role in enumerate(("planner", "solver", "verifier"))
        )

    async def turn(self, episode: Episode) -> Turn:
        query = escape(episode.query)
        steps = [
            agent_step(1, self._planner, PLAN + query),
            agent_step(2, self._solver, SOLVE + query, [1]),
            agent_step(3, self._verifier, VERIFY + query, [1, 2]),
        ]
        return only_turn(episode, write_turn(steps, "$3"))
