"""Find a worker that the query names and a short plan leaves out, and put it in.

A small model often stops after the first of two steps: "the e-mail of the person assigned to T-101" became the person
alone. What shows it: a word of the query that is in no need, call or card of the plan, but on the card of a worker that
the query is much like. The worker's own line is then a need more, after the others, before the last one, or in the
place of the last one. Which of these plans works is found by trying them (policies/reader.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations

from orchestrator.plan import Step, Turn
from orchestrator.quotes import references
from orchestrator.reader.bind_needs import LISTED
from orchestrator.reader.cards import describe_whole, format_listed
from orchestrator.reader.fill import BoundNeed
from orchestrator.reader.needs import Need
from orchestrator.reader.thresholds import THRESHOLDS
from orchestrator.repairs.mend_calls import may_be_tried
from orchestrator.repairs.named_workers import list_named
from orchestrator.retrieval.choose_workers import content_words
from pool_registry.actions import as_text
from pool_registry.calls.live_pool import LiveWorker

MAX_STEPS = 2  # of a plan that is too short: longer ones leave out words that they need not repeat
MAX_LEFT_OUT = 2  # workers that are put in


def list_left_out(query: str, steps: Sequence[Step], workers: Mapping[str, LiveWorker]) -> list[LiveWorker]:
    """The workers that a plan leaves out, the likeliest first; none for a longer plan, or one that may not be tried.
    Blocks: call it from a thread."""
    if not 0 < len(steps) <= MAX_STEPS or not all(_may_be_tried(step.worker, workers) for step in steps):
        return []
    used = {step.worker for step in steps}
    covered = set().union(*(_list_covered(step, workers[step.worker]) for step in steps))
    others = [item for item in list_named(query, workers, covered) if item.worker.spec.name not in used]
    likely = [item.worker for item in others if item.likeness >= THRESHOLDS.names_worker and may_be_tried(item.worker)]
    return likely[:MAX_LEFT_OUT]


def put_in(left_out: Sequence[LiveWorker], steps: Sequence[Step]) -> Iterator[list[BoundNeed]]:
    """Yield the needs of the plans that take such workers in: one after the steps or before the last one; both, the
    likelier one last, in the place of the last one; one in its place."""
    places = {step.id: place for place, step in enumerate(steps, start=1)}
    plan = [
        BoundNeed(Need(step.need, tuple(places[k] for k in step.access if k in places)), step.worker, LISTED)
        for step in steps
    ]
    *first, last = plan
    before, count = last.need.access, len(plan)
    for worker in left_out:
        yield [*plan, _bind(worker, (count,))]
        yield [*first, _bind(worker), replace(last, need=replace(last.need, access=(*before, count)))]
    for goal, source in permutations(left_out, 2):
        yield [*first, _bind(source, before), _bind(goal, (count,))]
    for worker in left_out:
        yield [*first, _bind(worker, before)]


def connect_steps(turn: Turn, query: str) -> Turn:
    """The turn, of which each step quotes a step that it may see: where it quotes none, in place of an argument that
    the query does not have, the last one of several."""
    return replace(turn, steps=tuple(_connect(step, query) for step in turn.steps))


def _connect(step: Step, query: str) -> Step:
    if not step.access or step.references:
        return step
    invented = [name for name, value in step.arguments.items() if not _stands_in(as_text(value), query)]
    return replace(step, arguments={**step.arguments, invented[-1]: f"${step.access[-1]}"}) if invented else step


def has_idle_step(turn: Turn) -> bool:
    """Whether a step makes the call of another one, or gives an output that neither the answer nor another step has."""
    calls = {_identify_call(step) for step in turn.steps}
    used = references(turn.answer).union(*(step.references or step.access for step in turn.steps))
    return len(calls) < len(turn.steps) or not {step.id for step in turn.steps} <= used


def _identify_call(step: Step) -> tuple[object, ...]:
    """Equal for equal calls. A worker that reads texts gets what it may see, and no arguments but the instruction."""
    arguments = sorted((name, as_text(value)) for name, value in step.arguments.items())
    return step.worker, tuple(arguments), frozenset(step.access)


def _stands_in(text: str, query: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", query, re.IGNORECASE) is not None


def _may_be_tried(name: str, workers: Mapping[str, LiveWorker]) -> bool:
    return name in workers and may_be_tried(workers[name])


def _list_covered(step: Step, worker: LiveWorker) -> set[str]:
    """The words that a step covers: those of its need, its worker's card and its call."""
    texts = (describe_whole(worker), step.need, *map(as_text, step.arguments.values()))
    return set().union(*map(content_words, texts))


def _bind(worker: LiveWorker, access: tuple[int, ...] = ()) -> BoundNeed:
    """The need that is a worker's own line."""
    return BoundNeed(Need(format_listed(worker), access), worker.spec.name, LISTED)
