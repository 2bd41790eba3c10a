"""A reader: a trained model that plans for any pool. It says what it needs, the needs are bound to workers of the
pool at hand, and it fills in the arguments with their cards in sight.

After a call that was rejected a model that learnt second turns reads what came of its plan, and writes another one.
Repairs (orchestrator/repairs/table.py) change what the model wrote, or have it write again: a worker that was out of
reach is replaced by one that takes the same arguments, a call that was rejected is tried with other words of the query
and then with the next likely worker, and where nothing of that helps other plans are drawn and tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace

from orchestrator.choice.choose_worker import Chooser
from orchestrator.choice.outcomes import Record
from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Orchestrator
from orchestrator.out_of_depth.gauge import DepthGauge
from orchestrator.plan import Turn, renumber_turn
from orchestrator.policies.options.voting import choose_turn, make_draws, try_turns
from orchestrator.policies.plan_writer import CANDIDATES, PlanWriter, WriteText, mark
from orchestrator.reader.bind_needs import measure_likeness
from orchestrator.reader.cards import PLAIN_LISTING, ListingFormat
from orchestrator.reader.fill import BoundNeed
from orchestrator.reader.needs import format_needs
from orchestrator.reader.refusal import is_refusal, refuse
from orchestrator.reader.states import TriedPlan, go_on, join_last_plan
from orchestrator.reader.thresholds import THRESHOLDS
from orchestrator.repairs.left_out_workers import connect_steps, has_idle_step, list_left_out, put_in
from orchestrator.repairs.mend_calls import may_be_tried
from orchestrator.repairs.repeat_steps import (
    Revision,
    is_rejected,
    plan_revision,
    substitute_workers,
    try_other_words,
)
from orchestrator.repairs.table import EVERY_REPAIR
from pool_registry.actions import NO_USAGE
from pool_registry.calls.caching_pool import CachingPool
from pool_registry.calls.live_pool import LivePool
from pool_registry.language_models.completion import Draw

OTHER_PLANS = 4
MAX_OWN_TURNS = 2  # that the model writes after its first one: it has learnt to mend a plan, not to search
NOTHING_NEW = "the model has nothing new to try"
# Marks of turns that are the model's plan all the same.
OF_THE_MODEL = frozenset({"second_turns", "named_operations", "left_out_workers"})


class ReaderPolicy(Orchestrator):
    """Writes a plan for the query, and then for what failed in it.

    `write` asks the model: for the needs, and then, with these and the cards of the bound workers added to the
    conversation, for the arguments. Where the model refuses a card, or its worker rejects the call, for the arguments
    again: with other cards in the place of those that it was shown. `constrained`: both are held to grammars, so that
    they can always be read. `repairs`: the names of those that are on. `listing`: how the pool is shown. `other_plans`:
    so many are drawn where a repair has others drawn. `own_turns`: so many the model writes after its first one.
    """

    def __init__(
        self,
        name: str,
        pool: LivePool,
        write: WriteText,
        draw: Draw | None = None,
        constrained: bool = True,
        gauge: DepthGauge | None = None,
        repairs: frozenset[str] = EVERY_REPAIR,
        listing: ListingFormat = PLAIN_LISTING,
        other_plans: int = OTHER_PLANS,
        own_turns: int = MAX_OWN_TURNS,
    ) -> None:
        self.name = name
        self.draw = draw
        self._other_plans = other_plans
        self._own_turns = own_turns
        self._pool = pool
        self.gauge = gauge
        self._writer = PlanWriter(pool, write, constrained, repairs, listing)

    @property
    def repairs(self) -> frozenset[str]:
        """The names of the repairs that are on."""
        return self._writer.repairs

    @repairs.setter
    def repairs(self, names: frozenset[str]) -> None:
        self._writer.repairs = names

    @property
    def constrained(self) -> bool:
        """Whether what the model writes is held to grammars."""
        return self._writer.constrained

    @constrained.setter
    def constrained(self, constrained: bool) -> None:
        self._writer.constrained = constrained

    def choose_by(self, who: str, record: Callable[[], Record]) -> None:
        """Choose among the likely workers of a need by this score of choice/scores.py, where outcomes are known."""
        self._writer.make_chooser = lambda: Chooser(who, record(), self.draw, self._pool.pool.name)

    async def turn(self, episode: Episode) -> Turn:
        """Raises WorkerFault when the model cannot be asked; the episode then ends as orchestrator_failed."""
        if any(done.turn is not None and done.turn.vote is not None for done in episode.rounds):
            return await self._substitute(episode)
        turn = await self.draw_turn(episode, self.draw)
        if not self._other_plans:
            return turn
        if "left_out_workers" in self.repairs and not _goes_on(episode):
            turn = await self._put_in_left_out(episode, turn)
        may_draw = turn.failed and "other_plans" in self.repairs
        return await self._draw_other_plan(episode, turn) if may_draw else turn

    async def _substitute(self, episode: Episode) -> Turn:
        return await asyncio.to_thread(substitute_workers, episode, self._pool, "substitutes" in self.repairs)

    async def draw_turn(self, episode: Episode, draw: Draw | None) -> Turn:
        """A turn drawn in this way. Raises WorkerFault."""
        if _goes_on(episode):
            return await self._plan_again(episode, draw)
        depth = await self.gauge.measure(episode) if self.gauge is not None else None
        return replace(await self._plan(episode, draw), out_of_depth=depth)

    async def _plan(self, episode: Episode, draw: Draw | None) -> Turn:
        return await self._writer.plan(await self._writer.open(episode), draw)

    async def _draw_other_plan(self, episode: Episode, given_up: Turn) -> Turn:
        """What most of some other plans agree on. One that may have effects or cost money was not tried, and is not
        begun a second time. Where all of them fail, a query that is like no worker is refused."""
        draws = make_draws(self.draw, 1 + self._other_plans, episode)[1:]  # the first is greedy, as what has failed
        turns = await asyncio.gather(*(self._plan(episode, draw) for draw in draws))
        plans = [renumber_turn(turn, episode.next_step_id) for turn in turns]
        tried = await try_turns(plans, episode, CachingPool(self._pool), may_be_tried)
        safe = [item if item.ran else replace(item, key=None) for item in tried]
        chosen = choose_turn(safe)
        usage = given_up.usage + chosen.usage
        if any(item.key is not None for item in safe):
            taken = replace(chosen, out_of_depth=given_up.out_of_depth, usage=usage)
            return mark(taken, [*given_up.repairs, "other_plans"])
        rejected = next((run.step for run in episode.steps.values() if is_rejected(run)), None)
        if rejected is not None and not await asyncio.to_thread(self._resembles_worker, episode.query):
            given_up = Turn(answer=refuse(rejected.need))
        return mark(replace(given_up, usage=usage), ["other_plans"])

    async def _put_in_left_out(self, episode: Episode, turn: Turn) -> Turn:
        """The first plan, with a worker more where the query names one that it leaves out, and the plan works with
        it."""
        left_out = await asyncio.to_thread(list_left_out, episode.query, turn.steps, self._pool.workers)
        if not left_out:
            return turn
        plans = await self._fill_plans(episode, put_in(left_out, turn.steps))
        whole = [plan for plan in plans if plan.error is None and plan.steps and not has_idle_step(plan)]
        tried = await try_turns(whole, episode, CachingPool(self._pool), may_be_tried)
        usage = sum((plan.usage for plan in plans), turn.usage) + sum((item.usage for item in tried), NO_USAGE)
        longer = next((item.turn for item in tried if item.ran and item.key is not None), None)
        if longer is None:
            return replace(turn, usage=usage)
        text = f"{turn.text}\n\nThe query names another worker:\n{longer.text}"
        longer = replace(longer, text=text, usage=usage, out_of_depth=turn.out_of_depth)
        return mark(longer, [*turn.repairs, "left_out_workers"])

    async def _fill_plans(self, episode: Episode, needs_of_plans: Iterable[list[BoundNeed]]) -> list[Turn]:
        """The arguments for the bound needs of several plans."""
        opening = await self._writer.open(episode)

        async def fill(bound: list[BoundNeed]) -> Turn:
            needs = [item.need for item in bound]
            turn = await self._writer.fill(opening, needs, [[item] for item in bound], self.draw)
            whole = replace(turn, text=f"{format_needs(needs)}\n\n{turn.text}")
            return renumber_turn(connect_steps(whole, episode.query), episode.next_step_id)

        return list(await asyncio.gather(*map(fill, needs_of_plans)))

    async def _plan_again(self, episode: Episode, draw: Draw | None) -> Turn:
        """The next turn after steps have failed: the model's own where it has another plan, else a repair's."""
        own = await self._read_states(episode, draw)
        if own is not None and own.error is None and not is_refusal(own.answer):
            return own
        mended = await self._mend(episode, draw)
        if own is None:
            return mended
        stands = mended.failed and own.error is None and "other_plans" not in self.repairs
        return replace(own if stands else mended, usage=own.usage + mended.usage)

    async def _read_states(self, episode: Episode, draw: Draw | None) -> Turn | None:
        """The turn that the model writes after it has read what came of its last plan; None where that is not for it
        to mend, an error turn where it has nothing new to try."""
        tried = self._find_failed_plan(episode)
        if tried is None:
            return None
        turn = await self._writer.plan(await self._writer.open(episode, tried), draw)
        if turn.error is None and not is_refusal(turn.answer):
            effects = [name for name, worker in self._pool.workers.items() if worker.has_effects]
            turn = go_on(turn, episode, effects) or replace(turn, steps=(), answer=None, error=NOTHING_NEW, failed=True)
        return mark(turn, ["second_turns"])

    def _find_failed_plan(self, episode: Episode) -> TriedPlan | None:
        """The last plan, where it is the model's own and led to a call that was rejected, or to no answer."""
        rounds = [done for done in episode.rounds if done.turn is not None]
        marks = [done.turn.repairs for done in rounds if done.turn is not None]
        may_read = self._writer.listing.shows_states and "second_turns" in self.repairs
        if not may_read or sum("second_turns" in names for names in marks) >= self._own_turns:
            return None
        tried = join_last_plan(episode) if OF_THE_MODEL.issuperset(marks[-1]) else None
        if tried is None or any(step.worker not in self._pool.workers for step in tried.steps):
            return None
        return tried if tried.missing_part or any(map(is_rejected, rounds[-1].steps)) else None

    async def _mend(self, episode: Episode, draw: Draw | None) -> Turn:
        """The turn that a repair makes of the last one."""
        trial = None
        if "other_words" in self.repairs:
            trial = await asyncio.to_thread(try_other_words, episode, self._pool)
        if trial is not None:
            return trial
        revision = await asyncio.to_thread(plan_revision, episode, self._pool, CANDIDATES)
        if revision is not None and revision.is_mended:
            return revision.go_on(episode.next_step_id)
        if revision is None or "next_workers" not in self.repairs:
            return await self._substitute(episode)
        return mark(revision.end() or await self._revise(episode, revision, draw), ["next_workers"])

    async def _revise(self, episode: Episode, revision: Revision, draw: Draw | None) -> Turn:
        """The steps to be taken again, with other workers in place of those that rejected their calls."""
        needs, ranked = [item.need for item in revision.needs], [list(item.ranked) for item in revision.needs]
        turn = await self._writer.fill(await self._writer.open(episode), needs, ranked, draw)
        if turn.error is None and not is_refusal(turn.answer):
            turn = revision.renumber(turn, episode.next_step_id)
        return turn

    def _resembles_worker(self, query: str) -> bool:
        """Whether a query is so much like a worker that a refusal of it is more likely to be wrong than right."""
        return measure_likeness(query, list(self._pool.workers.values())) >= THRESHOLDS.is_sure


def _goes_on(episode: Episode) -> bool:
    """Whether the episode has had a turn."""
    return any(done.turn is not None for done in episode.rounds)
