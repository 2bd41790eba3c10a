"""Bind needs to the workers of a pool: by the likeness of sentence vectors of the need and of each description."""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.reader.cards import describe_briefly
from orchestrator.reader.fill import BoundNeed
from orchestrator.reader.needs import Need
from orchestrator.retrieval import sentence_vectors
from orchestrator.retrieval.choose_workers import WorkerProfile, score_words
from pool_registry.calls.live_pool import LiveWorker

NAME_WEIGHT = 0.25
_WORD = re.compile(r"[^\W_]+")


def rank_workers(need: Need, workers: Sequence[LiveWorker]) -> list[BoundNeed]:
    """The workers for a need, the most likely first. Blocks: call it from a thread."""
    scores = score_need(need.text, workers)
    order = sorted(range(len(workers)), key=lambda place: (-scores[place], place))
    return [BoundNeed(need, workers[place].spec.name, round(scores[place], 4)) for place in order]


def score_need(need: str, workers: Sequence[LiveWorker]) -> list[float]:
    """How well each worker fits a need, by its description and, with less weight, by its name."""
    if sentence_vectors.find_weights() is None:
        return score_words(need, [WorkerProfile(item.spec.name, item.spec.description) for item in workers])
    brief = [describe_briefly(item) for item in workers]
    whole = [item.spec.description for item in workers]
    names = [" ".join(_WORD.findall(item.spec.name)) for item in workers]
    vectors = sentence_vectors.embed([need, *brief, *whole, *names])
    likeness = vectors[1:] @ vectors[0]
    count = len(workers)
    return [
        max(float(likeness[k]), float(likeness[count + k])) + NAME_WEIGHT * max(0.0, float(likeness[2 * count + k]))
        for k in range(count)
    ]
