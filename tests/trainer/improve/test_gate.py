"""The gate: what may be promoted, what is only open, and what is worse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.improve.gate import guard, judge
from trainer.results.improvement import SuiteChange


def change(suite: str, better_by: float, low: float, high: float, tasks: int = 60) -> SuiteChange:
    return SuiteChange(
        suite=suite, tasks=tasks, before=0.5, after=0.5 + better_by, better_by=better_by, low=low, high=high
    )


BETTER = change("own", 0.2, 0.05, 0.35)
CHEAP = guard("The cost of a query", "US dollars", (0.01, 0.011), 0.0125)
DEAR = guard("The cost of a query", "US dollars", (0.01, 0.03), 0.0125)


def test_a_candidate_that_is_better_on_new_tasks_and_no_worse_elsewhere_may_be_promoted():
    verdict, reasons = judge([BETTER, change("old", 0.0, -0.05, 0.05), change("general", -0.02, -0.1, 0.05)], [CHEAP])
    assert verdict == "better"
    assert reasons[0] == (
        "It is better: 50% before, 70% after on 60 new tasks (+0.200, 95 % interval +0.050 to +0.350)."
    )


@pytest.mark.parametrize("suite", ["old", "general"])
def test_what_it_forgets_keeps_it_out_however_good_it_is_on_new_tasks(suite):
    verdict, reasons = judge([BETTER, change(suite, -0.1, -0.2, 0.01)], [CHEAP])
    assert verdict == "worse" and reasons[0].startswith("It is worse: 50% before, 40% after on 60")
    assert "set aside" in reasons[-1]


def test_one_lost_task_of_few_is_no_reason_and_two_are():
    assert judge([BETTER, change("old", -0.1, -0.3, 0.0, tasks=10)], [])[0] == "better"
    assert judge([BETTER, change("old", -0.2, -0.5, 0.0, tasks=10)], [])[0] == "worse"


def test_an_interval_around_zero_is_open_and_so_is_nothing_that_was_held_out():
    verdict, reasons = judge([change("own", 0.1, -0.02, 0.2)], [CHEAP])
    assert verdict == "open" and "not shown to be better" in reasons[0] and "taken again" in reasons[-1]
    assert judge([], [])[0] == "open" and "set aside" not in reasons[-1]


def test_what_brings_nothing_is_taken_again_once():
    for suites in ([change("own", 0.0, -0.1, 0.1)], [change("own", 0.1, -0.1, 0.2), change("old", -0.01, -0.1, 0.1)]):
        verdict, reasons = judge(suites, [CHEAP])
        assert verdict == "open" and reasons[-1].endswith("and set aside if that candidate is no better either.")


def test_what_costs_too_much_is_not_promoted_and_its_tasks_stay_new():
    verdict, reasons = judge([BETTER], [DEAR])
    assert verdict == "open"
    assert reasons[0] == "The cost of a query is 0.03 US dollars and may be 0.0125 at most (0.01 now)."


@given(
    st.lists(
        st.tuples(st.sampled_from(["own", "old", "general"]), *[st.floats(-1, 1)] * 3, st.integers(1, 300)), max_size=3
    )
)
def test_nothing_is_promoted_without_an_interval_above_zero_on_new_tasks(rows):
    suites = [
        SuiteChange(suite=suite, tasks=tasks, before=0, after=0, better_by=by, low=low, high=high)
        for suite, by, low, high, tasks in rows
    ]
    verdict, reasons = judge(suites, [CHEAP])
    assert reasons
    if verdict == "better":
        assert next(suite for suite in suites if suite.suite == "own").low > 0
        assert all(suite.high >= 0 for suite in suites)
