"""`model`: a language model of the pool writes the turns, in any dialect."""

from __future__ import annotations

from orchestrator.dialects.base import Dialect
from orchestrator.episode import Episode
from orchestrator.plan import Turn
from orchestrator.prompt import conversation
from pool_registry.live import LivePool

TURN_TOKENS = 512  # a worker's own limit is made for its answers, which may be much shorter than a plan


class ModelPolicy:
    """`pool.workers[agent]` is the model; it is asked directly, not as a step."""

    def __init__(self, pool: LivePool, agent: str, dialect: Dialect) -> None:
        self.name = f"model:{agent}:{dialect.name}"
        self._pool = pool
        self._model = pool.workers[agent]
        self._dialect = dialect

    async def turn(self, episode: Episode) -> Turn:
        """Raises WorkerFault when the model cannot be asked; the episode then ends as orchestrator_failed."""
        max_rounds = self._pool.pool.limits.max_rounds
        messages = conversation(episode, self._pool, self._dialect, max_rounds)
        completion = await self._model.complete(messages, self._dialect.tools(self._pool), TURN_TOKENS)
        turn = self._dialect.parse(completion.text, episode.next_step_id, list(self._pool.workers))
        return Turn(
            turn.steps,
            turn.answer,
            turn.error,
            turn.text,
            prompt=completion.prompt,
            usage=completion.usage,
        )
