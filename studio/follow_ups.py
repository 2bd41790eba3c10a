"""Follow-up questions of recorded runs: whether a run can be continued, and the question that a follow-up means.

A follow-up is a run of its own, of a question that stands alone: orchestrators, lessons and tasks read nothing else.
Nothing of the earlier runs is shown to it but what that question quotes, which a person sees above its graph.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from orchestrator.engine.budget import Budget
from orchestrator.engine.episode import Episode
from orchestrator.engine.episode_loop import check_query
from orchestrator.engine.events import SERVED, EarlierRun, FollowUp
from orchestrator.errors import OrchestratorError
from orchestrator.follow_up.ask_agent import ask_agent
from orchestrator.follow_up.readings import Understanding, list_readings
from orchestrator.traces.store import Store
from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.effect_free_pool import list_refused_workers
from pool_registry.calls.live_pool import LivePool, list_sources
from pool_registry.calls.spending import charge_calls_to
from pool_registry.text import one_line, shorten
from pool_registry.worker import Visible

MAX_TEXT_CHARS = 2000
MAX_BEFORE = 20  # earlier runs that a thread keeps, the latest
MAX_ANSWER_CHARS = 2000
MAX_VALUE_CHARS = 10_000
WAYS_ON = {
    "running": "this run is still under way; follow up on it when it has ended",
    "waiting": "this run's plan waits for approval; decide on that first",
    "interrupted": "this run was interrupted before it had an answer; run it again",
}


class NotContinued(OrchestratorError):
    """A run that cannot be continued, or a follow-up that means no one question."""


@dataclass(frozen=True, slots=True)
class ReadyFollowUp:
    """A question to run, and what it goes on with; `is_whole`: it was typed as it is, and needs nothing before it."""

    query: str
    follow_up: FollowUp
    is_whole: bool = False


def load_origin(store: Store, episode_id: str) -> Episode:
    """Load a run that can be continued. Raises EpisodeNotFound, DamagedTrace, and NotContinued with what to do."""
    row = store.traces.row(episode_id)
    if row.state in WAYS_ON:
        raise NotContinued(WAYS_ON[row.state])
    if row.depth:
        raise NotContinued("this run served a step of another one; follow up on that one")
    if row.what_if_of is not None:
        raise NotContinued("a what-if has no orchestrator that could plan more; follow up on the run that it varies")
    if row.source == SERVED:
        raise NotContinued("this run answered a client of a served model, who goes on there; run its question yourself")
    return store.traces.episode(episode_id)


async def read_follow_up(
    origin: Episode, text: str, pool: LivePool, agents: Iterable[str] = (), question: str = ""
) -> ReadyFollowUp | Understanding:
    """The one question that a follow-up means, or what a person has to choose from or to mend. `question` is what they
    chose or wrote in full; else, where no rule reads it, the first of `agents` does that this run may call.

    A question that holds a part of an earlier answer is left to a person where a worker may have effects: whoever wrote
    that answer has not been told what to do by them.

    Raises InvalidQuery and NotContinued.
    """
    text = one_line(text)
    check_query(question or text)
    if max(len(text), len(question)) > MAX_TEXT_CHARS:
        raise NotContinued(f"a follow-up has at most {MAX_TEXT_CHARS:,} characters; ask it as a question of its own")
    before = list_before(origin)
    pool = pool.limit(origin.run_limits)
    understanding = await asyncio.to_thread(list_readings, origin, text, before, pool.workers)
    if question:
        return _take_question(question, text, before, understanding, hides_outputs(origin))
    if not understanding.readings and not hides_outputs(origin):
        understanding = await _ask_agents(understanding, text, before, pool, agents)
    if any(reading.quotes for reading in understanding.readings) and hides_outputs(origin):
        raise NotContinued(
            "the run before limits who may see what its workers return, and this question would show its answer to the "
            "orchestrator; ask it without that answer"
        )
    if not understanding.readings:
        return replace(understanding, problem=f"{understanding.problem}; write the question in full")
    reading = understanding.readings[0]
    if len(understanding.readings) > 1 or (reading.quotes and list_refused_workers(pool)):
        return understanding
    check_query(reading.question)
    by: Literal["rule", "agent"] = "agent" if understanding.agent else "rule"
    follow_up = FollowUp(text, before, by, reading.quotes, understanding.usage, understanding.agent)
    return ReadyFollowUp(reading.question, follow_up, reading.is_whole)


def _take_question(
    question: str, text: str, before: tuple[EarlierRun, ...], understanding: Understanding, hides: bool
) -> ReadyFollowUp:
    """What a person chose among the readings, or wrote themselves."""
    chosen = next((reading for reading in understanding.readings if reading.question == question), None)
    if chosen is None:
        return ReadyFollowUp(question, FollowUp(text, before, "person"))
    if chosen.quotes and hides:
        raise NotContinued("this question would show an answer that the run before hides; ask it without that answer")
    return ReadyFollowUp(question, FollowUp(text, before, "rule", chosen.quotes))


async def _ask_agents(
    understanding: Understanding, text: str, before: Sequence[EarlierRun], pool: LivePool, agents: Iterable[str]
) -> Understanding:
    """What the first agent that is there reads, within what a run on this pool may spend."""
    worker = next((pool.workers[name] for name in agents if name in pool.workers), None)
    if worker is None:
        return understanding
    budget = Budget(pool.pool.limits, pool.run_limits.max_cost)
    with charge_calls_to(budget.open_spending()):
        reply = await ask_agent(worker, text, before)
    problem = f"{understanding.problem}, and {reply.problem}" if reply.problem else ""
    return replace(reply, problem=problem, usage=budget.usage)


def list_before(origin: Episode) -> tuple[EarlierRun, ...]:
    """The runs of a thread, up to one that is continued."""
    earlier = origin.started.follow_up.before if origin.started and origin.started.follow_up else ()
    answer = "" if origin.shown_answer is None else shorten(as_text(origin.shown_answer), MAX_ANSWER_CHARS)
    return (*earlier, EarlierRun(origin.id, origin.query, answer, _keep_value(origin.answer)))[-MAX_BEFORE:]


def _keep_value(value: JsonValue) -> JsonValue:
    return value if value is not None and len(as_text(value)) <= MAX_VALUE_CHARS else None


def hides_outputs(origin: Episode) -> bool:
    """Whether a run, or one before it, shows outputs that its answer may be made of to some workers alone. The limits
    of a thread's first run hold for all; its steps, by number, only there."""
    outputs = [Visible(k, origin.steps[k].step.worker, seen) for k, seen in origin.observations().items()]
    limits = origin.run_limits
    return limits.find_readers(list_sources(outputs)) is not None or any(key.startswith("$") for key in limits.seen_by)
