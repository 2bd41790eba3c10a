"""`router`: the agent that looks best for the query gets it alone; where it fails, the next one.

With `+who=SCORE` a row of choice/scores.py orders them by what is known of each, and the trace says how. Otherwise,
with MIN_TASKS recorded tasks (agent_track_record.py) an agent's score is its success on recorded queries like this
one, minus a little for being slow or expensive. Before that, rules: agents for planning, checking or chairing come
last; those whose description shares more words with the query come first, then the cheaper ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.choice.choose_worker import Chooser
from orchestrator.choice.scores import Candidate
from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Turn, WorkerChoice
from orchestrator.policies.base import agent_step, write_turn
from orchestrator.policies.baselines.cascade import reference_price
from orchestrator.quotes import escape
from orchestrator.retrieval.choose_workers import content_words
from pool_registry.calls.live_pool import LivePool
from pool_registry.language_models.completion import Draw

if TYPE_CHECKING:
    from orchestrator.traces.agent_track_record import TrackRecord

MIN_TASKS = 100
SLOW, EXPENSIVE = 0.05, 0.05  # what the slowest and the most expensive agent lose: enough to break ties only
HELPERS = ("planner", "verifier", "chair")


class RouterPolicy(Orchestrator):
    """`record` returns the track record, always the same one: episodes that end meanwhile do not change the choices.
    It may read the database, so it is called in a thread."""

    name = "router"

    def __init__(
        self, agents: Sequence[str], pool: LivePool, record: Callable[[], TrackRecord], draw: Draw | None = None
    ) -> None:
        self._agents = list(agents)
        self._pool = pool
        self._record = record
        self.draw = draw
        self._who = ""

    def choose_by(self, who: str, record: Callable[[], TrackRecord]) -> None:
        """Order the agents by this score of choice/scores.py."""
        self._who, self._record = who, record

    async def turn(self, episode: Episode) -> Turn:
        tried = len(episode.steps)
        if tried == len(self._agents):
            return Turn(error="none of the agents that the router can choose has given an answer", failed=True)
        agent, choice = (await asyncio.to_thread(self._choose, episode.query))[tried]
        step = episode.next_step_id
        return write_turn([replace(agent_step(step, agent, escape(episode.query)), choice=choice)], f"${step}")

    def _choose(self, query: str) -> Sequence[tuple[str, WorkerChoice | None]]:
        """The agents in the order in which they are asked, each with how it was chosen."""
        if not self._who:
            return [(agent, None) for agent in self.rank_agents(query)]
        record = self._record()
        candidates = [
            Candidate(agent, self._pool.workers[agent].spec.description, False, 0.0, tuple(record.outcomes(agent)))
            for agent in self._agents
        ]
        ordered = Chooser(self._who, record, self.draw, self._pool.pool.name).order(query, candidates)
        return [(candidate.worker, choice) for candidate, choice in ordered]

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
