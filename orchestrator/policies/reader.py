"""A reader: a trained model that plans for any pool. It says what it needs, the needs are bound to workers of the
pool at hand, and it fills in the arguments with their cards in sight.

Repairs (orchestrator/repairs/table.py) change what the model wrote, or have it write again: a worker that was out of
reach is replaced by one that takes the same arguments, a call that was rejected is tried with other words of the query
and then with the next likely worker, and where nothing of that helps other plans are drawn and tried. Without any the
first plan is all there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from orchestrator.choice.choose_worker import Chooser
from orchestrator.choice.outcomes import Record
from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Orchestrator
from orchestrator.grammars.reader_grammars import choice_grammar, fill_grammar, needs_grammar
from orchestrator.out_of_depth.gauge import DepthGauge
from orchestrator.plan import ShownWorkers, Turn, renumber_turn
from orchestrator.policies.voting import TriedTurn, choose_turn, make_draws, try_turns
from orchestrator.reader.bind_needs import SURE_LIKENESS, list_candidates, measure_likeness
from orchestrator.reader.conversation import continue_conversation, open_conversation
from orchestrator.reader.fill import BoundNeed, parse_fill
from orchestrator.reader.needs import MAX_NEEDS, Need, format_needs, parse_needs
from orchestrator.reader.order_candidates import order_candidates
from orchestrator.reader.refusal import REFUSAL, is_refusal, read_refused_need, refuse
from orchestrator.repairs.copied_examples import find_copied_example
from orchestrator.repairs.idle_steps import has_idle_step
from orchestrator.repairs.incomplete_plans import list_doubts, list_missing
from orchestrator.repairs.joined_names import list_card_words
from orchestrator.repairs.left_out_workers import connect_steps, list_left_out, put_in
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
    take_over_mended,
    try_other_words,
)
from orchestrator.repairs.table import EVERY_REPAIR, in_table_order
from orchestrator.repairs.unused_figures import put_in_figure
from orchestrator.retrieval.choose_workers import choose_shown, narrow_pool
from pool_registry.actions import NO_USAGE, JsonValue
from pool_registry.calls.caching_pool import CachingPool
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.language_models.completion import Completion, Draw, Grammar, Message

TURN_TOKENS = 384
OTHER_PLANS = 4
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
    they can always be read. `repairs`: the names of those that are on. `hints`: so many likely workers are listed after
    the query. `other_plans`: so many are drawn where a repair has others drawn.
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
        hints: int = 0,
        other_plans: int = OTHER_PLANS,
    ) -> None:
        self.name = name
        self.draw = draw
        self.constrained = constrained
        self.repairs = repairs
        self.hints = hints
        self._other_plans = other_plans
        self._pool = pool
        self._write = write
        self.gauge = gauge
        self._make_chooser: Callable[[], Chooser] | None = None

    def choose_by(self, who: str, record: Callable[[], Record]) -> None:
        """Choose among the likely workers of a need by this score of choice/scores.py, where outcomes are known."""
        self._make_chooser = lambda: Chooser(who, record(), self.draw)

    async def turn(self, episode: Episode) -> Turn:
        """Raises WorkerFault when the model cannot be asked; the episode then ends as orchestrator_failed."""
        if any(done.turn is not None and done.turn.vote is not None for done in episode.rounds):
            return await self._substitute(episode)
        turn = await self.draw_turn(episode, self.draw)
        if not self._other_plans:
            return turn
        if "left_out_workers" in self.repairs and not _goes_on(episode):
            turn = await self._put_in_left_out(episode, turn)
        doubts = {"other_plans"} & self.repairs if turn.failed else await self._doubt(episode, turn)
        return await self._draw_other_plan(episode, turn, doubts) if doubts else turn

    async def _substitute(self, episode: Episode) -> Turn:
        return await asyncio.to_thread(substitute_workers, episode, self._pool, "substitutes" in self.repairs)

    async def _doubt(self, episode: Episode, turn: Turn) -> Collection[str]:
        """The repairs that doubt a turn: a query is refused that is much like a worker, the first plan is incomplete
        and can be tried, or mending a call has left something out."""
        if is_refusal(turn.answer):
            is_doubted = "doubted_refusals" in self.repairs
            is_doubted = is_doubted and await asyncio.to_thread(self._resembles_worker, episode.query)
            return {"doubted_refusals"} if is_doubted else ()
        if _goes_on(episode):
            return list_missing(episode, turn, self._card_words) & self.repairs
        doubts = list_doubts(turn, episode.query, self._card_words) & self.repairs
        return doubts if all(may_be_tried(self._pool.workers[step.worker]) for step in turn.steps) else ()

    async def draw_turn(self, episode: Episode, draw: Draw | None) -> Turn:
        """A turn drawn in this way. Raises WorkerFault."""
        if _goes_on(episode):
            return await self._plan_again(episode, draw)
        depth = await self.gauge.measure(episode) if self.gauge is not None else None
        return replace(await self._plan(episode, draw), out_of_depth=depth)

    async def _plan(self, episode: Episode, draw: Draw | None, least: int = 1) -> Turn:
        """A plan of at least so many steps, where it is held to a grammar."""
        shown = await choose_shown(episode, self._pool)
        opening = await asyncio.to_thread(self._open, episode, shown)
        first = await self._write(opening, needs_grammar(MAX_NEEDS, REFUSAL, least) if self.constrained else None, draw)
        is_doubted = "doubted_refusals" in self.repairs and is_refusal(first.text)
        insists = is_doubted and await asyncio.to_thread(self._resembles_worker, episode.query)
        if insists:
            first = await self._write(opening, needs_grammar(MAX_NEEDS), draw)
        if is_refusal(first.text):
            return _finish(Turn(answer=first.text, text=first.text), [first], shown)
        needs = parse_needs(first.text)
        if not needs:
            return _finish(Turn(error="the model named no need", text=first.text), [first], shown)
        needs, named = await self._name_operations(opening, needs, draw)
        written = format_needs(needs) if named else first.text
        ranked = await asyncio.to_thread(self._rank, needs)
        unsure = next((need for need, likely in zip(needs, ranked, strict=True) if not _has_sure(likely)), None)
        if insists and unsure is not None:  # the model has refused, and no worker is much like what it names now
            return _finish(Turn(answer=refuse(unsure.text), text=written), [first, *named], shown)
        turn, completions = await self._fill(episode.query, opening, written, needs, ranked, draw)
        if "repeated_outputs" in self.repairs:
            turn = put_in_figure(episode.query, turn)
        text = "\n\n".join(filter(None, (written, turn.text)))
        marks = [name for name, acted in (("doubted_refusals", insists), ("named_operations", bool(named))) if acted]
        return _finish(_mark(replace(turn, text=text), marks), [first, *named, *completions], shown)

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

    async def _draw_other_plan(self, episode: Episode, given_up: Turn, doubts: Collection[str]) -> Turn:
        """What most of some other plans agree on, with the plan or the refusal that is in doubt among them. One that
        is incomplete has no vote where another one is whole. Where all of them fail, a query that is like no worker is
        refused. `doubts`: the repairs that have the plans drawn."""
        draws = make_draws(self.draw, 1 + self._other_plans, episode)[1:]  # the first is greedy, as what has failed
        is_short = bool(list_missing(episode, given_up, self._card_words) & self.repairs)
        first = episode.rounds[0].steps if _goes_on(episode) else given_up.steps
        least = 1 + len(first) if is_short else 1
        turns = await asyncio.gather(*(self._plan(episode, draw, least) for draw in draws))
        plans = [take_over_mended(renumber_turn(turn, episode.next_step_id), episode) for turn in turns]
        voters = plans if given_up.failed else [given_up, *plans]
        tried = await try_turns(voters, episode, CachingPool(self._pool), may_be_tried)
        safe = [self._weigh(item, episode, is_short, item.turn is given_up) for item in tried]
        chosen = choose_turn(safe)
        if any(item.key is not None for item in safe):
            return _mark(replace(chosen, out_of_depth=given_up.out_of_depth), [*given_up.repairs, *doubts])
        rejected = next((run.step for run in episode.steps.values() if is_rejected(run)), None)
        if rejected is not None and not await asyncio.to_thread(self._resembles_worker, episode.query):
            given_up = Turn(answer=refuse(rejected.need))
        return _mark(replace(given_up, usage=chosen.usage), doubts)

    def _weigh(self, item: TriedTurn, episode: Episode, is_short: bool, is_in_doubt: bool) -> TriedTurn:
        """A tried plan as it counts in the vote. One that may have effects or cost money was not tried, and is not
        begun a second time. Where the plan in doubt is too short the pool can answer: a refusal does not count. Where
        mending a call has made it so, what is left of it does not show that."""
        if not item.ran or (is_short and item.key == REFUSAL):
            return replace(item, key=None)
        incomplete = bool(list_doubts(item.turn, episode.query, self._card_words) & self.repairs)
        return replace(item, incomplete=incomplete or (is_short and is_in_doubt and _goes_on(episode)))

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
            turn, completions = await self._fill(
                episode.query, opening, written, needs, [[item] for item in bound], self.draw
            )
            finished = _finish(replace(turn, text=f"{written}\n\n{turn.text}"), completions, shown)
            return renumber_turn(connect_steps(finished, episode.query), episode.next_step_id)

        return list(await asyncio.gather(*map(fill, needs_of_plans)))

    async def _plan_again(self, episode: Episode, draw: Draw | None) -> Turn:
        """The next turn after steps have failed."""
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
        turn, completions = await self._fill(episode.query, opening, format_needs(needs), needs, ranked, draw)
        if turn.error is None and not is_refusal(turn.answer):
            turn = revision.renumber(turn, episode.next_step_id)
        return _finish(turn, completions, shown)

    def _open(self, episode: Episode, shown: ShownWorkers | None) -> list[Message]:
        return open_conversation(episode.query, narrow_pool(self._pool, shown).workers.values(), self.hints)

    async def _fill(
        self,
        query: str,
        opening: list[Message],
        written: str,
        needs: list[Need],
        ranked: list[list[BoundNeed]],
        draw: Draw | None,
    ) -> tuple[Turn, list[Completion]]:
        """The arguments for the likeliest workers of the needs that fit, as a turn whose steps count from 1, or the
        refusal of a need without one. A worker does not fit where the model refuses its card or can only copy its
        example; it is taken out of `ranked`."""
        completions: list[Completion] = []
        marks: list[str] = []
        while all(ranked):
            bound = [candidates[0] for candidates in ranked]
            # A need that is much like its worker, or the line that lists it, is not taken back.
            unsure = [item.need for item in bound if item.likeness < SURE_LIKENESS]
            refusals = [REFUSAL, *(refuse(need.text) for need in unsure)] if unsure else []
            chosen = [self._pool.workers[item.worker] for item in bound]
            schemas = [self._hold(worker, item.need) for worker, item in zip(chosen, bound, strict=True)]
            grammar = fill_grammar(schemas, refusals) if self.constrained else None
            completions.append(await self._write(continue_conversation(opening, written, chosen), grammar, draw))
            turn = parse_fill(completions[-1].text, bound, 1)
            place = _find_need(read_refused_need(turn.answer), needs)
            if place is None and "copied_examples" in self.repairs:
                place = find_copied_example(turn.steps, self._pool.workers, query)
                marks += ["copied_examples"] if place is not None else []
            if place is None:
                return _mark(turn, marks), completions
            del ranked[place][0]  # this worker does not fit: the model is shown the next one
        unserved = needs[ranked.index([])]
        text = completions[-1].text if completions else ""
        return _mark(Turn(answer=refuse(unserved.text), text=text), marks), completions

    @cached_property
    def _card_words(self) -> frozenset[str]:
        return list_card_words(self._pool.workers.values())

    def _resembles_worker(self, query: str) -> bool:
        """Whether a query is so much like a worker that a refusal of it is more likely to be wrong than right."""
        return measure_likeness(query, list(self._pool.workers.values())) >= SURE_LIKENESS

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


def _has_sure(likely: list[BoundNeed]) -> bool:
    """Whether a worker is so much like a need that it serves it."""
    return bool(likely) and likely[0].likeness >= SURE_LIKENESS


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
