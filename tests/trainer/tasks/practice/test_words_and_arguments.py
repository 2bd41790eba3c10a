"""What a call asks for in words, and what a worker may be called with; both are total."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.tasks.practice.guess_arguments import list_options, list_quoted
from trainer.tasks.practice.phrase import Phrase, ask_for, ask_for_both, describe_call

TEXT = st.text(max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize(
    ("description", "arguments", "phrase"),
    [
        ("Returns the price of one item in euros.", {"item": "tea"}, Phrase("the price of tea in euros")),
        ("Looks up the total of all orders of a customer.", {"customer": "Acme"},
         Phrase("the total of all orders of Acme")),
        ("Calculates the tax on an amount. Rounds.", {"amount": 12.5}, Phrase("calculate the tax on 12.5", True)),
        ("GDP of a country (2023 est.)", {"name": "Chile"}, Phrase("GDP of a country for Chile")),
        ("The distance between two places: 'LIS to GRU'.", {"a": "LIS", "b": "GRU"},
         Phrase("the distance between two places (a LIS, b GRU)")),
        ("get_weather", {"city": "Oslo"}, Phrase("get_weather for Oslo")),
    ],
)  # fmt: skip
def test_a_call_is_described_as_a_person_would_ask_for_it(description, arguments, phrase):
    assert describe_call(description, arguments) == phrase


@given(TEXT, st.dictionaries(TEXT, TEXT, max_size=3), st.integers())
def test_any_description_and_arguments_give_a_query(description, arguments, seed):
    phrase = describe_call(description, arguments)
    assert isinstance(ask_for(phrase, Random(seed)), str)
    assert ask_for_both(phrase, phrase, Random(seed))


def test_what_a_description_quotes_or_names_is_an_option():
    assert list_quoted("A route such as Lisbon, Rome or 'LIS to GRU'.") == ["LIS to GRU", "Lisbon", "Rome"]


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        ({"enum": ["km", "mile"]}, ["km", "mile"]),
        ({"type": "boolean"}, [True, False]),
        ({"type": "string", "examples": ["a"], "default": "b"}, ["a", "b", "Oslo"]),
        ({"type": "integer", "minimum": 0, "maximum": 8}, [7, 2, 4, 8]),
        ({"type": "object"}, []),
    ],
)
def test_a_parameter_may_be_what_its_schema_says_or_what_occurs(rule, options):
    assert list_options(rule, "", ["Oslo", 7, 2.5]) == options


@given(JSON, TEXT, st.lists(JSON, max_size=4))
def test_any_schema_gives_options_or_none(rule, description, values):
    assert isinstance(list_options(rule, description, values), list)
