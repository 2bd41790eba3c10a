"""What writes one plan of a reader: its model says what it needs, the needs are bound to workers of the pool, and the
model fills in the arguments with their cards in sight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from orchestrator.choice.choose_worker import Chooser
from orchestrator.engine.episode import Episode
from orchestrator.grammars.reader_grammars import choice_grammar, fill_grammar, needs_grammar
from orchestrator.plan import ShownWorkers, Turn
from orchestrator.reader.bind_needs import list_candidates
from orchestrator.reader.cards import PLAIN_LISTING, ListingFormat
from orchestrator.reader.conversation import continue_conversation, open_conversation, reopen_conversation
from orchestrator.reader.fill import BoundNeed, parse_fill
from orchestrator.reader.needs import MAX_NEEDS, Need, format_needs, parse_needs
from orchestrator.reader.order_candidates import order_candidates
from orchestrator.reader.refusal import REFUSAL, is_refusal, read_refused_need, refuse
from orchestrator.reader.states import TriedPlan
from orchestrator.reader.thresholds import THRESHOLDS
from orchestrator.repairs.name_operations import (
    asks_for_sum,
    find_operation,
    find_operation_parameter,
    hold_to_operation,
    list_servers,
    write_choices,
)
from orchestrator.repairs.table import EVERY_REPAIR, in_table_order
from orchestrator.retrieval.choose_workers import choose_shown, narrow_pool
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.language_models.completion import Completion, Draw, Grammar, Message

TURN_TOKENS = 384
CANDIDATES = 3  # workers that a need is tried with before it counts as one that no worker serves
# (conversation, the grammar that its continuation is held to, how it is drawn) -> the continuation
WriteText: TypeAlias = Callable[[list[Message], Grammar | None, Draw | None], Awaitable[Completion]]


def ask_model(model: LiveWorker, turn_tokens: int = TURN_TOKENS) -> WriteText:
    """The function that has a worker's language model continue a conversation."""

    async def write(messages: list[Message], grammar: Grammar | None, draw: Draw | None) -> Completion:
        return await model.complete(messages, None, turn_tokens, draw, grammar)

    return write


@dataclass(frozen=True, slots=True)
class Opening:
    """A conversation that a plan is to be written after, and of a large pool the workers that it lists."""

    messages: list[Message]
    shown: ShownWorkers | None


