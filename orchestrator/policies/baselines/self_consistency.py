"""`self_consistency`: one agent is asked several times, and the answer that it gives most often is taken
(Wang et al., arXiv 2203.11171). What an orchestrator over several workers must beat at equal cost.

The agent's own temperature draws the replies: an agent at temperature 0 says the same thing each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from orchestrator.answers import write_answer_key
from orchestrator.engine.episode import Episode, StepRun
from orchestrator.engine.release import Orchestrator
from orchestrator.orchestrator_name import TurnOptions
from orchestrator.plan import Turn
from orchestrator.policies.base import ASK, agent_step, read_limit, read_reply, write_turn
from orchestrator.quotes import escape

SAMPLES = 5


class SelfConsistencyPolicy(Orchestrator):
    """Asks one agent `samples` times at once, as far as the limits of the run allow, and takes a vote."""

    def __init__(self, agent: str, samples: int = SAMPLES) -> None:
        self.name = f"self_consistency:{agent}{TurnOptions(samples=samples)}"
        self._agent = agent
        self._samples = samples

    async def turn(self, episode: Episode) -> Turn:
        """The samples, then the answer that most of them give; of equally many the one that was there first."""
        if episode.steps:
            return _vote([run for run in episode.steps.values() if read_reply(run)])
        query = ASK + escape(episode.query)
        if read_limit(episode, "max_rounds") == 1:  # there is no second round to vote in
            return write_turn([agent_step(1, self._agent, query)], "$1")
        samples = min(self._samples, read_limit(episode, "max_steps"))
        return write_turn([agent_step(place, self._agent, query) for place in range(1, samples + 1)])


def _vote(replies: Sequence[StepRun]) -> Turn:
    """Quote the answer as it was given first: the limits of a run may hide its text from here."""
    if not replies:
        return Turn(error="the agent has given no answer", failed=True)
    first: dict[str, StepRun] = {}
    for run in replies:
        first.setdefault(write_answer_key(read_reply(run)), run)
    counts = Counter(write_answer_key(read_reply(run)) for run in replies)
    return write_turn([], f"${first[counts.most_common(1)[0][0]].step.id}")
