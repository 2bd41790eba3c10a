"""Figures of a query that a plan leaves out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.plan import Step, Turn
from orchestrator.repairs.unused_figures import list_unused_figures, put_in_figure
from trainer.tasks.registry import open_source


def make_step(**arguments) -> Step:
    return Step(1, "worker", arguments)


@pytest.mark.parametrize(
    ("query", "arguments", "unused"),
    [
        ("perimeter of a 12 by 7 rectangle", {"expression": "2 * pi * 12"}, [7]),
        ("perimeter of a 12 by 7 rectangle", {"expression": "2 * (12 + 7)"}, []),
        ("the TV was 799, now there is 15 % off", {"expression": "799 * 0.85"}, []),
        ("1,250 less 8 %", {"expression": "1250 - 0.08 * 1250"}, []),
        ("two tips, 18% on 64.50", {"expression": "64.5 * 100 / 100"}, [18]),
        ("60 days after 3 March 2024", {"request": "2024-03-06 plus 33 days"}, [60]),
        ("2 weeks after 3 March 2024", {"date": "2024-03-03", "days": 14}, []),
        ("what is 9:30 in Tokyo", {"request": "2025-04-20 09:30 in London, local in Tokyo"}, []),
        ("how far is JFK from LHR", {"route": "LHR to JFK"}, []),
        ("mass of H2O", {"formula": "water"}, []),
        ("revenue of company 2033 in Q3 2024", {"query": "id = 2033, from 2024-07-01 to 2024-09-30"}, []),
        ("mark 9.5 of T-101", {"id": "T-101"}, [9.5]),
        ("add up 3, 5 and 8", {"numbers": [3, 5, 8]}, []),
    ],
)
def test_a_figure_may_be_written_in_other_units_and_as_a_share(query, arguments, unused):
    assert list_unused_figures(query, [make_step(**arguments)]) == unused


@given(st.lists(st.decimals(0, 10**9, places=2), min_size=1, max_size=6), st.text(max_size=20))
def test_figures_that_stand_in_the_calls_are_none_that_were_left_out(figures, words):
    query = " and ".join(
        f"{figure} {words.translate({ord(digit): None for digit in '0123456789'})}" for figure in figures
    )
    steps = [make_step(value=float(figure)) for figure in figures]
    assert list_unused_figures(query, steps) == []


@pytest.mark.medium
@pytest.mark.parametrize(
    ("source", "split"),
    [
        ("everyday", "train"),
        ("everyday:held_out", "test"),
        ("worlds:held_out", "test"),
        ("ledger,atlas,forge,itinerary", "train"),
    ],
)
def test_of_a_hundred_right_plans_at_most_two_leave_out_a_figure(source, split):
    tasks = [task for task in open_source(source).tasks(split, 200) if task.oracle_turn and task.oracle_turn.steps]
    left_out = [task.query for task in tasks if list_unused_figures(task.query, task.oracle_turn.steps)]
    assert len(tasks) >= 100 and len(left_out) <= len(tasks) / 50, left_out


def make_product(text: str, **arguments) -> Turn:
    return Turn((Step(1, "price", {"pastry": text}), Step(2, "times", arguments, (1,))), "$2")


@pytest.mark.parametrize(
    ("query", "text", "figure"),
    [
        ("How much are 4 eclairs?", "4 eclairs", 4),
        ("What would I pay for 2.5 kilos of rice?", "rice", 2.5),
        ("the price of three eclairs", "eclair", 3),
    ],
)
def test_the_figure_of_the_query_replaces_an_output_that_a_call_takes_twice(query, text, figure):
    turn = put_in_figure(query, make_product(text, a="$1", b="$1"))
    assert turn.steps[1].arguments == {"a": "$1", "b": figure} and turn.steps[0].arguments == {"pastry": text}
    assert f"Step 2 takes {figure} of the query" in turn.text


@pytest.mark.parametrize(
    ("query", "turn"),
    [
        ("the square of the price of an eclair", make_product("eclair", a="$1", b="$1")),
        ("How much are 4 eclairs?", make_product("4 eclairs", a="$1", b=4)),
        ("How much are " + "9" * 400 + " eclairs?", make_product("eclair", a="$1", b="$1")),
        ("4 eclairs and 3 baguettes", make_product("eclair", a="$1", b="$1")),
        ("the price of 4 eclairs, squared", Turn((*make_product("x", a="$1", b="$1").steps, make_step(value=4)), "$2")),
    ],
)
def test_no_figure_is_put_in_where_none_or_several_are_left_or_no_output_is_taken_twice(query, turn):
    assert put_in_figure(query, turn) is turn


@pytest.mark.medium
@pytest.mark.parametrize(
    ("source", "split"),
    [("everyday:held_out", "test"), ("worlds:held_out", "test"), ("projects", "train"), ("projects:held_out", "test")],
)
def test_right_plans_stay_as_they_are(source, split):
    turns = [(task.query, task.oracle_turn) for task in open_source(source).tasks(split, 200) if task.oracle_turn]
    assert len(turns) >= 150 and all(put_in_figure(query, turn) is turn for query, turn in turns)