class PlanWriter:
    """Writes plans for one pool. `write` asks the model: for the needs, and then, with these and the cards of the bound
    workers added to the conversation, for the arguments. Where the model refuses a card, for the arguments again: with
    another card in its place. `constrained`: both are held to grammars, so that they can always be read. `repairs`: the
    names of those that are on. `listing`: how the pool is shown. `make_chooser`: what orders likely workers by their
    outcomes, where it is set."""

    def __init__(
        self,
        pool: LivePool,
        write: WriteText,
        constrained: bool = True,
        repairs: frozenset[str] = EVERY_REPAIR,
        listing: ListingFormat = PLAIN_LISTING,
    ) -> None:
        self.constrained = constrained
        self.repairs = repairs
        self.listing = listing
        self.make_chooser: Callable[[], Chooser] | None = None
        self._pool = pool
        self._write = write

    async def open(self, episode: Episode, tried: TriedPlan | None = None) -> Opening:
        """The conversation about an episode's query; with a plan that was tried, behind what came of it."""
        shown = await choose_shown(episode, self._pool)
        listed = narrow_pool(self._pool, shown).workers.values()
        messages = await asyncio.to_thread(open_conversation, episode.query, listed, self.listing)
        if tried is not None:
            messages = reopen_conversation(messages, tried, self._pool.workers, self.listing)
        return Opening(messages, shown)

    async def plan(self, opening: Opening, draw: Draw | None) -> Turn:
        """The plan that the model writes, whose steps count from 1. Raises WorkerFault."""
        grammar = needs_grammar(MAX_NEEDS, REFUSAL) if self.constrained else None
        first = await self._write(opening.messages, grammar, draw)
        if is_refusal(first.text):
            return _finish(Turn(answer=first.text, text=first.text), [first], opening)
        needs = parse_needs(first.text)
        if not needs:
            return _finish(Turn(error="the model named no need", text=first.text), [first], opening)
        needs, named = await self._name_operations(opening, needs, draw)
        written = format_needs(needs) if named else first.text
        ranked = await asyncio.to_thread(self._rank, needs)
        turn, completions = await self._fill(opening, written, needs, ranked, draw)
        text = "\n\n".join(filter(None, (written, turn.text)))
        marked = mark(replace(turn, text=text), ["named_operations"] if named else [])
        return _finish(marked, [first, *named, *completions], opening)

    async def fill(self, opening: Opening, needs: list[Need], ranked: list[list[BoundNeed]], draw: Draw | None) -> Turn:
        """The arguments for needs whose likely workers are there, as a turn whose steps count from 1. Raises
        WorkerFault."""
        turn, completions = await self._fill(opening, format_needs(needs), needs, ranked, draw)
        return _finish(turn, completions, opening)

    async def _name_operations(
        self, opening: Opening, needs: list[Need], draw: Draw | None
    ) -> tuple[list[Need], list[Completion]]:
        """The needs, with the operation in place of a sum as such where the nearest worker does one at a time."""
        completions: list[Completion] = []
        may_ask = self.constrained and "named_operations" in self.repairs
        for place, need in enumerate(needs):
            if may_ask and asks_for_sum(need) and await asyncio.to_thread(self._has_operation_nearest, need):
                grammar = choice_grammar(write_choices(needs, place))
                completions.append(await self._write(opening.messages, grammar, draw))
                needs = [*parse_needs(completions[-1].text)[: place + 1], *needs[place + 1 :]]
        return needs, completions

    def _has_operation_nearest(self, need: Need) -> bool:
        likely = list_candidates(need, list(self._pool.workers.values()))
        if not likely:
            return False
        worker = self._pool.workers[likely[0].worker]
        return find_operation_parameter(worker) is not None or find_operation(worker) is not None

    async def _fill(
        self, opening: Opening, written: str, needs: list[Need], ranked: list[list[BoundNeed]], draw: Draw | None
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
            conversation = continue_conversation(opening.messages, written, chosen, self.listing)
            completions.append(await self._write(conversation, grammar, draw))
            turn = parse_fill(completions[-1].text, bound, 1)
            place = _find_need(read_refused_need(turn.answer), needs)
            if place is None:
                return turn, completions
            del ranked[place][0]  # this worker does not fit: the model is shown the next one
        unserved = needs[ranked.index([])]
        text = completions[-1].text if completions else ""
        return Turn(answer=refuse(unserved.text), text=text), completions

    def _rank(self, needs: list[Need]) -> list[list[BoundNeed]]:
        """The workers that may be shown for each need, the most likely first."""
        if "named_operations" in self.repairs:
            ranked = [list_servers(need, self._pool.workers) for need in needs]
        else:
            workers = list(self._pool.workers.values())
            ranked = [list_candidates(need, workers) for need in needs]
        if self.make_chooser is not None:
            chooser = self.make_chooser()
            ranked = [order_candidates(likely, self._pool.workers, chooser) for likely in ranked]
        return [likely[:CANDIDATES] for likely in ranked]

    def _hold(self, worker: LiveWorker, need: Need) -> Mapping[str, JsonValue]:
        """The parameters of a worker, held to the operation of the need where they are."""
        return hold_to_operation(worker, need) if "named_operations" in self.repairs else worker.parameters


def mark(turn: Turn, names: Collection[str]) -> Turn:
    """The turn with the names of repairs added to those that it has."""
    return replace(turn, repairs=in_table_order({*turn.repairs, *names}))


def _finish(turn: Turn, completions: list[Completion], opening: Opening) -> Turn:
    """The turn with what it cost and what the model saw last."""
    usage = completions[0].usage
    for completion in completions[1:]:
        usage += completion.usage
    return replace(turn, prompt=completions[-1].prompt, usage=usage, shown=opening.shown)


def _find_need(refused: str, needs: list[Need]) -> int | None:
    """The place of the need that a refusal names; None when it names none of them."""
    texts = [need.text.casefold() for need in needs]
    return texts.index(refused.casefold()) if refused.casefold() in texts else None
