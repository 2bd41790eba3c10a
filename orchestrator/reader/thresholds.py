"""The thresholds of the one likeness that a reader decides by: the cosine of the vectors of a need, or of a query, and
of a worker's card (bind_needs.py)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The least likenesses at which code takes something for so.

    `serves`: a worker may serve a need. Of the needs that a worker serves one in a hundred is less like its card; of
        those that none serves two thirds are less like every card (tests/orchestrator/reader/test_likeness.py).
    `is_sure`: a worker serves a need, or a pool a query. Of the needs that a worker serves one in twenty is less like
        its card; of the queries that a pool can answer one in twelve is less like every card, and of those that it
        cannot two thirds are, in domains that no training has.
    `names_worker`: a query names a worker that its plan leaves out. With 0.4 six right everyday plans in a hundred seem
        to leave one out, with this three.
    `does_operation`: a need that names no operation may have a worker that does one on two numbers. "Which of two has
        more" is 0.39 like one that adds; of the reference plans that ship none has such a worker for a need that is
        less like it than 0.51.
    `share_of_likeliest`: a worker is worth a second try, as a share of the likeness of the likeliest. Not fitted.
    """

    serves: float = 0.28
    is_sure: float = 0.4
    names_worker: float = 0.45
    does_operation: float = 0.45
    share_of_likeliest: float = 0.5


THRESHOLDS = Thresholds()
