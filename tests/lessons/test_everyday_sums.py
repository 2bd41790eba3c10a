"""A sum that one call of a special tool does goes to it where a pool has that tool, and to the calculator elsewhere."""

from __future__ import annotations

import re

import pytest

from podium_lessons.everyday.asks import expand
from podium_lessons.everyday.everyday_data import load_money, load_sums, load_tools
from podium_lessons.everyday.questions.sums_and_units import ask_for_sum
from podium_lessons.everyday.solve_asks import solve_asks

FIGURES = {"a": "40", "b": "8", "c": "2.5"}


@pytest.mark.parametrize(
    ("expression", "work"),
    [
        ("{a} - {b}", "arithmetic"),
        ("{b} / 100 * {a}", "percent_of"),
        ("{b} / {a} * 100", "share"),
        ("{a} + {b} + {c}", "sum"),
        ("({a} + {b} + {c}) / 3", "mean"),
        ("{a} * (1 - {b} / 100)", "evaluate"),
        ("{a} / 100 * {b} * {c}", "evaluate"),
        ("({a} + {b}) / 3", "evaluate"),  # not the number of figures: no mean
        ("({a} + {b}) / {c}", "evaluate"),
    ],
)
def test_the_tool_of_a_sum_follows_from_its_form(expression, work):
    ask = ask_for_sum(expression, FIGURES)
    (call,) = expand([ask], load_tools()) or ()
    (instead,) = expand([ask], {"evaluate"}) or ()
    assert (call.work, instead.work) == (work, "evaluate")
    assert solve_asks([call]) == pytest.approx(solve_asks([instead]))


def test_percentages_have_one_form():
    for bank in (*load_sums().sums, *load_money().sums):
        assert not re.search(r"\* \{\w\} / 100", bank.expression), f"{bank.name}: write the percentage first"
