"""How alike two lists of texts are, pair by pair, and the best one-to-one choice among the pairs.

By meaning (cosine of sentence vectors) where the sentence model is installed, else by words (BM25, as a share of what
the text scores for itself).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.retrieval import sentence_vectors
from orchestrator.retrieval.choose_workers import BY_WORDS, WorkerProfile, score_words

BY_MEANING = "meaning"


@dataclass(frozen=True, slots=True)
class Likeness:
    """A score from 0 to 1 for each text of one list with each of another, and the measure: meaning or words."""

    scores: list[list[float]]
    by: str


def compare_texts(texts: Sequence[str], others: Sequence[str]) -> Likeness:
    """Compare each of `texts` with each of `others`. Blocks: call it from a thread."""
    if sentence_vectors.find_weights() is None:
        return Likeness([_compare_words(text, others) for text in texts], BY_WORDS)
    if not texts or not others:
        return Likeness([[] for _ in texts], BY_MEANING)
    cosines = sentence_vectors.embed(texts) @ sentence_vectors.embed(others).T
    return Likeness([[min(1.0, max(0.0, float(score))) for score in row] for row in cosines], BY_MEANING)


def _compare_words(text: str, others: Sequence[str]) -> list[float]:
    *scores, own = score_words(text, [WorkerProfile("", other) for other in (*others, text)])
    return [min(1.0, score / own) if own > 0 else 0.0 for score in scores]


def choose_pairs(scores: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """The one-to-one choice of (row, column) with the highest sum; pairs that score 0 are left out."""
    from scipy.optimize import linear_sum_assignment

    if not scores or not scores[0]:
        return []
    rows, columns = linear_sum_assignment([[-score for score in row] for row in scores])
    return [(int(i), int(j)) for i, j in zip(rows, columns, strict=True) if scores[i][j] > 0]
