"""Whether answers agree: what counts as the same, who has no vote, and what a tie is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.tasks.practice.agents.agree import clean_answer, find_agreement, join_judged, make_rule, refuses


@pytest.mark.parametrize(
    ("replies", "answer", "votes"),
    [
        (["1,234", "1234", "1234.0"], 1234, 3),
        (["Paris.", "paris", '"Paris"'], ["Paris"], 3),
        (["The Seine", "Seine", "Rhine"], ["Seine"], 2),
        (["-3", "−3", "3"], -3, 2),
        (["<answer>7</answer>", "7", "8"], 7, 2),
    ],
)
def test_answers_are_the_same_as_numbers_or_texts(replies, answer, votes):
    agreement = find_agreement({str(place): reply for place, reply in enumerate(replies)}, 2)
    assert agreement is not None and (agreement.answer, agreement.votes) == (answer, votes)


@pytest.mark.parametrize(
    "replies",
    [
        ["1", "2", "3"],
        ["Paris", "Paris", "Rome", "Rome"],
        ["I don't know", "I don't know", "I don't know"],
        ["", "", ""],
        ["York", "New York"],
        ["word " * 40, "word " * 40],
    ],
    ids=["all differ", "a tie", "refusals", "empty", "a part", "no short answer"],
)
def test_no_agreement(replies):
    assert find_agreement({str(place): reply for place, reply in enumerate(replies)}, 2) is None


def test_a_sentence_around_the_answer_is_right_but_no_vote():
    replies = {"a": "Canberra", "b": "Canberra", "c": "The capital is Canberra.", "d": "Sydney"}
    agreement = find_agreement(replies, 2)
    assert agreement is not None and agreement.votes == 2 and agreement.right == {"a", "b", "c"}


@pytest.mark.parametrize("reply", ["I do not know.", "Sorry, I cannot say", "unknown", "N/A", "I'm not sure", "  "])
def test_a_refusal_is_no_answer(reply):
    assert refuses(reply)


@pytest.mark.parametrize("reply", ["Cannes", "Known", "The Unforgiven", "0", "no"])
def test_an_answer_is_no_refusal(reply):
    assert not refuses(reply)


def test_what_a_judge_joins_is_graded_by_each_of_the_texts():
    replies = {"editor": "WHO", "a": "The World Health Organization.", "b": "UNICEF"}
    assert join_judged("WHO", replies, ["editor"], 2) is None
    agreement = join_judged("WHO", replies, ["editor", "a"], 2)
    assert agreement is not None and agreement.kind == "one_of" and agreement.right == {"editor", "a"}
    assert agreement.answer == ["WHO", "The World Health Organization.", "World Health Organization"]


@given(st.dictionaries(st.text(max_size=4), st.text(max_size=60), max_size=6), st.integers(2, 4))
def test_any_replies_agree_only_with_enough_votes(replies, needed):
    agreement = find_agreement(replies, needed)
    assert agreement is None or needed <= agreement.votes <= len(replies)


@given(st.text(max_size=80))
def test_a_clean_answer_stays_as_it_is_and_is_accepted_by_its_own_rule(text):
    answer = clean_answer(text)
    assert clean_answer(answer) == answer
    if answer.strip():
        assert make_rule(answer).accepts(answer)
