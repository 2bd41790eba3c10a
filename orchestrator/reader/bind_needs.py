"""Bind needs to the workers of a pool: by the likeness of the vectors of the need and of each worker's card.

The vectors come from all-MiniLM-L6-v2 with a small adapter that learnt which worker of a pool serves a need, on
generated worlds (lessons/podium_lessons/scripts/train_need_encoder.py). Where the sentence model is not installed
shared words decide.
"""

from __future__ import annotations

from collections.abc import Sequence

from assets import asset
from orchestrator.reader.cards import describe_whole, format_listed
from orchestrator.reader.fill import BoundNeed
from orchestrator.reader.needs import Need
from orchestrator.reader.thresholds import THRESHOLDS
from orchestrator.retrieval import sentence_vectors
from orchestrator.retrieval.choose_workers import MAX_QUERY_CHARS, WorkerProfile, score_words
from pool_registry.calls.live_pool import LiveWorker

ENCODER = "need-encoder"  # the folder of the adapter in assets
LISTED = 1.0  # the likeness of a need that repeats a worker's line


def list_candidates(need: Need, workers: Sequence[LiveWorker]) -> list[BoundNeed]:
    """The workers that may serve a need, the most likely first: those alone whose line it repeats, if any; none where
    every one does something else. A question may be put to any agent, and to nobody else. Blocks: call it from a
    thread."""
    if need.is_question:
        return rank_workers(need, [worker for worker in workers if worker.role == "agent"])
    ranked = rank_workers(need, workers)
    if ranked and repeats_line(ranked[0]):
        return [bound for bound in ranked if repeats_line(bound)]
    least = THRESHOLDS.serves if sentence_vectors.find_weights() is not None else 0.0
    return [bound for bound in ranked if bound.likeness >= least]


def repeats_line(bound: BoundNeed) -> bool:
    """Whether a need is the very line that lists its worker."""
    return bound.likeness >= LISTED


def measure_likeness(query: str, workers: Sequence[LiveWorker]) -> float:
    """The likeness of a query to the most similar worker; 0 in an empty pool. Blocks: call it from a thread."""
    return max(score_need(query, workers), default=0.0)


def list_likely(query: str, workers: Sequence[LiveWorker]) -> list[LiveWorker]:
    """The workers that are most like a query, the most likely first. Blocks: call it from a thread."""
    scores = score_need(query, workers)
    return [workers[place] for place in sorted(range(len(workers)), key=lambda place: (-scores[place], place))]


def rank_workers(need: Need, workers: Sequence[LiveWorker]) -> list[BoundNeed]:
    """The workers for a need, the most likely first. Blocks: call it from a thread."""
    scores = score_need(need.words, workers)
    order = sorted(range(len(workers)), key=lambda place: (-scores[place], place))
    return [BoundNeed(need, workers[place].spec.name, round(scores[place], 4)) for place in order]


def score_need(need: str, workers: Sequence[LiveWorker]) -> list[float]:
    """How well each worker fits a need: the cosine of their vectors. None fits better than one that the need lists."""
    likeness = _compare(need, workers)
    lines = [format_listed(worker).casefold() for worker in workers]
    return [
        LISTED if line == need.casefold() else min(score, LISTED - 1e-4)
        for line, score in zip(lines, likeness, strict=True)
    ]


def _compare(need: str, workers: Sequence[LiveWorker]) -> list[float]:
    if not workers:
        return []
    need = need[:MAX_QUERY_CHARS]
    if sentence_vectors.find_weights() is None:
        scores = score_words(need, [WorkerProfile(item.spec.name, item.spec.description) for item in workers])
        return [score / (1 + max(scores)) for score in scores]
    adapter = asset(ENCODER)
    vectors = sentence_vectors.embed([need, *map(describe_whole, workers)], adapter if adapter.is_dir() else None)
    return [float(score) for score in vectors[1:] @ vectors[0]]
