"""The calibration of the out-of-depth score, and its bench on a tiny sample."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.out_of_depth.learnt_queries import LearntQueries
from orchestrator.retrieval import sentence_vectors
from trainer.learner.fit_depth import draw_queries, fit_logistic, load_far_out, measure_auroc
from trainer.recipe_sections import TaskSettings

SCRIPT = Path(__file__).parents[3] / "bench" / "depth.py"


def test_far_out_queries_are_many_and_none_is_both_fitted_and_tested():
    far_out = load_far_out()
    assert len(far_out.fit) == len(far_out.test) == 60
    assert len({*far_out.fit, *far_out.test}) == 120


@given(st.floats(0.55, 0.95), st.floats(0.0, 0.45), st.floats(0.001, 0.05))
def test_the_middle_between_two_groups_is_even(inside, outside, width):
    spread = np.linspace(-width, width, 9)
    intercept, slope = fit_logistic(inside + spread, outside + spread)
    learnt = LearntQueries(None, intercept, slope)
    assert slope < 0 and learnt.judge((inside + outside) / 2) == pytest.approx(0.5, abs=0.02)
    assert learnt.judge(inside) < 0.5 < learnt.judge(outside)


def test_groups_that_overlap_are_not_told_apart_with_certainty():
    intercept, slope = fit_logistic(np.array([0.4, 0.5, 0.6]), np.array([0.4, 0.5, 0.6]))
    assert LearntQueries(None, intercept, slope).judge(0.5) == pytest.approx(0.5, abs=0.01)


def test_auroc_counts_pairs_and_ties_half():
    assert measure_auroc([0.1, 0.2], [0.3]) == 1 and measure_auroc([0.3], [0.1]) == 0
    assert measure_auroc([0.5], [0.5]) == 0.5


def test_queries_to_calibrate_with_are_none_that_it_learnt_from():
    learnt, others = draw_queries(TaskSettings(source="ledger", levels=(1,), count=30), 20)
    assert len(learnt) == 20 and others and not set(learnt) & set(others)


@pytest.mark.slow
@pytest.mark.skipif(sentence_vectors.find_weights() is None, reason="the sentence model is not installed")
def test_the_bench_tells_held_in_from_far_out():
    run = subprocess.run(
        [sys.executable, str(SCRIPT), "starter-grpo", "--count", "12", "--json"],
        capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    figures = json.loads(run.stdout)["starter-grpo"]
    assert figures["auroc"]["far out"] >= 0.95 and figures["warned"]["held in"] <= 0.1
