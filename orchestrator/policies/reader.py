"""A reader: a trained model that plans for any pool. It says what it needs, the needs are bound to workers of the
pool at hand, and it fills in the arguments with their cards in sight.

Steps that fail are tried once more with the next best worker that takes the same arguments.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeAlias

from orchestrator.engine.episode import Episode, StepRun
from orchestrator.grammars.reader_grammars import fill_grammar, needs_grammar
from orchestrator.out_of_depth.gauge import DepthGauge
from orchestrator.plan import ShownWorkers, Step, Turn, renumber_quotes, renumber_step
from orchestrator.reader.bind_needs import list_candidates
from orchestrator.reader.conversation import continue_conversation, open_conversation
from orchestrator.reader.fill import BoundNeed, parse_fill
from orchestrator.reader.needs import MAX_NEEDS, Need, parse_needs
from orchestrator.reader.refusal import REFUSAL, is_refusal, read_refused_need, refuse
from orchestrator.retrieval.choose_workers import choose_shown, narrow_pool
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


class ReaderPolicy:
    """Writes one plan for the query, and a second one for what failed in it.

    `write` asks the model: for the needs, and then, with these and the cards of the bound workers added to the
    conversation, for the arguments. Where the model refuses a card, for the arguments again: with other cards in the
    place of those that it was shown. `constrained`: both are held to grammars, so that they can always be read.
    """

    gives_up = True

    def __init__(
        self,
        name: str,
        pool: LivePool,
        write: WriteText,
        draw: Draw | None = None,
        constrained: bool = True,
        gauge: DepthGauge | None = None,
    ) -> None:
        self.name = name
        self.draw = draw
        self.constrained = constrained
        self._pool = pool
        self._write = write
        self._gauge = gauge

    async def turn(self, episode: Episode) -> Turn:
        """Raises WorkerFault when the model cannot be asked; the episode then ends as orchestrator_failed."""
        return await self.draw_turn(episode, self.draw)

    async def draw_turn(self, episode: Episode, draw: Draw | None) -> Turn:
        """A turn drawn in this way. Raises WorkerFault."""
        if any(done.turn is not None for done in episode.rounds):
            return await asyncio.to_thread(recover_turn, episode, self._pool)
        depth = await self._gauge.measure(episode) if self._gauge is not None else None
        return replace(await self._plan(episode, draw), out_of_depth=depth)

    async def _plan(self, episode: Episode, draw: Draw | None) -> Turn:
        shown = await choose_shown(episode, self._pool)
        listed = narrow_pool(self._pool, shown).workers.values()
        opening = open_conversation(episode.query, listed)
        first = await self._write(opening, needs_grammar(MAX_NEEDS, REFUSAL) if self.constrained else None, draw)
        if is_refusal(first.text):
            return _finish(Turn(answer=first.text, text=first.text), [first], shown)
        needs = parse_needs(first.text)
        if not needs:
            return _finish(Turn(error="the model named no need", text=first.text), [first], shown)
        completions = [first]
        refusals = [REFUSAL, *(refuse(need.text) for need in needs)]
        ranked = await asyncio.to_thread(self._rank, needs)
        while all(ranked):
            bound = [candidates[0] for candidates in ranked]
            chosen = [self._pool.workers[item.worker] for item in bound]
            schemas = [worker.parameters for worker in chosen]
            grammar = fill_grammar(schemas, refusals) if self.constrained else None
            messages = continue_conversation(opening, first.text, chosen)
            completions.append(await self._write(messages, grammar, draw))
            turn = parse_fill(completions[-1].text, bound, episode.next_step_id)
            place = _find_need(read_refused_need(turn.answer), needs)
            if place is None:
                text = f"{first.text}\n\n{completions[-1].text}"
                return _finish(replace(turn, text=text), completions, shown)
            del ranked[place][0]  # the model says that this worker does not fit: show it the next one
        unserved = needs[ranked.index([])]
        text = "\n\n".join(dict.fromkeys((first.text, completions[-1].text)))
        return _finish(Turn(answer=refuse(unserved.text), text=text), completions, shown)

    def _rank(self, needs: list[Need]) -> list[list[BoundNeed]]:
        """The workers that may be shown for each need, the most likely first."""
        workers = list(self._pool.workers.values())
        return [list_candidates(need, workers)[:CANDIDATES] for need in needs]


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


def recover_turn(episode: Episode, pool: LivePool) -> Turn:
    """The failed steps of an episode's last plan again, each with the next best worker that takes its arguments, and
    every step that depends on one. An error turn where no other worker is left. Blocks: call it from a thread."""
    last = next((done for done in reversed(episode.rounds) if done.turn is not None), None)
    if last is None or last.turn is None or not last.steps:
        return Turn(error="the reader has no second plan for a turn that could not be read", failed=True)
    failed = {run.step.id for run in last.steps if run.observation is None or not run.observation.ok}
    repeated: dict[int, Step] = {}
    for run in last.steps:
        step = run.step
        if step.id in failed and not _is_unreached(run):
            other = _choose_substitute(step, pool, _list_tried(episode, step))
            if other is None:
                return Turn(error=f"step {step.id} failed, and no other worker takes its arguments", failed=True)
            repeated[step.id] = replace(step, worker=other, problem=None)
        elif step.id in failed or any(k in repeated for k in step.access):
            repeated[step.id] = step
    if not repeated:
        return Turn(error="nothing is left to try", failed=True)
    ids = {old: episode.next_step_id + place for place, old in enumerate(repeated)}
    steps = tuple(renumber_step(step, ids) for step in repeated.values())
    return Turn(steps, renumber_quotes(last.turn.answer, ids))


def _is_unreached(run: StepRun) -> bool:
    """Whether a step failed only because one that it quotes did."""
    error = run.observation.error if run.observation is not None else None
    return error is not None and error.code == "dependency_failed"


def _list_tried(episode: Episode, step: Step) -> set[str]:
    """The workers that have had a step's need."""
    return {run.step.worker for run in episode.steps.values() if run.step.need == step.need}


def _choose_substitute(step: Step, pool: LivePool, tried: set[str]) -> str | None:
    """The most likely worker that has not been tried and accepts the arguments as they are."""
    workers = [worker for name, worker in pool.workers.items() if name not in tried]
    if not workers:
        return None
    described = step.need or pool.workers[step.worker].spec.description if step.worker in pool.workers else step.need
    for item in list_candidates(Need(described), workers):
        worker = pool.workers[item.worker]
        same = set(step.arguments) <= set(_names(worker))
        if same and (step.references or worker.argument_problem(step.arguments) is None):
            return item.worker
    return None


def _names(worker: LiveWorker) -> list[str]:
    properties = worker.parameters.get("properties")
    return list(properties) if isinstance(properties, dict) else []
