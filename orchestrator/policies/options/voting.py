"""Execution-guided choice: several plans are sampled for a turn and tried, and the answer that most of them agree on
decides which one is taken.

Tried are plans whose steps all go to workers without effects (`LiveWorker.has_effects`), through a cache of
observations, so that an equal call of most kinds is made once. A plan that cannot be read, or whose steps fail, is
dropped. A plan with another step (an agent, a tool that may change something) is not run: it votes as it is written.
The first plan is greedy; it wins ties, and stands where no other does.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from orchestrator.answers import write_answer_key
from orchestrator.engine.budget import Budget
from orchestrator.engine.episode import Episode
from orchestrator.engine.executor import Recorder, RoundRun
from orchestrator.engine.release import Orchestrator
from orchestrator.orchestrator_name import TurnOptions
from orchestrator.out_of_depth.gauge import DepthGauge
from orchestrator.plan import Turn, Vote, check_turn
from orchestrator.policies.options.wrapper import Wrapper
from orchestrator.quotes import explain_missing_part, references, substitute
from orchestrator.reader.refusal import REFUSAL, is_refusal
from pool_registry.actions import NO_USAGE, JsonValue, Observation, Usage, as_text
from pool_registry.calls.caching_pool import CachingPool
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.language_models.completion import Draw

TEMPERATURE = 0.7
MAX_SEEDS = 1000  # of one query
MAX_ANSWER_CHARS = 80  # of an answer in the record


@runtime_checkable
class PlanSampler(Orchestrator, Protocol):
    """An orchestrator whose turns can be drawn: a language model. `gauge` says whether a query is like those that it
    learnt."""

    draw: Draw | None
    gauge: DepthGauge | None = None

    async def draw_turn(self, episode: Episode, draw: Draw | None) -> Turn: ...


@dataclass(frozen=True, slots=True)
class TriedTurn:
    """A sampled turn with what came of it: `key` is equal for turns that agree, None for one that is dropped;
    `answer` is how the record names it."""

    turn: Turn
    key: str | None
    answer: str = ""
    usage: Usage = NO_USAGE
    ran: bool = False


class VotingPolicy(Wrapper):
    """Takes the turn of `sampler` that wins a vote among `samples` drawn ones."""

    def __init__(self, sampler: PlanSampler, pool: LivePool, samples: int) -> None:
        super().__init__(sampler, str(TurnOptions(samples)))
        self._sampler = sampler
        self._pool = pool if isinstance(pool, CachingPool) else CachingPool(pool)
        self._samples = samples

    async def turn(self, episode: Episode) -> Turn:
        """Raises WorkerFault when the model cannot be asked."""
        draws = make_draws(self._sampler.draw, self._samples, episode)
        turns = await asyncio.gather(*(self._sampler.draw_turn(episode, draw) for draw in draws))
        return choose_turn(await try_turns(turns, episode, self._pool, is_repeatable))


def is_repeatable(worker: LiveWorker) -> bool:
    """Whether calls of a worker have no effect, and cost nothing or are made once."""
    is_safe = worker.role == "tool" and not worker.has_effects
    return is_safe and (worker.worker.cacheable or not worker.spec.has_price)


async def try_turns(
    turns: Sequence[Turn], episode: Episode, pool: CachingPool, may_be_tried: Callable[[LiveWorker], bool]
) -> list[TriedTurn]:
    """Run sampled turns whose steps all go to workers that may be tried. Their steps count on from those of the
    episode."""
    safe = _list_safe_workers(pool, may_be_tried)
    return list(await asyncio.gather(*(_try_turn(turn, episode, pool, safe) for turn in turns)))


async def _try_turn(turn: Turn, episode: Episode, pool: CachingPool, safe: frozenset[str]) -> TriedTurn:
    earlier = {k: (run.step.worker, run.observation) for k, run in episode.steps.items() if run.observation is not None}
    checked = check_turn(turn, pool, earlier, {k: worker for k, (worker, _) in earlier.items()})
    if checked.error is not None or any(step.problem for step in checked.steps):
        return TriedTurn(turn, None)
    if any(step.worker not in safe for step in checked.steps):
        return TriedTurn(turn, write_plan(checked), "a plan that was not run")
    seen = dict(earlier)
    spent: list[Usage] = []
    recorder = Recorder(started=lambda *_: None, ended=lambda _, observation: spent.append(observation.usage))
    await RoundRun(checked.steps, seen, pool, Budget(pool.pool.limits), recorder).run()
    usage = sum(spent, NO_USAGE)
    value = _find_result(checked, seen)
    if value is None:
        return TriedTurn(turn, None, usage=usage, ran=True)
    # Refusals agree, whichever need they name.
    key = REFUSAL if is_refusal(value) else write_answer_key(value)
    return TriedTurn(turn, key, as_text(value)[:MAX_ANSWER_CHARS], usage, ran=True)


def make_draws(base: Draw | None, samples: int, episode: Episode) -> list[Draw]:
    """A greedy draw, then seeded ones: the same for the same query and the same seed of `base`."""
    seed = base.seed if base is not None and base.seed is not None else 0
    heat = base.temperature if base is not None and base.temperature > 0 else TEMPERATURE
    query = episode.started.query if episode.started is not None else ""
    first = int.from_bytes(hashlib.sha256(f"{seed} {query}".encode()).digest()[:4]) * MAX_SEEDS
    return [Draw(0.0, seed), *(Draw(heat, first + place) for place in range(1, samples))]


def choose_turn(tried: Sequence[TriedTurn]) -> Turn:
    """The turn that most agree with, with the record of the vote and the cost of all. Of equally many the one that was
    drawn first."""
    votes = _group_by_answer([item for item in tried if item.key is not None])
    winners = max(votes.values(), key=len) if votes else []
    chosen = winners[0] if winners else next((item for item in tried if item.turn.error is None), tried[0])
    usage = sum((item.turn.usage + item.usage for item in tried), NO_USAGE)
    unreadable = sum(item.turn.error is not None for item in tried)
    vote = Vote(
        sampled=len(tried),
        unreadable=unreadable,
        failed=sum(item.key is None for item in tried) - unreadable,
        untried=sum(item.key is not None and not item.ran for item in tried),
        votes=len(winners),
        answers=_count_answers(votes),
        chosen_answer=chosen.answer if chosen.ran else "",
        chosen_usage=chosen.turn.usage,
    )
    return replace(chosen.turn, usage=usage, vote=vote)


def write_plan(turn: Turn) -> str:
    """A text that is equal for equal plans."""
    steps = [[step.worker, dict(step.arguments), list(step.access)] for step in turn.steps]
    return json.dumps([steps, turn.answer], sort_keys=True)


def _find_result(turn: Turn, seen: Mapping[int, tuple[str, Observation]]) -> JsonValue:
    """The answer of a turn that was run, or the outputs of its last steps; None where one failed, or
    lacks a part that the answer quotes."""
    read = {k for step in turn.steps for k in step.access}
    last = {step.id for step in turn.steps} - read
    needed = references(turn.answer) if turn.has_answer else last
    if not all(k in seen and seen[k][1].ok for k in needed):
        return None
    values = {k: seen[k][1].value for k in needed}
    if explain_missing_part(turn.answer, values):
        return None
    return substitute(turn.answer, values) if turn.has_answer else [values[k] for k in sorted(needed)]


def _list_safe_workers(pool: LivePool, may_be_tried: Callable[[LiveWorker], bool]) -> frozenset[str]:
    """The workers that may be tried, with those that take over for them."""
    safe = {name for name, worker in pool.workers.items() if may_be_tried(worker)}
    while risky := {name for name in safe if (other := pool.workers[name].spec.fallback) and other not in safe}:
        safe -= risky
    return frozenset(safe)


def _group_by_answer(items: Sequence[TriedTurn]) -> dict[str, list[TriedTurn]]:
    groups: dict[str, list[TriedTurn]] = {}
    for item in items:
        groups.setdefault(item.key or "", []).append(item)
    return groups


def _count_answers(votes: Mapping[str, Sequence[TriedTurn]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for items in votes.values():
        counts[items[0].answer] = counts.get(items[0].answer, 0) + len(items)
    return counts
