"""The words of a command line are those that the module shlex makes of it."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pool_registry.processes.shell_words import list_words

LINES = st.text("ab \t\n'\"\\|<>;&é#$")


def split_with_shlex(line: str, operators: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=operators or False)
    lexer.whitespace_split, lexer.commenters = True, ""
    return list(lexer)


@given(LINES, st.sampled_from(["", "|<>;"]))
def test_a_line_has_the_words_that_a_shell_makes_of_it(line: str, operators: str):
    try:
        expected = split_with_shlex(line, operators)
    except ValueError:
        with pytest.raises(ValueError, match=r"No (closing quotation|escaped character)"):
            list(list_words(line, operators))
        return
    assert list(list_words(line, operators)) == expected


def test_operators_are_words_of_their_own():
    assert list(list_words("curl 'a b'|jq .;x", "|;")) == ["curl", "a b", "|", "jq", ".", ";", "x"]
