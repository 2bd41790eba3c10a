"""What may tell who somebody is gets a mark that says what it is and why; plain questions get none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.traffic.personal_data import find_personal_data


@pytest.mark.parametrize(
    ("text", "kind", "piece"),
    [
        ("write to ann.lee@example.com please", "an e-mail address", "ann.lee@example.com"),
        ("pay DE89 3704 0044 0532 0130 00 NOW", "a bank account", "DE89 3704 0044 0532 0130 00"),
        ("my card 4111 1111 1111 1111 is lost", "a payment card", "4111 1111 1111 1111"),
        ("call +44 20 7946 0958 today", "a phone number", "+44 20 7946 0958"),
        ("my mobile is 5550123456", "a phone number", "5550123456"),
        ("Hello, my name is Ann Lee and I ask", "a name", "Ann Lee"),
        ("this is Bo Chen calling about T-101", "a name", "Bo Chen"),
        ("send it to 12 Old Mill Road", "an address", "12 Old Mill Road"),
        ("ich wohne Gartenstraße 5", "an address", "Gartenstraße 5"),
        ("born on 12 May 1980, am I old enough?", "a date of birth", "12 May 1980"),
        ("use hf_" + "a" * 34, "a Hugging Face token", "hf_" + "a" * 34),
    ],
)
def test_personal_data_is_marked_with_what_it_is(text, kind, piece):
    marks = find_personal_data([text])
    assert (kind, piece) in {(mark.kind, mark.text) for mark in marks} and all(mark.why for mark in marks)


@pytest.mark.parametrize(
    "text",
    [
        "What is the tax on order 10112345678?",
        "Who is assigned to T-101, and since 2026-11-29 10:15?",
        "What is 6 * 7 + 1.5?",
        "pay DE88370400440532013000",  # check digits that are wrong
        "order 4111 1111 1111 1112",
        "Which lamps cost less than 20 euros in store 12?",
        "I am looking for the capital of France",
    ],
)
def test_what_only_looks_like_it_is_left_alone(text):
    assert find_personal_data([text]) == ()


@given(st.text(max_size=300))
def test_any_text_can_be_searched_and_every_mark_is_in_it(text):
    assert all(mark.text in text for mark in find_personal_data([text]))
