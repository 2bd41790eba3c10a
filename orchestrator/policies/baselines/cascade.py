"""`cascade`: the cheapest agent answers first; a reply that fails the check goes to the next one
(after FrugalGPT, arXiv 2305.05176).

The check: the call went well, the reply is not empty, and the agent says that it is at least CONFIDENT sure. A reply
that says nothing about that is not trusted. The last agent is not checked. With `+who=SCORE` no agent is asked how sure
it is: the record of each says that (scored_cascade.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.choice.outcomes import Record
from orchestrator.engine.episode import Episode, StepRun
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Turn
from orchestrator.policies.base import agent_step, read_limit, write_turn
from orchestrator.policies.baselines.scored_cascade import ScoredCascade
from orchestrator.quotes import escape
from pool_registry.actions import as_text
from pool_registry.calls.live_pool import LivePool

CONFIDENT = 70.0  # per cent
ASK = (
    "Answer this question. Write the answer alone, and below it the line 'Confidence: N', where N says from 0 to 100 "
    "how sure you are.\n"
)
_STATED = re.compile(r"[^\w\n]*confidence[^\w\n.]{0,8}([0-9]{1,3}(?:\.[0-9]{1,6})?)\b[^\w\n]*(?:100\b)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class JudgedReply:
    """An agent's reply without its last line, and how sure it says it is, in per cent (0 where it does not say)."""

    text: str
    confidence: float

    @property
    def trusted(self) -> bool:
        return bool(self.text) and self.confidence >= CONFIDENT


class CascadePolicy(Orchestrator):
    """Where the limits allow fewer rounds than there are agents, the last one
    stays and those before it are left out."""

    name = "cascade"

    def __init__(self, pool: LivePool, agents: Sequence[str]) -> None:
        self._pool = pool
        self._agents = sort_by_price(agents, pool)
        self._scored: ScoredCascade | None = None

    def choose_by(self, who: str, record: Callable[[], Record]) -> None:
        """Go by this score of choice/scores.py."""
        prices = {agent: reference_price(agent, self._pool) for agent in self._agents}
        self._scored = ScoredCascade(self._agents, prices, self._pool, who, record)

    async def turn(self, episode: Episode) -> Turn:
        if self._scored is not None:
            return await self._scored.turn(episode)
        rounds = read_limit(episode, "max_rounds")
        agents = [*self._agents[: min(rounds, len(self._agents)) - 1], self._agents[-1]]
        runs = list(episode.steps.values())
        replies = [judge_reply(run) for run in runs]
        if replies and replies[-1].trusted:
            return write_turn([], escape(replies[-1].text))
        if len(runs) < len(agents):
            return self._ask(agents[len(runs)], episode, last=len(runs) == len(agents) - 1)
        best = max(replies, key=lambda reply: (bool(reply.text), reply.confidence))
        if best.text:
            return write_turn([], escape(best.text))
        return Turn(error="no agent of the cascade has given an answer", failed=True)

    def _ask(self, agent: str, episode: Episode, last: bool) -> Turn:
        step, query = episode.next_step_id, escape(episode.query)
        if last:
            return write_turn([agent_step(step, agent, query)], f"${step}")
        return write_turn([agent_step(step, agent, ASK + query)])


def judge_reply(run: StepRun) -> JudgedReply:
    """The text and the stated confidence of a step's reply."""
    if run.observation is None or not run.observation.ok:
        return JudgedReply("", 0.0)
    text = as_text(run.observation.value)
    stated = None
    for stated in _STATED.finditer(text):  # noqa: B007  the last one counts
        pass
    if stated is None:
        return JudgedReply(text.strip(), 0.0)
    return JudgedReply(text[: stated.start()].strip(), parse_percentage(stated[1]))


def parse_percentage(number: str) -> float:
    """A confidence in per cent, at most 100: "85" and "0.85" are both 85."""
    value = float(number)
    return min(100.0, 100 * value if "." in number and value <= 1 else value)


def sort_by_price(agents: Sequence[str], pool: LivePool) -> list[str]:
    """The agents by price, the cheapest first; equal ones in the pool's order."""
    return sorted(agents, key=lambda name: reference_price(name, pool))


def reference_price(agent: str, pool: LivePool) -> float:
    """The price in US dollars of a call with a thousand tokens in and a thousand out."""
    spec = pool.workers[agent].spec
    return (spec.price_in + spec.price_out) / 1000 + spec.price_call
