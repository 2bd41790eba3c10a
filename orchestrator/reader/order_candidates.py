"""Order the workers that may serve a need by what is known of each, where anything is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator.choice.choose_worker import Chooser
from orchestrator.choice.hopeless import are_hopeless
from orchestrator.choice.scores import Candidate
from orchestrator.reader.cards import describe_whole
from orchestrator.reader.fill import BoundNeed
from pool_registry.calls.live_pool import LiveWorker

COMPARED = 8  # the right card is always among so many that are most like a need (docs/choice.md)


def order_candidates(
    ranked: Sequence[BoundNeed], workers: Mapping[str, LiveWorker], chooser: Chooser
) -> list[BoundNeed]:
    """The candidates of one need, the chosen one first; none for a question that all agents get wrong by their
    outcomes. Without an outcome of any of them likeness decides, as ever. Blocks: call it from a thread."""
    compared = ranked[:COMPARED]
    candidates = [
        Candidate(
            bound.worker,
            describe_whole(workers[bound.worker]),
            workers[bound.worker].role == "tool",
            bound.likeness,
            tuple(chooser.record.outcomes(bound.worker)),
        )
        for bound in compared
    ]
    if not any(candidate.outcomes for candidate in candidates):
        return list(ranked)
    bounds = {bound.worker: bound for bound in compared}
    ordered = chooser.order(compared[0].need.words, candidates)
    is_whole = compared[0].need.is_question and len(compared) == len(ranked)
    if is_whole and are_hopeless([choice for _, choice in ordered]):
        return []
    return [replace(bounds[item.worker], choice=choice) for item, choice in ordered] + list(ranked[COMPARED:])
