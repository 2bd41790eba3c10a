"""Shortened text has the length that was asked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pool_registry.text import excerpt, one_line, shorten


@given(st.text(), st.integers(2, 50))
def test_a_shortened_text_fits_and_begins_as_before(text, max_chars):
    short = shorten(text, max_chars)
    assert len(short) <= max_chars and (short == text or text.startswith(short[:-2]))


def test_an_excerpt_names_the_full_length():
    assert excerpt("x" * 1500, 3) == "xxx … (1,500 characters in all)"
    assert excerpt("abc", 3) == "abc" and one_line(" a\n b\t") == "a b"
