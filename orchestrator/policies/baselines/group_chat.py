"""`group_chat`: the agents speak in turns, each sees all earlier replies, and a chair decides when it ends
(after AutoGen, arXiv 2308.08155).

One lap is one turn: every speaker once, then the chair, which answers or starts another lap. In the last lap that the
limits allow the chair has to answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Step, Turn
from orchestrator.policies.base import agent_step, read_limit, write_turn
from orchestrator.quotes import escape
from pool_registry.actions import as_text

MAX_LAPS = 3
SPEAK = (
    "You discuss this question with others; what was said so far is shown, if anything was. Correct what is wrong, add "
    "what is missing, and say in a few lines what you think the answer is.\n"
)
DECIDE = (
    "You chair a discussion of this question; what was said is shown. If the answer is clear, write it, alone. "
    "If it is not, write the one word CONTINUE, and everybody speaks again.\n"
)
CONCLUDE = "You chair a discussion of this question; what was said is shown. Write the final answer, alone.\n"
_CONTINUE = re.compile(r"\W*(?:CONTINUE\b|[Cc]ontinue\W*$)")


class GroupChatPolicy(Orchestrator):
    """`chair` speaks after the other agents; as a pool's only agent it just answers."""

    def __init__(self, agents: Sequence[str], chair: str) -> None:
        self.name = f"group_chat:{chair}"
        self._speakers = [agent for agent in agents if agent != chair]
        self._chair = chair

    async def turn(self, episode: Episode) -> Turn:
        lap = len(episode.rounds)
        if lap == 1:
            return self._lap(episode)
        verdict = list(episode.steps.values())[-1]
        observation = verdict.observation
        decision = as_text(observation.value).strip() if observation is not None and observation.ok else ""
        if decision and not _CONTINUE.match(decision):
            return write_turn([], escape(decision))
        if lap > self._laps(episode):
            return Turn(error=f"the chair, {self._chair}, has not given an answer", failed=True)
        return self._lap(episode)

    def _lap(self, episode: Episode) -> Turn:
        """A turn in which every agent speaks once and may see all earlier steps, of this lap and of those before."""
        first, query = episode.next_step_id, escape(episode.query)
        speakers = self._speakers[: read_limit(episode, "max_steps") - 1]
        steps = [_add_speech(first + place, agent, SPEAK + query) for place, agent in enumerate(speakers)]
        chair = first + len(speakers)
        if len(episode.rounds) < self._laps(episode):
            return write_turn([*steps, _add_speech(chair, self._chair, DECIDE + query)])
        return write_turn([*steps, _add_speech(chair, self._chair, CONCLUDE + query)], f"${chair}")

    def _laps(self, episode: Episode) -> int:
        """The number of laps that fit into this episode's limits."""
        if not self._speakers:
            return 1
        by_steps = read_limit(episode, "max_steps") // (len(self._speakers) + 1)
        return max(1, min(MAX_LAPS, read_limit(episode, "max_rounds"), by_steps))


def choose_chair(agents: Sequence[str]) -> str:
    """The default chair: the agent `chair`, the agent `verifier`, or the last one."""
    return next((name for name in ("chair", "verifier") if name in agents), agents[-1])


def _add_speech(step: int, agent: str, instruction: str) -> Step:
    return agent_step(step, agent, instruction, range(1, step))
