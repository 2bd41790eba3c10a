"""`+whole_query`: every agent of a plan reads the whole query in place of the subtask that the plan wrote for it. Its
steps, workers and access lists stay: the difference is what the written subtasks are worth.
"""

from __future__ import annotations

from dataclasses import replace

from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Orchestrator
from orchestrator.orchestrator_name import TurnOptions
from orchestrator.plan import Step, Turn
from orchestrator.policies.options.wrapper import Wrapper
from orchestrator.quotes import escape
from pool_registry.calls.live_pool import LivePool


class WholeQueryPolicy(Wrapper):
    """An orchestrator whose agents are asked the query itself."""

    def __init__(self, inner: Orchestrator, pool: LivePool) -> None:
        super().__init__(inner, str(TurnOptions(whole_query=True)))
        self._pool = pool

    async def turn(self, episode: Episode) -> Turn:
        """Raises what the inner orchestrator raises."""
        turn = await self.inner.turn(episode)
        return replace(turn, steps=tuple(self._ask_query(step, episode.query) for step in turn.steps))

    def _ask_query(self, step: Step, query: str) -> Step:
        worker = self._pool.workers.get(step.worker)
        if worker is None or worker.role != "agent":
            return step
        return replace(step, arguments={**step.arguments, "instruction": escape(query)})
