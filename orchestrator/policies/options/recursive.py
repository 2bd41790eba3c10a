"""Recursion on one's own answer: the first answer of an episode is held back as a draft, and the orchestrator, which is
shown what its plan has given, improves it or keeps it (Conductor, arXiv 2512.04388: a recursive call).
"""

from __future__ import annotations

from dataclasses import replace

from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import Orchestrator
from orchestrator.orchestrator_name import TurnOptions
from orchestrator.plan import Turn
from orchestrator.policies.options.wrapper import Wrapper


class RecursivePolicy(Wrapper):
    """An orchestrator that is asked once more after its first answer, where the limits leave it a round."""

    def __init__(self, inner: Orchestrator) -> None:
        super().__init__(inner, str(TurnOptions(recursive=True)))

    async def turn(self, episode: Episode) -> Turn:
        """Raises what the inner orchestrator raises."""
        return hold_answer(await self.inner.turn(episode), episode)


def hold_answer(turn: Turn, episode: Episode) -> Turn:
    """The turn with its answer as a draft, if it is the episode's first one and another round is allowed."""
    last = episode.started is not None and len(episode.rounds) >= int(str(episode.started.limits["max_rounds"]))
    if last or turn.error is not None or not turn.has_answer or find_draft(episode) is not None:
        return turn
    return replace(turn, answer=None, draft=turn.answer)


def find_draft(episode: Episode) -> int | None:
    """The number of the round whose answer was held back; None where none was."""
    drafted = (done.number for done in episode.rounds if done.turn is not None and done.turn.draft is not None)
    return next(drafted, None)
