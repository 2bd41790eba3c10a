"""A reader: a trained model that plans for any pool. It says what it needs, the needs are bound to workers of the
pool at hand, and it fills in the arguments with their cards in sight.

After a call that was rejected a model that learnt second turns reads what came of its plan, and writes another one.
Repairs (orchestrator/repairs/table.py) change what the model wrote, or have it write again: a worker that was out of
reach is replaced by one that takes the same arguments, a call that was rejected is tried with other words of the query
and then with the next likely worker, and where nothing of that helps other plans are drawn and tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from orchestrator.choice.choose_worker import Chooser
from orchestrator.choice.outcomes import Record
from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Orchestrator
from orchestrator.grammars.reader_grammars import choice_grammar, fill_grammar, needs_grammar
from orchestrator.out_of_depth.gauge import DepthGauge
from orchestrator.plan import ShownWorkers, Turn, renumber_turn
from orchestrator.policies.options.voting import choose_turn, make_draws, try_turns
from orchestrator.reader.bind_needs import list_candidates, measure_likeness
from orchestrator.reader.cards import PLAIN_LISTING, ListingFormat
from orchestrator.reader.conversation import continue_conversation, open_conversation, reopen_conversation
from orchestrator.reader.fill import BoundNeed, parse_fill
from orchestrator.reader.needs import MAX_NEEDS, Need, format_needs, parse_needs
from orchestrator.reader.order_candidates import order_candidates
from orchestrator.reader.refusal import REFUSAL, is_refusal, read_refused_need, refuse
from orchestrator.reader.states import go_on, join_last_plan
from orchestrator.reader.thresholds import THRESHOLDS
from orchestrator.repairs.left_out_workers import connect_steps, has_idle_step, list_left_out, put_in
from orchestrator.repairs.mend_calls import may_be_tried
from orchestrator.repairs.name_operations import (
    asks_for_sum,
    find_operation,
    find_operation_parameter,
    hold_to_operation,
    list_servers,
    write_choices,
)
from orchestrator.repairs.repeat_steps import (
    Revision,
    is_rejected,
    plan_revision,
    substitute_workers,
    try_other_words,
)
from orchestrator.repairs.table import EVERY_REPAIR, in_table_order
from orchestrator.retrieval.choose_workers import choose_shown, narrow_pool
from pool_registry.actions import NO_USAGE, JsonValue
from pool_registry.calls.caching_pool import CachingPool
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.language_models.completion import Completion, Draw, Grammar, Message

TURN_TOKENS = 384
OTHER_PLANS = 4
MAX_OWN_TURNS = 2  # that the model writes after its first one: it has learnt to mend a plan, not to search
NOTHING_NEW = "the model has nothing new to try"
# Marks of turns that are the model's plan all the same.
OF_THE_MODEL = frozenset({"second_turns", "named_operations", "left_out_workers"})
CANDIDATES = 3  # workers that a need is tried with before it counts as one that no worker serves
# (conversation, the grammar that its continuation is held to, how it is drawn) -> the continuation
WriteText: TypeAlias = Callable[[list[Message], Grammar | None, Draw | None], Awaitable[Completion]]


def ask_model(model: LiveWorker, turn_tokens: int = TURN_TOKENS) -> WriteText:
    """The function that has a worker's language model continue a conversation."""

    async def write(messages: list[Message], grammar: Grammar | None, draw: Draw | None) -> Completion:
        return await model.complete(messages, None, turn_tokens, draw, grammar)

    return write


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
        self.constrained = constrained
        self.repairs = repairs
        self._listing = listing
        self._other_plans = other_plans
        self._own_turns = own_turns
        self._pool = pool
        self._write = write
        self.gauge = gauge
        self._make_chooser: Callable[[], Chooser] | None = None

    def choose_by(self, who: str, record: Callable[[], Record]) -> None:
        """Choose among the likely workers of a need by this score of choice/scores.py, where outcomes are known."""
        self._make_chooser = lambda: Chooser(who, record(), self.draw, self._pool.pool.name)

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
        shown = await choose_shown(episode, self._pool)
        opening = await asyncio.to_thread(self._open, episode, shown)
        return await self._continue(opening, shown, draw)

    async def _continue(self, opening: list[Message], shown: ShownWorkers | None, draw: Draw | None) -> Turn:
        """The plan that the model writes after this, whose steps count from 1."""
        first = await self._write(opening, needs_grammar(MAX_NEEDS, REFUSAL) if self.constrained else None, draw)
        if is_refusal(first.text):
            return _finish(Turn(answer=first.text, text=first.text), [first], shown)
        needs = parse_needs(first.text)
        if not needs:
            return _finish(Turn(error="the model named no need", text=first.text), [first], shown)
        needs, named = await self._name_operations(opening, needs, draw)
        written = format_needs(needs) if named else first.text
        ranked = await asyncio.to_thread(self._rank, needs)
        turn, completions = await self._fill(opening, written, needs, ranked, draw)
        text = "\n\n".join(filter(None, (written, turn.text)))
        marked = _mark(replace(turn, text=text), ["named_operations"] if named else [])
        return _finish(marked, [first, *named, *completions], shown)

    async def _name_operations(
        self, opening: list[Message], needs: list[Need], draw: Draw | None
    ) -> tuple[list[Need], list[Completion]]:
        """The needs, with the operation in place of a sum as such where the nearest worker does one at a time."""
        completions: list[Completion] = []
        may_ask = self.constrained and "named_operations" in self.repairs
        for place, need in enumerate(needs):
            if may_ask and asks_for_sum(need) and await asyncio.to_thread(self._has_operation_nearest, need):
                grammar = choice_grammar(write_choices(needs, place))
                completions.append(await self._write(opening, grammar, draw))
                needs = [*parse_needs(completions[-1].text)[: place + 1], *needs[place + 1 :]]
        return needs, completions

    def _has_operation_nearest(self, need: Need) -> bool:
        likely = list_candidates(need, list(self._pool.workers.values()))
        if not likely:
            return False
        worker = self._pool.workers[likely[0].worker]
        return find_operation_parameter(worker) is not None or find_operation(worker) is not None

    async def _draw_other_plan(self, episode: Episode, given_up: Turn) -> Turn:
        """What most of some other plans agree on. One that may have effects or cost money was not tried, and is not
        begun a second time. Where all of them fail, a query that is like no worker is refused."""
        draws = make_draws(self.draw, 1 + self._other_plans, episode)[1:]  # the first is greedy, as what has failed
        turns = await asyncio.gather(*(self._plan(episode, draw) for draw in draws))
        plans = [renumber_turn(turn, episode.next_step_id) for turn in turns]
        tried = await try_turns(plans, episode, CachingPool(self._pool), may_be_tried)
        safe = [item if item.ran else replace(item, key=None) for item in tried]
        chosen = choose_turn(safe)
        if any(item.key is not None for item in safe):
            return _mark(replace(chosen, out_of_depth=given_up.out_of_depth), [*given_up.repairs, "other_plans"])
        rejected = next((run.step for run in episode.steps.values() if is_rejected(run)), None)
        if rejected is not None and not await asyncio.to_thread(self._resembles_worker, episode.query):
            given_up = Turn(answer=refuse(rejected.need))
        return _mark(replace(given_up, usage=chosen.usage), ["other_plans"])

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
        return _mark(longer, [*turn.repairs, "left_out_workers"])

    async def _fill_plans(self, episode: Episode, needs_of_plans: Iterable[list[BoundNeed]]) -> list[Turn]:
        """The arguments for the bound needs of several plans."""
        shown = await choose_shown(episode, self._pool)
        opening = await asyncio.to_thread(self._open, episode, shown)

        async def fill(bound: list[BoundNeed]) -> Turn:
            needs = [item.need for item in bound]
            written = format_needs(needs)
            turn, completions = await self._fill(opening, written, needs, [[item] for item in bound], self.draw)
            finished = _finish(replace(turn, text=f"{written}\n\n{turn.text}"), completions, shown)
            return renumber_turn(connect_steps(finished, episode.query), episode.next_step_id)

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
        tried = join_last_plan(episode) if self._may_read_states(episode) else None
        if tried is None or any(step.worker not in self._pool.workers for step in tried.steps):
            return None
        shown = await choose_shown(episode, self._pool)
        opening = await asyncio.to_thread(self._open, episode, shown)
        reopened = reopen_conversation(opening, tried, self._pool.workers, self._listing)
        turn = await self._continue(reopened, shown, draw)
        if turn.error is None and not is_refusal(turn.answer):
            effects = [name for name, worker in self._pool.workers.items() if worker.has_effects]
            turn = go_on(turn, episode, effects) or replace(turn, steps=(), answer=None, error=NOTHING_NEW, failed=True)
        return _mark(turn, ["second_turns"])

    def _may_read_states(self, episode: Episode) -> bool:
        """Whether the last turn is the model's own and led to a call that was rejected, or to no answer."""
        if not self._listing.shows_states or "second_turns" not in self.repairs:
            return False
        turns = [done.turn for done in episode.rounds if done.turn is not None]
        own = sum("second_turns" in turn.repairs for turn in turns)
        if own >= self._own_turns or turns[-1].error is not None or not OF_THE_MODEL.issuperset(turns[-1].repairs):
            return False
        last = next(done for done in reversed(episode.rounds) if done.turn is not None)
        tried = join_last_plan(episode)
        return any(map(is_rejected, last.steps)) or bool(tried and tried.missing_part)

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
        return _mark(revision.end() or await self._revise(episode, revision, draw), ["next_workers"])

    async def _revise(self, episode: Episode, revision: Revision, draw: Draw | None) -> Turn:
        """The steps to be taken again, with other workers in place of those that rejected their calls."""
        shown = await choose_shown(episode, self._pool)
        opening = await asyncio.to_thread(self._open, episode, shown)
        needs, ranked = [item.need for item in revision.needs], [list(item.ranked) for item in revision.needs]
        turn, completions = await self._fill(opening, format_needs(needs), needs, ranked, draw)
        if turn.error is None and not is_refusal(turn.answer):
            turn = revision.renumber(turn, episode.next_step_id)
        return _finish(turn, completions, shown)

    def _open(self, episode: Episode, shown: ShownWorkers | None) -> list[Message]:
        return open_conversation(episode.query, narrow_pool(self._pool, shown).workers.values(), self._listing)

    async def _fill(
        self,
        opening: list[Message],
        written: str,
        needs: list[Need],
        ranked: list[list[BoundNeed]],
        draw: Draw | None,
    ) -> tuple[Turn, list[Completion]]:
        """The arguments for the likeliest workers of the needs that fit, as a turn whose steps count from 1, or the
        refusal of a need without one. A worker does not fit where the model refuses its card; it is taken out of
        `ranked`."""
        completions: list[Completion] = []
        while all(ranked):
            bound = [candidates[0] for candidates in ranked]
            # A need that is much like its worker, or the line that lists it, is not taken back.
            unsure = [item.need for item in bound if item.likeness < THRESHOLDS.is_sure]
            refusals = [REFUSAL, *(refuse(need.text) for need in unsure)] if unsure else []
            chosen = [self._pool.workers[item.worker] for item in bound]
            schemas = [self._hold(worker, item.need) for worker, item in zip(chosen, bound, strict=True)]
            grammar = fill_grammar(schemas, refusals) if self.constrained else None
            conversation = continue_conversation(opening, written, chosen, self._listing)
            completions.append(await self._write(conversation, grammar, draw))
            turn = parse_fill(completions[-1].text, bound, 1)
            place = _find_need(read_refused_need(turn.answer), needs)
            if place is None:
                return turn, completions
            del ranked[place][0]  # this worker does not fit: the model is shown the next one
        unserved = needs[ranked.index([])]
        text = completions[-1].text if completions else ""
        return Turn(answer=refuse(unserved.text), text=text), completions

    def _resembles_worker(self, query: str) -> bool:
        """Whether a query is so much like a worker that a refusal of it is more likely to be wrong than right."""
        return measure_likeness(query, list(self._pool.workers.values())) >= THRESHOLDS.is_sure

    def _rank(self, needs: list[Need]) -> list[list[BoundNeed]]:
        """The workers that may be shown for each need, the most likely first."""
        if "named_operations" in self.repairs:
            ranked = [list_servers(need, self._pool.workers) for need in needs]
        else:
            workers = list(self._pool.workers.values())
            ranked = [list_candidates(need, workers) for need in needs]
        if self._make_chooser is not None:
            chooser = self._make_chooser()
            ranked = [order_candidates(likely, self._pool.workers, chooser) for likely in ranked]
        return [likely[:CANDIDATES] for likely in ranked]

    def _hold(self, worker: LiveWorker, need: Need) -> Mapping[str, JsonValue]:
        """The parameters of a worker, held to the operation of the need where they are."""
        return hold_to_operation(worker, need) if "named_operations" in self.repairs else worker.parameters


def _goes_on(episode: Episode) -> bool:
    """Whether the episode has had a turn."""
    return any(done.turn is not None for done in episode.rounds)


def _mark(turn: Turn, names: Collection[str]) -> Turn:
    """The turn with the names of repairs added to those that it has."""
    return replace(turn, repairs=in_table_order({*turn.repairs, *names}))


def _finish(turn: Turn, completions: list[Completion], shown: ShownWorkers | None) -> Turn:
    """The turn with what it cost and what the model saw last."""
    usage = completions[0].usage
    for completion in completions[1:]:
        usage += completion.usage
    return replace(turn, prompt=completions[-1].prompt, usage=usage, shown=shown)


def _find_need(refused: str, needs: list[Need]) -> int | None:
    """The place of the need that a refusal names; None when it names none of them."""
    texts = [need.text.casefold() for need in needs]
    return texts.index(refused.casefold()) if refused.casefold() in texts else None
