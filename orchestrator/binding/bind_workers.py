"""Bind the workers that a checkpoint learnt to those of the pool at hand: one to one, by what their descriptions say.

Only workers of one role are bound to each other, and only where they take the same kind of arguments. A learnt worker
that none at hand is like stays unbound. A worker that is at hand under its own name and with its own meaning is bound
to itself. Everything here is deterministic: equal scores go to the cheaper worker, then to the earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.binding.learnt_pool import open_learnt_pool
from orchestrator.binding.learnt_worker import LearntWorker
from orchestrator.binding.match_parameters import match_parameters, take_same_arguments
from orchestrator.retrieval.likeness import BY_MEANING, choose_pairs, compare_texts
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.worker import Role

# The least likeness of a bound pair. An agent answers in words whatever its description says, and a recursive worker
# runs the same orchestrator.
LEAST_BY_MEANING: Mapping[Role, float] = {"tool": 0.4, "agent": 0.25, "recursion": 0.0}
LEAST_BY_WORDS: Mapping[Role, float] = {"tool": 0.08, "agent": 0.05, "recursion": 0.0}
SAME_NAME = 0.25  # what an equal name adds to the likeness
LEAST_OF_NAMESAKES = 0.25  # the share of the least likeness that will do under an equal name
TIE = 0.001  # likenesses that differ by less are equal, and the price decides
BY_NAME, BY_PERSON = "name", "person"
NONE = ""  # the worker of a learnt one that stays unbound


@dataclass(frozen=True, slots=True)
class BoundWorker:
    """The worker at hand that a learnt one stands for; NONE where there is none.

    `by` says who chose: the equal name and description, meaning, words, or a person. `parameters` holds those that
    are called otherwise at hand, as {learnt: at hand}. `nearest` is the likest worker that could be chosen.
    """

    learnt: str
    worker: str
    likeness: float
    by: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    nearest: str = NONE
    least: float = 0.0

    @property
    def keeps_its_words(self) -> bool:
        """Whether a call of the learnt worker needs no change."""
        return self.worker == self.learnt and not self.parameters


@dataclass(frozen=True, slots=True)
class Binding:
    """What each learnt worker stands for, by its learnt name. `vocabulary` is the pool that the model writes turns
    for: its workers are never called."""

    workers: Mapping[str, BoundWorker]
    vocabulary: LivePool = field(compare=False)

    @property
    def changes_nothing(self) -> bool:
        return all(bound.keeps_its_words for bound in self.workers.values())


# (checkpoint, hash of a pool) -> what a person chose: learnt worker -> worker at hand, or NONE
ReadEdits = Callable[[str, str], Mapping[str, str]]


def read_no_edits(_checkpoint: str, _pool_hash: str) -> Mapping[str, str]:
    """Return no edits: nobody has chosen anything."""
    return {}


@dataclass(frozen=True, slots=True)
class BindingSettings:
    """Whether checkpoints are bound at all, and where a person's choices are read."""

    enabled: bool = True
    read_edits: ReadEdits = read_no_edits


BY_DESCRIPTION = BindingSettings()  # checkpoints are bound, and nobody has chosen anything


def bind_workers(learnt: Sequence[LearntWorker], pool: LivePool, edits: Mapping[str, str] | None = None) -> Binding:
    """Bind every learnt worker. `edits` are a person's choices; those that this pool cannot have are left out.

    Blocks while descriptions are compared: call it from a thread. Nothing is compared where every worker is at hand
    under its own name with its own description.
    """
    bound = _bind_chosen(learnt, pool, edits or {})
    for item in learnt:
        if item.name not in bound and _is_unchanged(item, pool) and not _is_taken(item.name, bound):
            bound[item.name] = BoundWorker(item.name, item.name, 1.0, BY_NAME)
    rest = [item for item in learnt if item.name not in bound]
    taken = {entry.worker for entry in bound.values()}
    free = [worker for name, worker in pool.workers.items() if name not in taken]
    bound |= _bind_by_description(rest, free)
    return Binding({item.name: bound[item.name] for item in learnt}, open_learnt_pool(learnt))


def list_choices(learnt: LearntWorker, pool: LivePool) -> list[str]:
    """The workers at hand that a learnt one can be bound to: of its role, with the same kind of arguments."""
    return [name for name, worker in pool.workers.items() if _fits(learnt, worker)]


