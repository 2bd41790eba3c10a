"""Whether answers agree: what counts as the same, who has no vote, and what a tie is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.reader.refusal import REFUSAL
from trainer.tasks.practice.agents.agree import clean_answer, find_agreement, is_empty, join_judged, make_rule


def agree(written: str, *replies: str, needed: int = 2):
    """The agreement of an author and so many agents on what it wrote."""
    texts = {"author": written} | {str(place): reply for place, reply in enumerate(replies)}
    return find_agreement(written, texts, needed)


@pytest.mark.parametrize(
    ("replies", "answer", "votes"),
    [
        (["1,234", "1234", "1234.0"], 1234, 3),
        (["Paris.", "paris", '"Paris"'], ["Paris"], 3),
        (["Seine", "Seine", "Rhine"], ["Seine"], 2),
        (["Rhein", "Das weiß ich leider nicht", "Rhein!"], ["Rhein"], 2),
        (["-3", "−3", "3"], -3, 2),
        (["<answer>7</answer>", "7", "8"], 7, 2),
    ],
)
def test_answers_are_the_same_as_numbers_or_texts(replies, answer, votes):
    agreement = agree(*replies)
    assert agreement is not None and (agreement.answer, agreement.votes) == (answer, votes)


@pytest.mark.parametrize(
    "replies",
    [
        ["1", "2", "3"],
        ["Paris", "Paris", "Rome", "Rome"],
        ["42", "I don't know", "I don't know", "I don't know"],
        ["Rhein", "Keine Ahnung", "Keine Ahnung"],
        ["7", "", ""],
        ["York", "New York"],
        ["word " * 40, "word " * 40],
    ],
    ids=["all differ", "a tie", "not knowing", "in another language", "empty", "a part", "no short answer"],
)
def test_no_agreement(replies):
    assert agree(*replies) is None


def test_others_that_agree_on_something_else_keep_nothing():
    """The author's answer is the one that has to be confirmed: what others all say instead may be that they pass."""
    assert agree("Bern", "Basel", "Basel", "Basel") is None and agree("Bern", "Bern", "", "").votes == 2


def test_a_sentence_around_the_answer_is_right_but_no_vote():
    agreement = agree("Canberra", "Canberra", "The capital is Canberra.", "Sydney")
    assert agreement is not None and agreement.votes == 2 and agreement.right == {"author", "0", "1"}


@pytest.mark.parametrize(("reply", "empty"), [("  ", True), (REFUSAL, True), ("0", False), ("no", False)])
def test_nothing_and_the_refusal_of_a_pool_are_no_answers(reply, empty):
    assert is_empty(reply) == empty


def test_what_a_judge_joins_is_graded_by_each_of_the_texts():
    replies = {"editor": "WHO", "a": "The World Health Organization.", "b": "UNICEF"}
    assert join_judged("WHO", replies, ["editor"], 2) is None
    agreement = join_judged("WHO", replies, ["editor", "a"], 2)
    assert agreement is not None and agreement.kind == "one_of" and agreement.right == {"editor", "a"}
    assert agreement.answer == ["WHO", "The World Health Organization.", "The World Health Organization"]


@given(st.text(max_size=60), st.dictionaries(st.text(max_size=4), st.text(max_size=60), max_size=6), st.integers(2, 4))
def test_any_replies_agree_only_with_enough_votes(written, replies, needed):
    agreement = find_agreement(written, replies, needed)
    assert agreement is None or needed <= agreement.votes <= len(replies)


@given(st.text(max_size=80))
def test_a_clean_answer_stays_as_it_is_and_is_accepted_by_its_own_rule(text):
    answer = clean_answer(text)
    assert clean_answer(answer) == answer
    if answer.strip():
        assert make_rule(answer).accepts(answer)
