"""Fits how far out of its depth a checkpoint is with a query (orchestrator/out_of_depth): the vectors of queries that
it learnt from, and a logistic function of the most similar one's cosine, fitted to queries of its own sources that it
did not learn from and to queries that no suite asks (assets/tasks/far_out.yaml).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import yaml

from assets import asset
from orchestrator.out_of_depth.learnt_queries import MAX_QUERIES, LearntQueries
from orchestrator.retrieval import sentence_vectors
from pool_registry.strict_model import StrictModel
from trainer.errors import UnknownTask
from trainer.recipe_sections import TaskSettings
from trainer.tasks.registry import open_source

VALIDATION = 150  # queries of its own sources to calibrate with
PENALTY = 2e-4  # on the squared slope: keeps it finite where the two groups do not overlap
NEWTON_STEPS = 30


class FarOutQueries(StrictModel):
    """Queries that no suite asks: some to calibrate with, others to test with."""

    fit: tuple[str, ...]
    test: tuple[str, ...]


@cache
def load_far_out() -> FarOutQueries:
    """The queries of assets/tasks/far_out.yaml."""
    return FarOutQueries.model_validate(yaml.safe_load((asset("tasks") / "far_out.yaml").read_text(encoding="utf-8")))


def fit_learnt_queries(tasks: TaskSettings, count: int = MAX_QUERIES) -> LearntQueries | None:
    """The learnt queries of a checkpoint that was trained on these tasks, with their calibration; None where sentences
    cannot be compared on this machine. Takes some 10 ms a query.

    Raises UnknownTask or UnusableTasks when there are no such tasks.
    """
    if sentence_vectors.find_weights() is None:
        return None
    learnt, others = draw_queries(tasks, count)
    vectors = sentence_vectors.embed(learnt)
    bare = LearntQueries(vectors, 0.0, 0.0)
    inside, outside = (bare.compare(sentence_vectors.embed(group)) for group in (others, load_far_out().fit))
    intercept, slope = fit_logistic(inside, outside)
    return LearntQueries(vectors, intercept, slope)


def draw_queries(tasks: TaskSettings, count: int) -> tuple[list[str], list[str]]:
    """Queries to learn from, and others of the same sources: of the validation split, or where a source has none
    every fifth query of the training split."""
    learnt = list_queries(tasks, "train", min(count, tasks.count))
    try:
        return learnt, list_queries(tasks, "validation", min(VALIDATION, tasks.count))
    except UnknownTask:
        held_in = learnt[::5]
        return [query for place, query in enumerate(learnt) if place % 5] or learnt, held_in


def list_queries(tasks: TaskSettings, split: str, count: int) -> list[str]:
    """List the queries of a split, each once. Raises UnknownTask or UnusableTasks."""
    drawn = open_source(tasks.source).tasks(split, count, tasks.seed, tasks.levels)
    return list(dict.fromkeys(task.query for task in drawn))


def fit_logistic(inside: Any, outside: Any) -> tuple[float, float]:
    """Fit (intercept, slope) of the probability to belong to `outside`, from one feature; both groups weigh the same.

    Newton's method on the penalized log-likelihood; the feature is centred, so that the penalty is on the slope alone.
    """
    import numpy as np

    feature = np.concatenate([inside, outside]).astype(np.float64)
    target = np.concatenate([np.zeros(len(inside)), np.ones(len(outside))])
    weight = np.where(target == 1, 0.5 / len(outside), 0.5 / len(inside))
    middle = (np.mean(inside) + np.mean(outside)) / 2
    columns = np.stack([np.ones_like(feature), feature - middle], axis=1)
    penalty = np.diag([0.0, PENALTY])
    beta = np.zeros(2)
    for _ in range(NEWTON_STEPS):
        p = 1 / (1 + np.exp(-columns @ beta))
        gradient = columns.T @ (weight * (target - p)) - penalty @ beta
        hessian = (columns * (weight * p * (1 - p))[:, None]).T @ columns + penalty + 1e-9 * np.eye(2)
        beta = beta + np.linalg.solve(hessian, gradient)
    return float(beta[0] - beta[1] * middle), float(beta[1])


def measure_auroc(inside: Sequence[float], outside: Sequence[float]) -> float:
    """The probability that a score of `outside` is above one of `inside`; ties count half."""
    import numpy as np

    above = np.subtract.outer(np.asarray(outside), np.asarray(inside))
    return float(np.mean((above > 0) + 0.5 * (above == 0)))
