"""What is said about evaluations: against scipy and statsmodels on known data, and in any order the same."""

from __future__ import annotations

import math
from itertools import combinations
from random import Random

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trainer.support.results import any_rows, row, rows_of, some_scores
from trainer.results.by_task import group_by_task
from trainer.results.figures import (
    compute_busy_s,
    compute_figures,
    compute_figures_by,
    compute_grouped_figures,
    find_best_single,
    find_pareto_points,
)
from trainer.results.paired import DIRECTIONS, compare_paired, compute_difference, describe_change, select_tasks
from trainer.results.rows import TaskKey
from trainer.results.statistics import (
    bootstrap_difference,
    bootstrap_mean,
    entropy,
    mean,
    pass_all,
    pass_at,
    sign_test,
    wilson_interval,
)


def known(tasks: int, samples: int, chance: float, seed: int = 5) -> list[list[bool]]:
    """Scores with tasks of different difficulty, so that samples of a task are alike."""
    random = np.random.default_rng(seed)
    chances = random.beta(chance * 2, (1 - chance) * 2, tasks)
    return [list(random.random(samples) < each) for each in chances]


def test_the_interval_of_mean_at_k_is_scipys_over_task_means():
    scores = known(150, 8, 0.6)
    found = compute_figures(rows_of(scores))
    means = [float(np.mean(each)) for each in scores]
    theirs = scipy.stats.bootstrap((means,), np.mean, method="percentile", n_resamples=9999, rng=1).confidence_interval
    assert (found.tasks, found.episodes, found.k) == (150, 1200, 8)
    assert found.mean.mean == pytest.approx(np.mean(means))
    assert found.mean.low == pytest.approx(theirs.low, abs=0.006)
    assert found.mean.high == pytest.approx(theirs.high, abs=0.006)


def test_samples_of_a_task_are_no_independent_evidence():
    scores = known(60, 8, 0.5)
    pooled = bootstrap_mean([float(right) for each in scores for right in each])
    found = compute_figures(rows_of(scores)).mean
    assert found.high - found.low > 1.5 * (pooled.high - pooled.low)


def test_pass_at_k_and_pass_all_k_count_every_choice_of_samples():
    for right, samples in ((0, 4), (1, 4), (3, 5), (5, 5)):
        outcomes = [True] * right + [False] * (samples - right)
        for k in range(1, samples + 1):
            chosen = list(combinations(outcomes, k))
            assert pass_at(k, right, samples) == pytest.approx(sum(map(any, chosen)) / len(chosen))
            assert pass_all(k, right, samples) == pytest.approx(sum(map(all, chosen)) / len(chosen))


def test_with_all_samples_pass_at_k_is_any_and_pass_all_k_is_every():
    scores = known(40, 4, 0.5)
    found = compute_figures(rows_of(scores))
    assert found.pass_at_k.mean == pytest.approx(np.mean([any(each) for each in scores]))
    assert found.pass_all_k.mean == pytest.approx(np.mean([all(each) for each in scores]))


def test_tasks_with_fewer_samples_set_k_and_still_count_like_the_others():
    found = compute_figures([*rows_of([[True, True, False, True]]), row(1, False)])
    assert (found.k, found.tasks, found.episodes) == (1, 2, 5)
    assert found.mean.mean == pytest.approx((0.75 + 0.0) / 2) == found.pass_at_k.mean == found.pass_all_k.mean


def test_the_paired_difference_agrees_with_scipys_bootstrap():
    mine, theirs = known(200, 4, 0.65, seed=1), known(200, 4, 0.5, seed=2)
    found = compare_paired(rows_of(mine), rows_of(theirs, orchestrator="other"))
    differences = [float(np.mean(a) - np.mean(b)) for a, b in zip(mine, theirs, strict=True)]
    interval = scipy.stats.bootstrap((differences,), np.mean, method="percentile", n_resamples=9999, rng=1)
    assert found.difference.mean == pytest.approx(np.mean(differences))
    assert found.difference.low == pytest.approx(interval.confidence_interval.low, abs=0.008)
    assert found.difference.high == pytest.approx(interval.confidence_interval.high, abs=0.008)
    assert found.wins == sum(d > 0 for d in differences) and found.losses == sum(d < 0 for d in differences)
    assert found.p == pytest.approx(scipy.stats.binomtest(found.wins, found.wins + found.losses).pvalue)


def test_with_one_sample_the_sign_test_is_statsmodels_exact_mcnemar():
    from statsmodels.stats.contingency_tables import mcnemar

    mine, theirs = known(120, 1, 0.7, seed=3), known(120, 1, 0.4, seed=4)
    found = compare_paired(rows_of(mine), rows_of(theirs, orchestrator="other"))
    both = np.zeros((2, 2))
    for [a], [b] in zip(mine, theirs, strict=True):
        both[int(a), int(b)] += 1
    assert found.p == pytest.approx(mcnemar(both, exact=True).pvalue)


