"""`router`: the agent that looks best for the query gets it alone; where it fails, the next one.

With MIN_TASKS recorded tasks (agent_track_record.py) an agent's score is its success on recorded queries like this
one, minus a little for being slow or expensive. Before that, rules: agents for planning, checking or chairing come
last; those whose description shares more words with the query come first, then the cheaper ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Turn, escape
from orchestrator.policies.base import agent_step, write_turn
from orchestrator.policies.cascade import reference_price
from orchestrator.retrieval.choose_workers import content_words
from pool_registry.calls.live_pool import LivePool

if TYPE_CHECKING:
    from orchestrator.traces.agent_track_record import TrackRecord

MIN_TASKS = 100
SLOW, EXPENSIVE = 0.05, 0.05  # what the slowest and the most expensive agent lose: enough to break ties only
HELPERS = ("planner", "verifier", "chair")


class RouterPolicy(Orchestrator):
    """`record` returns the track record, always the same one: episodes that end meanwhile do not change the choices.
    It may read the database, so it is called in a thread."""

    name = "router"

    def __init__(self, agents: Sequence[str], pool: LivePool, record: Callable[[], TrackRecord]) -> None:
        self._agents = list(agents)
        self._pool = pool
        self._record = record

    async def turn(self, episode: Episode) -> Turn:
        tried = len(episode.steps)
        if tried == len(self._agents):
            return Turn(error="none of the agents that the router can choose has given an answer", failed=True)
        ranked = await asyncio.to_thread(self.rank_agents, episode.query)
        step, agent = episode.next_step_id, ranked[tried]
        return write_turn([agent_step(step, agent, escape(episode.query))], f"${step}")

    def rank_agents(self, query: str) -> list[str]:
        """The agents by score, the best first; equal ones in the pool's order. Blocks. Raises StorageError."""
        record = self._record()
        if record.tasks(self._agents) < MIN_TASKS:
            return sorted(self._agents, key=lambda agent: self._by_rule(agent, query))
        slow, expensive = self._shares(record.wall_s), self._shares(record.cost)

        def score(agent: str) -> float:
            return record.success(agent, query) - SLOW * slow[agent] - EXPENSIVE * expensive[agent]

        return sorted(self._agents, key=score, reverse=True)

    def _by_rule(self, agent: str, query: str) -> tuple[bool, int, float]:
        described = set(content_words(self._pool.workers[agent].spec.description))
        return agent in HELPERS, -len(described.intersection(content_words(query))), reference_price(agent, self._pool)

    def _shares(self, mean: Callable[[str], float]) -> dict[str, float]:
        """Return each agent's mean as a share of the highest one."""
        means = {agent: mean(agent) for agent in self._agents}
        highest = max(means.values())
        return {agent: value / highest if highest > 0 else 0.0 for agent, value in means.items()}
