"""The chance of each answer by Bayes' rule, and whom to ask next: against counting all cases."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.choice.weigh_answers import SURE, WRONG_ANSWERS, choose_next, weigh_answers

CHANCES = st.floats(0.02, 0.98)
REPLIES = st.lists(st.tuples(st.sampled_from("abcd"), CHANCES), min_size=1, max_size=4)


def count_cases(replies: list[tuple[str, float]]) -> dict[str, float]:
    """The same by going through every possible right answer and what each worker would say then."""
    answers = range(WRONG_ANSWERS + 1)
    numbers = {answer: number for number, answer in enumerate(dict.fromkeys(answer for answer, _ in replies))}
    joint = {
        right: prod(p if numbers[said] == right else (1 - p) / WRONG_ANSWERS for said, p in replies)
        for right in answers
    }
    return {answer: joint[number] / sum(joint.values()) for answer, number in numbers.items()}


@given(REPLIES)
def test_an_answer_is_as_likely_as_the_cases_in_which_it_is_right(replies):
    assert weigh_answers(replies) == pytest.approx(count_cases(replies))


def test_one_reply_is_as_likely_as_its_worker_and_agreement_makes_it_likelier():
    assert weigh_answers([("a", 0.6)]) == {"a": pytest.approx(0.6)}
    assert weigh_answers([("a", 0.6), ("a", 0.6)])["a"] > 0.85
    assert next(iter(weigh_answers([("a", 0.3), ("b", 0.8), ("a", 0.3)]))) == "b", "one who knows outweighs two"


def test_more_different_answers_than_were_thought_of_are_weighed_all_the_same():
    weighed = weigh_answers([(str(number), 0.5) for number in range(2 * WRONG_ANSWERS)])
    assert sum(weighed.values()) < 1 and len({round(chance, 9) for chance in weighed.values()}) == 1


def test_who_is_likely_alone_is_asked_alone_and_two_cheap_ones_in_place_of_a_dear_one():
    prices = {"dear": 10.0, "cheap": 1.0, "other": 1.0}
    assert choose_next({"dear": 0.9, "cheap": 0.3, "other": 0.3}, prices, []) == ("dear",)
    assert set(choose_next({"dear": 0.9, "cheap": 0.75, "other": 0.75}, prices, [])) == {"cheap", "other"}
    assert choose_next({"dear": 0.9, "cheap": 0.75}, {"dear": 1.0, "cheap": 1.0}, []) == ("dear",)


def test_nobody_more_is_asked_where_no_few_of_them_can_make_the_answer_sure():
    assert choose_next({"a": 0.2, "b": 0.25}, {"a": 0.0, "b": 0.0}, []) == ("b",), "somebody must answer"
    assert choose_next({"b": 0.2}, {"b": 0.0}, [("x", 0.3)]) == ()
    assert choose_next({}, {}, [("x", 0.3)]) == ()


@given(st.dictionaries(st.sampled_from("pqrstuv"), CHANCES, min_size=1, max_size=6), REPLIES)
def test_those_who_are_asked_next_would_make_the_leading_answer_sure(chances, replies):
    asked = choose_next(chances, dict.fromkeys(chances, 1.0), replies)
    leading = next(iter(weigh_answers(replies)))
    agreeing = [(leading, chances[worker]) for worker in asked]
    assert not asked or weigh_answers([*replies, *agreeing])[leading] >= SURE
    every = [set(names) for names in product(chances, repeat=min(3, len(chances)))] if not asked else []
    assert all(
        weigh_answers([*replies, *((leading, chances[name]) for name in names)])[leading] < SURE for names in every
    )