def _bind_chosen(learnt: Sequence[LearntWorker], pool: LivePool, edits: Mapping[str, str]) -> dict[str, BoundWorker]:
    bound = {}
    for item in learnt:
        choice = edits.get(item.name)
        if choice == NONE:
            bound[item.name] = BoundWorker(item.name, NONE, 0.0, BY_PERSON)
        elif choice is not None and choice in list_choices(item, pool):
            worker = pool.workers[choice]
            likeness = compare_texts([item.description], [worker.spec.description]).scores[0][0]
            bound[item.name] = _make_bound(item, worker, likeness, BY_PERSON)
    return bound


def _is_taken(name: str, bound: Mapping[str, BoundWorker]) -> bool:
    return any(entry.worker == name for entry in bound.values())


def _is_unchanged(learnt: LearntWorker, pool: LivePool) -> bool:
    worker = pool.workers.get(learnt.name)
    return (
        worker is not None
        and worker.spec.description == learnt.description
        and worker.role == learnt.role
        and (worker.parameters == learnt.parameters or _takes_by_name(learnt, worker))
    )


def _takes_by_name(learnt: LearntWorker, worker: LiveWorker) -> bool:
    return _fits(learnt, worker) and not match_parameters(learnt.parameters, worker.parameters)


def _fits(learnt: LearntWorker, worker: LiveWorker) -> bool:
    return learnt.role == worker.role and take_same_arguments(learnt.parameters, worker.parameters)


def _bind_by_description(learnt: Sequence[LearntWorker], workers: Sequence[LiveWorker]) -> dict[str, BoundWorker]:
    if not learnt:
        return {}
    compared = compare_texts([item.description for item in learnt], [worker.spec.description for worker in workers])
    least = LEAST_BY_MEANING if compared.by == BY_MEANING else LEAST_BY_WORDS
    fits = [[_fits(item, worker) for worker in workers] for item in learnt]
    ranks = _rank_by_price(workers)
    scores = [
        [
            _score(item, worker, compared.scores[i][j], least[item.role], ranks[j]) if fits[i][j] else 0.0
            for j, worker in enumerate(workers)
        ]
        for i, item in enumerate(learnt)
    ]
    pairs = dict(choose_pairs(scores))
    return {
        item.name: _make_bound(item, workers[pairs[i]], compared.scores[i][pairs[i]], compared.by)
        if i in pairs
        else _leave_unbound(item, workers, compared.scores[i], fits[i], compared.by, least[item.role])
        for i, item in enumerate(learnt)
    }


def _score(learnt: LearntWorker, worker: LiveWorker, likeness: float, least: float, rank: float) -> float:
    """The score of a pair, above 0 only where it may be bound. `rank` is from 0 (cheapest) to below 1."""
    same = learnt.name == worker.spec.name
    if likeness < (least * LEAST_OF_NAMESAKES if same else least):
        return 0.0
    return TIE * (2 - rank) + round(likeness, 3) + SAME_NAME * same


def _rank_by_price(workers: Sequence[LiveWorker]) -> list[float]:
    """The place of each worker among all by its price, cheapest first, as a number below 1."""
    prices = [(worker.spec.price_call, worker.spec.price_in + worker.spec.price_out) for worker in workers]
    order = sorted(range(len(workers)), key=lambda place: (prices[place], place))
    return [order.index(place) / len(workers) for place in range(len(workers))]


def _make_bound(learnt: LearntWorker, worker: LiveWorker, likeness: float, by: str) -> BoundWorker:
    parameters = match_parameters(learnt.parameters, worker.parameters)
    return BoundWorker(learnt.name, worker.spec.name, round(likeness, 4), by, parameters)


def _leave_unbound(
    learnt: LearntWorker,
    workers: Sequence[LiveWorker],
    likeness: Sequence[float],
    fits: Sequence[bool],
    by: str,
    least: float,
) -> BoundWorker:
    places = [place for place, fit in enumerate(fits) if fit]
    best = max(places, key=lambda place: likeness[place], default=None)
    if best is None:
        return BoundWorker(learnt.name, NONE, 0.0, by, least=least)
    return BoundWorker(learnt.name, NONE, round(likeness[best], 4), by, nearest=workers[best].spec.name, least=least)