@given(st.integers(0, 400), st.integers(0, 400))
def test_the_sign_test_is_scipys_binomial_test(wins, losses):
    theirs = scipy.stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert sign_test(wins, losses) == pytest.approx(theirs) == sign_test(losses, wins)


def test_the_sign_test_of_many_tasks_does_not_overflow():
    assert 0 < sign_test(3100, 2900) < 0.02


@given(st.integers(0, 300), st.integers(1, 300))
def test_wilson_is_statsmodels(right, more):
    from statsmodels.stats.proportion import proportion_confint

    low, high = wilson_interval(right / (right + more), right + more)
    theirs = proportion_confint(right, right + more, method="wilson")
    assert (low, high) == pytest.approx(theirs, abs=1e-6)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20).filter(any))
def test_entropy_is_scipys(counts):
    assert entropy(counts) == pytest.approx(scipy.stats.entropy(counts, base=2), abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(any_rows(), st.randoms(use_true_random=False))
def test_no_figure_depends_on_the_order_of_the_rows(rows, random: Random):
    shuffled = random.sample(rows, len(rows))
    assert compute_figures(shuffled) == compute_figures(rows)
    assert list(compute_figures(shuffled).shares) == list(compute_figures(rows).shares)
    other = [each.model_copy(update={"orchestrator": "other", "correct": not each.correct}) for each in rows]
    assert compare_paired(shuffled, other) == compare_paired(rows, other[::-1])


@settings(max_examples=40, deadline=None)
@given(any_rows())
def test_figures_stay_within_their_bounds(rows):
    found = compute_figures(rows)
    assert 0 <= found.pass_all_k.mean <= found.mean.mean + 1e-9 <= found.pass_at_k.mean + 2e-9 <= 1 + 3e-9
    for each in (found.mean, found.pass_at_k, found.pass_all_k):
        assert 0 <= each.low <= each.mean + 1e-9 and each.mean <= each.high + 1e-9 <= 1 + 2e-9
    assert found.p50_s <= found.p95_s and found.busy_s <= sum(each.wall_s for each in rows) + 1e-6
    assert 0 <= found.entropy <= math.log2(max(2, len(found.shares))) + 1e-9
    assert sum(found.shares.values()) == pytest.approx(1 if found.shares else 0)


@settings(max_examples=60, deadline=None)
@given(some_scores(), some_scores())
def test_pairing_is_symmetric(mine, theirs):
    a, b = rows_of(mine), rows_of(theirs, orchestrator="other")
    there, back = compare_paired(a, b), compare_paired(b, a)
    assert (there.wins, there.losses, there.ties) == (back.losses, back.wins, back.ties)
    assert (there.p, there.tasks, there.unpaired) == (back.p, back.tasks, back.unpaired)
    assert there.difference.mean == -back.difference.mean
    assert (there.difference.low, there.difference.high) == (-back.difference.high, -back.difference.low)
    assert there.wins + there.losses + there.ties == there.tasks == min(len(mine), len(theirs))
    assert there.unpaired == abs(len(mine) - len(theirs))
    assert -1 <= there.difference.low <= there.difference.mean + 1e-9 <= there.difference.high + 2e-9 <= 1 + 3e-9


@settings(max_examples=40, deadline=None)
@given(some_scores())
def test_nobody_wins_against_oneself(scores):
    found = compare_paired(rows_of(scores), rows_of(scores, orchestrator="twin"))
    assert (found.wins, found.losses, found.ties, found.p) == (0, 0, len(scores), 1.0)
    assert found.difference.mean == 0 and found.difference.low == -found.difference.high < 0


@pytest.mark.parametrize(
    "differences", [[-0.5, -0.25, 0.0, 0.25, 0.5], [-0.5, 0.5, -0.25, 0.5, -0.5, 0.25, 0.25, -0.25]]
)
def test_differences_that_mirror_themselves_have_an_interval_that_does(differences):
    estimate = bootstrap_difference(differences)
    assert estimate.mean == 0 and estimate.low == -estimate.high < 0


def test_a_difference_seen_on_every_task_is_not_certain():
    few, many = bootstrap_difference([1.0] * 5), bootstrap_difference([1.0] * 500)
    assert few.mean == many.mean == few.high == many.high == 1.0
    assert few.low < 0.2 and many.low > 0.97
    assert bootstrap_difference([]).low == -1.0 and bootstrap_difference([]).high == 1.0


def test_tasks_pair_by_what_they_ask_and_in_which_condition():
    mine = [row(0), row(1), row(2, family="atlas"), row(3, query="edited since")]
    theirs = [row(0, orchestrator="o"), row(2, orchestrator="o"), row(3, orchestrator="o")]
    found = compare_paired(mine, theirs)
    assert [change.task for change in found.equal] == [TaskKey("suite", "ledger", 1, "test", 0)]
    assert found.unpaired == 5
    renamed = [row(0, False, condition="renamed")]
    assert compare_paired(renamed, mine).tasks == 0
    across = compare_paired(renamed, mine, across_conditions=True)
    assert (across.tasks, across.losses) == (1, 1)
    assert across.regressed[0].episodes == ("mine-0-0",) and across.regressed[0].query == "query 0"


@settings(max_examples=40, deadline=None)
@given(any_rows(), st.randoms(use_true_random=False))
def test_a_pair_alone_says_what_it_says_with_all_its_tasks(rows, random: Random):
    other = [each.model_copy(update={"correct": random.random() < 0.5}) for each in rows[: len(rows) * 2 // 3]]
    found, mine, theirs = compare_paired(rows, other), group_by_task(rows), group_by_task(other)
    assert dict(compute_difference(mine, theirs)).items() <= dict(found).items()
    for which in DIRECTIONS:
        assert tuple(describe_change(unit, mine, theirs) for unit in select_tasks(which, mine, theirs)) == getattr(
            found, which
        )
    assert found.wins + found.losses + found.ties == found.tasks == len(mine.keys() & theirs.keys())
    assert compute_grouped_figures(mine) == compute_figures(rows)


def test_an_interval_that_is_asked_for_again_is_the_same_and_not_another_seeds():
    scores = [math.sqrt(each / 20) for each in range(21)]
    first = bootstrap_mean(scores)
    assert bootstrap_mean(scores[::-1]) == first == bootstrap_mean(list(scores))
    assert bootstrap_mean(scores, seed=1) != first != bootstrap_mean([*scores, 0.5])


def test_recovery_is_counted_where_a_call_failed():
    rows = [row(0), row(1, failed_calls=2), row(2, False, failed_calls=1), row(3, False)]
    found = compute_figures(rows)
    assert (found.recovery, found.failed_episodes) == (0.5, 2)
    assert compute_figures(rows[:1]).recovery is None
    assert compute_figures([row(0, turns=4, turn_errors=1)]).valid_turns == 0.75


def test_what_no_reference_plan_measures_is_none():
    found = compute_figures([row(0)])
    assert found.access_precision is found.access_recall is found.matched is found.extra_steps is None
    planned = [
        row(0, oracle_steps=2, oracle_depth=2, matched_steps=1, access_recall=0.5, access_precision=None),
        row(1),
    ]
    found = compute_figures(planned)
    assert (found.access_precision, found.access_recall, found.matched, found.extra_steps) == (None, 0.5, 0.5, 0.0)


def test_pauses_do_not_count_as_time_busy():
    assert compute_busy_s(
        [row(0, at=10, wall_s=4), row(1, at=9, wall_s=4), row(2, at=1000, wall_s=1)]
    ) == pytest.approx(6.0)
    assert compute_busy_s([]) == 0.0


def test_the_pareto_front_holds_whom_nobody_beats_in_price_and_score():
    def at(cost: float, right: int):
        return compute_figures([row(task, task < right, cost=cost) for task in range(10)])

    found = {"cheap": at(0.1, 4), "good": at(0.5, 9), "worse": at(0.5, 8), "dear": at(0.9, 9), "twin": at(0.1, 4)}
    points = find_pareto_points(found)
    assert [point.name for point in points] == ["cheap", "twin", "good", "worse", "dear"]
    assert {point.name for point in points if point.efficient} == {"cheap", "twin", "good"}
    assert [point.price for point in points] == pytest.approx([0.1, 0.1, 0.5, 0.5, 0.9])
    assert {point.price for point in find_pareto_points(found, "tokens")} == {15.0}


def test_the_best_single_worker_is_the_direct_row_with_the_highest_mean():
    def with_right(count: int, cost: float = 0.0):
        return compute_figures([row(task, task < count, cost=cost) for task in range(4)])

    found = {
        "direct:a": with_right(2, 1.0),
        "direct:b": with_right(2),
        "direct:c": with_right(1),
        "oracle": with_right(4),
    }
    assert find_best_single(found) == "direct:b" and find_best_single({"oracle": found["oracle"]}) is None
    assert (
        find_best_single({"direct:a": with_right(0), "direct:b": with_right(0)}) is None
    )  # a tie at nothing is no best


def test_figures_by_family_and_level():
    rows = [row(0), row(0, False, family="atlas", level=2), row(1, family="atlas", level=2)]
    assert {name: (each.tasks, each.mean.mean) for name, each in compute_figures_by(rows, "family").items()} == {
        "ledger": (1, 1.0),
        "atlas": (2, 0.5),
    }
    assert list(compute_figures_by(rows, "level")) == ["1", "2"]


def test_nothing_measured_is_told_as_nothing():
    found = compute_figures([])
    assert (found.tasks, found.k, found.mean.low, found.mean.high) == (0, 0, 0.0, 1.0)
    assert found.valid_turns is found.speedup is found.recovery is None and found.shares == {}
    assert compare_paired([], []).tasks == 0


def test_the_mean_of_values_whose_sum_is_too_large_for_a_float():
    assert mean([1.7e308, 1.7e308]) == pytest.approx(1.7e308)
