"""The diff of two episodes as the Compare page shows it: marks on the steps, places of what is gone, and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from orchestrator.engine.episode import Episode
from orchestrator.graphs.alignment import AlignedGraph
from orchestrator.graphs.diff import (
    ACCESS,
    ARGUMENTS,
    MOVED,
    WORKER,
    GraphDiff,
    Mark,
    PlacedStep,
    StepPair,
    diff_steps,
    place_steps,
)
from studio.episode_documents.arguments import format_arguments
from studio.episode_documents.view import SHORT
from studio.pages.compare.schema import DiffEntry, GhostStep, GraphDiffDocument


def build_graph_diff(reference: tuple[Episode, AlignedGraph], other: tuple[Episode, AlignedGraph]) -> GraphDiffDocument:
    """What changes from the reference to the other; `marks` are by step id of the other."""
    (first, laid_out), (second, aligned) = reference, other
    difference = diff_steps(place_steps(first), place_steps(second))
    marks = {str(pair.right.id): _list_marks(pair) for pair in difference.pairs}
    return GraphDiffDocument(
        counts=difference.counts(),
        marks=marks | {str(step.id): ["added"] for step in difference.added},
        ghosts=[_build_ghost(step, laid_out) for step in difference.removed],
        entries=list(_build_entries(difference, aligned.slots, laid_out.slots)),
        empty=difference.empty,
    )


def _list_marks(pair: StepPair) -> list[Mark]:
    return [*pair.changes] or ["same"]


def _build_ghost(gone: PlacedStep, laid_out: AlignedGraph) -> GhostStep:
    """A step that the reference has and the other has not, where it stands in the reference."""
    x, y = laid_out.layout.places[gone.id]
    instruction = format_arguments(gone.step.arguments)[:SHORT]
    return GhostStep(id=gone.id, x=round(x), y=round(y), worker=gone.step.worker or "?", instruction=instruction)


def _build_entries(
    difference: GraphDiff, slots: Mapping[int, int], reference_slots: Mapping[int, int]
) -> Iterator[DiffEntry]:
    """One entry a step, in the order of the other's steps; what was removed comes last."""
    theirs = {pair.left.id: pair.right.id for pair in difference.pairs}
    both = {pair.right.id: pair for pair in difference.pairs}
    new = {step.id: step for step in difference.added}
    for k in sorted({*both, *new}):
        if k in new:
            says = [f"{step_title(new[k])} is only here"]
            yield DiffEntry(what=["added"], left=None, right=k, slot=slots[k], says=says)
        else:
            pair = both[k]
            says = list(_sentences(pair, theirs)) or [_same(pair)]
            yield DiffEntry(what=_list_marks(pair), left=pair.left.id, right=k, slot=slots[k], says=says)
    for step in difference.removed:
        says = [f"{step_title(step)} of the reference is not here"]
        yield DiffEntry(what=["removed"], left=step.id, right=None, slot=reference_slots[step.id], says=says)


def _same(pair: StepPair) -> str:
    numbers = "" if pair.left.id == pair.right.id else f" (step {pair.left.id} of the reference)"
    return f"{step_title(pair.right)} is the same{numbers}"


def _sentences(pair: StepPair, theirs: Mapping[int, int]) -> Iterator[str]:
    name = step_title(pair.right)
    one, other = pair.left.step, pair.right.step
    if WORKER in pair.changes:
        yield f"{name} is done by {other.worker or '?'} instead of {one.worker or '?'}"
    if ARGUMENTS in pair.changes:
        before, after = (format_arguments(step.arguments)[:SHORT] for step in (one, other))
        yield f"{name} is told “{after}” instead of “{before}”"
    if ACCESS in pair.changes:
        yield f"{name} {_access(one.access, other.access, theirs)}"
    if MOVED in pair.changes:
        yield f"{name} runs {_place(pair.right)} instead of {_place(pair.left)}"


def _access(before: Sequence[int], after: Sequence[int], theirs: Mapping[int, int]) -> str:
    """What a step newly sees and what it sees no longer, in the other's numbers where there are any."""
    kept = {theirs[k] for k in before if k in theirs}
    newly = sorted(set(after) - kept)
    no_longer = sorted(kept - set(after))
    gone = sorted(k for k in before if k not in theirs)
    parts = [
        f"newly sees {_steps(newly)}" if newly else "",
        f"sees {_steps(no_longer)} no longer" if no_longer else "",
        f"lacks {_steps(gone)} of the reference" if gone else "",
    ]
    return ", ".join(part for part in parts if part)


def _place(placed: PlacedStep) -> str:
    """A round and a layer in it, as people count."""
    return f"in round {placed.round}, layer {placed.depth + 1}"


def _steps(ids: Sequence[int]) -> str:
    return f"step{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"


def step_title(placed: PlacedStep) -> str:
    return f"Step {placed.id} ({placed.step.worker or '?'})"
