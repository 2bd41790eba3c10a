"""Shortened text has the length that was asked for; clean text is fit for storage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool_registry.actions import clean_text
from pool_registry.text import excerpt, one_line, shorten, show_hidden
from pool_registry.worker import WorkerSpec


@given(st.text(), st.integers(2, 50))
def test_a_shortened_text_fits_and_begins_as_before(text, max_chars):
    short = shorten(text, max_chars)
    assert len(short) <= max_chars and (short == text or text.startswith(short[:-2]))


@given(st.text(st.characters() | st.sampled_from("\0\ud800\udfff")))
def test_clean_text_is_the_same_but_for_what_cannot_be_stored(text):
    clean = clean_text(text)
    assert "\0" not in clean and clean.encode().decode() == clean
    unfit = [char == "\0" or "\ud800" <= char <= "\udfff" for char in text]
    assert [new if bad else old for old, new, bad in zip(text, clean, unfit, strict=True)] == list(clean)
    assert {new for new, bad in zip(clean, unfit, strict=True) if bad} <= {"\ufffd"}


def test_an_excerpt_names_the_full_length():
    assert excerpt("x" * 1500, 3) == "xxx … (1,500 characters in all)"
    assert excerpt("abc", 3) == "abc" and one_line(" a\n b\t") == "a b"


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("pays \u202eevil\u202c now", "pays ‹U+202E›evil‹U+202C› now"),
        ("a\u2066b\u2069", "a‹U+2066›b‹U+2069›"),
        ("rates\U000e0069\U000e0067", "rates‹U+E0069›‹U+E0067›"),
    ],
)
def test_characters_that_turn_or_hide_a_description_are_shown_as_what_they_are(hostile, shown):
    nested = {"parameters": {"properties": {"a": {"type": "string", "description": hostile}}}, "code": hostile}
    spec = WorkerSpec(name="a", kind="mcp", description=hostile, config=nested)
    assert spec.description == shown
    assert spec.config["parameters"]["properties"]["a"]["description"] == shown
    assert spec.config["code"] == hostile, "what is run or sent stays as it is"
    assert WorkerSpec.model_validate_json(spec.model_dump_json()) == spec


def test_scripts_from_right_to_left_and_flags_stay_as_they_are():
    text = "מחזיר שער, می‌خواهم \u200f 👩‍🚀 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
    assert show_hidden(text) == text


def test_a_long_description_stays_within_its_limit():
    assert len(WorkerSpec(name="a", kind="mcp", description="\u202e" * 2000).description) <= 2000
