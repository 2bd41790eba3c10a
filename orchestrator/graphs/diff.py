"""The diff of two step graphs: what two decompositions of a query have in common.

Steps are paired by what they do, not by their numbers, which rarely agree between orchestrators. A pair may differ in
its place, worker, arguments or access list; steps without a partner are added or removed. `$k` and access
lists are compared through the pairing, so that a step which quotes the same earlier step is the same step.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from orchestrator.engine.episode import Episode
from orchestrator.layers import step_layers
from orchestrator.plan import Step
from orchestrator.quotes import references, substitute
from pool_registry.actions import JsonValue

Change = Literal["moved", "worker", "arguments", "access"]
Mark = Literal[Change, "same", "added", "removed"]  # of a step, against the other side

MOVED: Final = "moved"
WORKER: Final = "worker"
ARGUMENTS: Final = "arguments"
ACCESS: Final = "access"
CHANGES: tuple[Change, ...] = (WORKER, ARGUMENTS, ACCESS, MOVED)  # most telling first
LIKE = 0.5  # share of common words from which steps of different workers may be one step
Names = Mapping[int, str]
_WORD = re.compile(r"\w+")
_QUOTE = re.compile(r"\$[0-9]+")


@dataclass(frozen=True, slots=True)
class PlacedStep:
    """A step and its place: its round, and how many steps of that round it has to wait for, one after another."""

    step: Step
    round: int
    depth: int

    @property
    def id(self) -> int:
        return self.step.id


@dataclass(frozen=True, slots=True)
class StepPair:
    """One step on both sides; `changes` says in what it differs, nothing when it is the same."""

    left: PlacedStep
    right: PlacedStep
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class GraphDiff:
    """The changes from left to right: `added` are steps of the right side only, `removed` of the left side only."""

    pairs: tuple[StepPair, ...]
    added: tuple[PlacedStep, ...]
    removed: tuple[PlacedStep, ...]

    @property
    def empty(self) -> bool:
        """Whether both sides are the same graph."""
        return not (self.added or self.removed or any(pair.changes for pair in self.pairs))

    def counts(self) -> dict[Mark, int]:
        """The number of steps that are the same, added, removed, and changed in each way; a step may change in several
        ways."""
        totals = Counter[Mark]({"same": sum(not pair.changes for pair in self.pairs)})
        totals.update(change for pair in self.pairs for change in pair.changes)
        totals.update({"added": len(self.added), "removed": len(self.removed)})
        names: tuple[Mark, ...] = ("same", *CHANGES, "added", "removed")
        return {name: totals[name] for name in names}


def place_steps(episode: Episode) -> tuple[PlacedStep, ...]:
    """The steps of an episode so far with their places, in order."""
    placed: list[PlacedStep] = []
    for done in episode.rounds:
        layers = step_layers(run.step for run in done.steps)
        placed += [PlacedStep(run.step, done.number, layers[run.step.id]) for run in done.steps]
    return tuple(placed)


def diff_steps(left: Sequence[PlacedStep], right: Sequence[PlacedStep]) -> GraphDiff:
    """The diff from `left` to `right`."""
    partner = pair_steps(left, right)
    by_id = {placed.id: placed for placed in right}
    pairs = [StepPair(placed, by_id[partner[placed.id]], ()) for placed in left if placed.id in partner]
    taken = set(partner.values())
    ours = {placed.id: f"step {partner.get(placed.id)}" if placed.id in partner else "removed" for placed in left}
    theirs = {placed.id: f"step {placed.id}" for placed in right}
    return GraphDiff(
        pairs=tuple(StepPair(pair.left, pair.right, tuple(_find_changes(pair, ours, theirs))) for pair in pairs),
        added=tuple(placed for placed in right if placed.id not in taken),
        removed=tuple(placed for placed in left if placed.id not in partner),
    )


def pair_steps(left: Sequence[PlacedStep], right: Sequence[PlacedStep]) -> dict[int, int]:
    """Pair steps greedily by similarity, each once; returns ids of the right side by ids of the left side.

    Of equally similar pairs the one nearer in place wins, then the one nearer in number: a graph is paired with itself
    step by step, and exchanging the sides gives the inverse.
    """
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for _, one, other in sorted(_candidates(left, right)):
        if one not in partner and other not in taken:
            partner[one] = other
            taken.add(other)
    return partner


def _candidates(
    left: Sequence[PlacedStep], right: Sequence[PlacedStep]
) -> Iterator[tuple[tuple[float, ...], int, int]]:
    """Yield (rank, left id, right id) of every pair that may be one step; the lowest rank is the best."""
    words = {id(placed): _split_words(placed.step) for placed in (*left, *right)}
    texts = {id(placed): _mask_references(placed.step) for placed in (*left, *right)}
    for one in left:
        for other in right:
            same = one.step.worker == other.step.worker
            like = _jaccard(words[id(one)], words[id(other)])
            if not same and like < LIKE:
                continue
            score = 2.0 * same + like + (texts[id(one)] == texts[id(other)])
            numbers = (abs(one.id - other.id), min(one.id, other.id), max(one.id, other.id))
            yield (-score, abs(one.round - other.round), abs(one.depth - other.depth), *numbers), one.id, other.id


def _find_changes(pair: StepPair, ours: Names, theirs: Names) -> Iterator[Change]:
    """Yield the ways in which a pair differs. With `ours` and `theirs` both sides use one name for the same step."""
    one, other = pair.left.step, pair.right.step
    if one.worker != other.worker:
        yield WORKER
    if _describe_arguments(one, ours) != _describe_arguments(other, theirs):
        yield ARGUMENTS
    if _name_access(one.access, ours) != _name_access(other.access, theirs):
        yield ACCESS
    if (pair.left.round, pair.left.depth) != (pair.right.round, pair.right.depth):
        yield MOVED


def _describe_arguments(step: Step, names: Names) -> str:
    """The arguments as text, with the names of quoted steps."""
    arguments = dict(step.arguments)
    return _dump(substitute(arguments, {k: f"<{_name(k, names)}>" for k in references(arguments)}))


def _name_access(access: Iterable[int], names: Names) -> set[str]:
    return {_name(k, names) for k in access}


def _name(k: int, names: Names) -> str:
    return names.get(k, f"no step {k}")  # a malformed step may name a step that does not exist


def _mask_references(step: Step) -> str:
    """The arguments as text, with `<step>` for every quoted step."""
    arguments = dict(step.arguments)
    return _dump(substitute(arguments, dict.fromkeys(references(arguments), "<step>")))


def _dump(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _split_words(step: Step) -> frozenset[str]:
    return frozenset(word.casefold() for word in _iterate_words(step.arguments.values()))


def _iterate_words(values: Iterable[JsonValue]) -> Iterator[str]:
    """Yield the words of JSON values, without quoted steps."""
    for value in values:
        if isinstance(value, str):
            yield from _WORD.findall(_QUOTE.sub(" ", value))
        elif isinstance(value, Mapping):
            yield from _iterate_words(value.values())
        elif isinstance(value, list | tuple):
            yield from _iterate_words(value)
        elif value is not None:
            yield str(value)


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard's index (1901): the share of common words; 1 for two empty sets."""
    if not one and not other:
        return 1.0
    return len(one & other) / len(one | other)
