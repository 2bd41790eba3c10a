"""Orchestrators against the baselines at equal cost: the hull of baselines, and the mixture at a price."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trainer.support.results import row
from trainer.results.by_task import group_by_task
from trainer.results.equal_cost import Results, compare_at_equal_cost, find_hull
from trainer.results.figures import compute_grouped_figures

TASKS = 20
measured = st.tuples(st.integers(0, 40), st.integers(0, TASKS))  # price in cents, tasks that are right


def results_of(rows: Mapping[str, tuple[float, int]]) -> dict[str, Results]:
    """Orchestrators by (price of an episode, how many tasks are right)."""
    grouped = {
        name: group_by_task([row(task, task < right, cost=price) for task in range(TASKS)])
        for name, (price, right) in rows.items()
    }
    return {name: Results(tasks, compute_grouped_figures(tasks)) for name, tasks in grouped.items()}


def test_at_half_of_the_price_between_two_baselines_half_of_both_is_what_to_beat():
    compared = compare_at_equal_cost(
        results_of({"cheap": (1, 8), "dear": (3, 16), "ours": (2, 15)}), "cost", ("cheap", "dear")
    )
    assert compared["ours"].shares == {"cheap": 0.5, "dear": 0.5} and compared["ours"].tasks == TASKS
    assert compared["ours"].difference.mean == pytest.approx((15 - 12) / TASKS)


def test_dearer_than_all_of_them_it_must_beat_the_best_and_cheaper_what_they_do_for_its_price():
    rows = results_of({"only": (2, 10), "dear": (9, 12), "frugal": (1, 6)})
    compared = compare_at_equal_cost(rows, "cost", ("only",))
    assert compared["dear"].shares == {"only": 1.0} and compared["dear"].difference.mean == pytest.approx(0.1)
    assert compared["frugal"].shares == {"only": 0.5} and compared["frugal"].difference.mean == pytest.approx(0.05)
    assert "only" not in compared, "there is nothing else to compare it with"


def test_without_prices_the_best_baseline_is_what_to_beat():
    compared = compare_at_equal_cost(results_of({"a": (0, 5), "b": (0, 9), "ours": (0, 9)}), "cost", ("a", "b"))
    assert compared["ours"].shares == {"b": 1.0} and compared["ours"].difference.mean == 0


def test_orchestrators_without_a_task_in_common_are_not_compared():
    rows = results_of({"only": (1, 3)})
    tasks = group_by_task([row(task, True, cost=1.0) for task in range(100, 105)])
    rows["apart"] = Results(tasks, compute_grouped_figures(tasks))
    assert "apart" not in compare_at_equal_cost(rows, "cost", ("only",))


@given(st.lists(measured, min_size=1, max_size=6))
def test_no_baseline_lies_above_the_hull_and_its_slopes_fall(rows):
    named = results_of({f"b{place}": pair for place, pair in enumerate(rows)})
    hull = find_hull({name: results.figures for name, results in named.items()}, "cost")
    corners = [(0.0, 0.0), *((point.price, point.mean) for point in hull)]
    for price, right in rows:
        assert right / TASKS <= height(corners, price) + 1e-9
    slopes = [(after[1] - before[1]) / max(after[0] - before[0], 1e-12) for before, after in pairwise(corners)]
    assert all(first > second for first, second in pairwise(slopes)) and all(slope > 0 for slope in slopes)


@given(measured, st.lists(measured, min_size=1, max_size=5))
def test_the_mixture_costs_what_the_orchestrator_costs_or_all_that_the_best_baseline_does(ours, rows):
    names = [f"b{place}" for place in range(len(rows))]
    results = results_of({"ours": ours, **dict(zip(names, rows, strict=True))})
    comparison = compare_at_equal_cost(results, "cost", names).get("ours")
    if comparison is None:
        assert all(right == 0 for _, right in rows)
        return
    price = sum(share * results[name].figures.cost_per_episode for name, share in comparison.shares.items())
    assert price <= ours[0] + 1e-9 and 0 <= sum(comparison.shares.values()) <= 1 + 1e-6
    corners = [(0.0, 0.0), *((p.price, p.mean) for p in find_hull({n: results[n].figures for n in names}, "cost"))]
    assert comparison.difference.mean == pytest.approx(ours[1] / TASKS - height(corners, ours[0]), abs=1e-4)


def height(corners: list[tuple[float, float]], price: float) -> float:
    """The height of a line through corners at a price; beyond the last one it is flat."""
    best = max(score for x, score in corners if x <= price)
    for (left, low), (right, high) in pairwise(corners):
        if left <= price < right:
            best = max(best, low + (high - low) * (price - left) / (right - left))
    return best
