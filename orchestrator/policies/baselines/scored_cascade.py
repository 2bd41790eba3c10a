"""`cascade+who=SCORE`: as many agents are asked as it takes until an answer is likely enough to be right.

One that is likely to be right answers alone; else the few that would make an answer sure if they agreed are asked at
once, and further ones while they can still make it sure (choice/weigh_answers.py). The answer that is likeliest by the
record of those who gave it is taken, with its chance. Where nobody is likely to be right, nobody is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from orchestrator.answers import write_answer_key
from orchestrator.choice.choose_worker import describe_chance
from orchestrator.choice.hopeless import are_hopeless
from orchestrator.choice.outcomes import Record
from orchestrator.choice.scores import Candidate, find_score
from orchestrator.choice.weigh_answers import SURE, Reply, choose_next, weigh_answers
from orchestrator.engine.episode import Episode, StepRun
from orchestrator.plan import AnswerConfidence, Turn, WorkerChoice
from orchestrator.policies.base import ASK, agent_step, read_limit, read_reply, write_turn
from orchestrator.quotes import escape
from orchestrator.reader.refusal import refuse
from pool_registry.calls.live_pool import LivePool

MAX_ANSWER_CHARS = 80  # of an answer in the record


class ScoredCascade:
    """The turns of a cascade by a score. `record` may read the database, so it is called in a thread."""

    def __init__(
        self,
        agents: Sequence[str],
        prices: Mapping[str, float],
        pool: LivePool,
        score: str,
        record: Callable[[], Record],
    ) -> None:
        self._agents, self._prices, self._pool = agents, prices, pool
        self._score, self._record = score, record
        self._by = score  # what a trace calls it
        self._choices: dict[str, WorkerChoice] = {}  # of this episode's query

    async def turn(self, episode: Episode) -> Turn:
        """The next agents to ask, or the answer."""
        if not self._choices:
            self._choices = await asyncio.to_thread(self._judge_agents, episode.query)
        if refusal := self._refuse():
            return write_turn([], refusal)
        replies = [run for run in episode.steps.values() if read_reply(run)]
        agents = self._choose_agents({run.step.worker for run in episode.steps.values()}, replies)
        last = len(episode.rounds) >= read_limit(episode, "max_rounds")
        if replies and (last or not agents):
            return self._answer(replies)
        if not agents:
            return Turn(error="no agent of the cascade has given an answer", failed=True)
        return self._ask(agents[:1] if last else agents, episode, alone=not replies)

    def _judge_agents(self, query: str) -> dict[str, WorkerChoice]:
        record = self._record()
        candidates = [
            Candidate(agent, self._pool.workers[agent].spec.description, False, 0.0, tuple(record.outcomes(agent)))
            for agent in self._agents
        ]
        self._by, score = find_score(self._score, self._pool.pool.name)
        chances = score(query, candidates)
        return {
            candidate.worker: describe_chance(candidate, chance, 1.0, self._by, len(candidates))
            for candidate, chance in zip(candidates, chances, strict=True)
        }

    def _refuse(self) -> str:
        if not are_hopeless(self._choices.values()):
            return ""
        best = max(choice.success for choice in self._choices.values())
        return refuse(f"by its record none of {len(self._choices)} agents is more than {best:.2f} likely to be right")

    def _choose_agents(self, busy: set[str], replies: Sequence[StepRun]) -> tuple[str, ...]:
        """The agents to ask next, none of which is `busy` with this question or has answered it."""
        chances = {agent: choice.success for agent, choice in self._choices.items() if agent not in busy}
        weighed = self._weigh(replies)
        if not chances or (weighed and next(iter(weighed.values())) >= SURE):
            return ()
        return choose_next(chances, self._prices, self._read_chances(replies))

    def _ask(self, agents: Sequence[str], episode: Episode, alone: bool) -> Turn:
        """Ask one agent for the answer itself where nobody else is needed, and several for answers to compare."""
        first, query = episode.next_step_id, escape(episode.query)
        alone = alone and len(agents) == 1
        steps = [
            replace(agent_step(first + place, agent, query if alone else ASK + query), choice=self._choices[agent])
            for place, agent in enumerate(agents)
        ]
        if not alone:
            return write_turn(steps)
        chance = self._choices[agents[0]].success
        return replace(write_turn(steps, f"${first}"), confidence=AnswerConfidence(chance, self._by, 1, {}))

    def _answer(self, replies: Sequence[StepRun]) -> Turn:
        """Quote the likeliest answer as its first agent gave it: the limits of a run may hide the text from here."""
        weighed = self._weigh(replies)
        key, chance = next(iter(weighed.items()))
        first = {write_answer_key(read_reply(run)): run for run in reversed(replies)}
        answers = {read_reply(first[other])[:MAX_ANSWER_CHARS]: round(weighed[other], 4) for other in reversed(weighed)}
        likeliest_first = dict(reversed(answers.items()))
        confidence = AnswerConfidence(round(chance, 4), self._by, len(replies), likeliest_first)
        return replace(write_turn([], f"${first[key].step.id}"), confidence=confidence)

    def _weigh(self, replies: Sequence[StepRun]) -> dict[str, float]:
        return weigh_answers(self._read_chances(replies))

    def _read_chances(self, replies: Sequence[StepRun]) -> list[Reply]:
        return [(write_answer_key(read_reply(run)), self._choices[run.step.worker].success) for run in replies]
