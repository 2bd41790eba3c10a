"""What a call asks for in words, and what a worker may be called with; both are total."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.tasks.practice.guess_arguments import find_parameter_hint, list_options, list_quoted
from trainer.tasks.practice.phrase import (
    Phrase,
    ask_for,
    ask_for_both,
    changes_with_time,
    describe_call,
    describe_field,
    drop_switched_off,
    list_offered_paths,
)

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
        ("GDP of a country (2023 est.)", {"name": "Chile"}, Phrase("GDP of Chile")),
        ("The distance between two places: 'LIS to GRU'.", {"a": "LIS", "b": "GRU"},
         Phrase("the distance between LIS and GRU")),
        ("get_weather", {"city": "Oslo"}, Phrase("get_weather in Oslo")),
        ("Get country by code", {"code": "PE"}, Phrase("the country with code PE")),
        ("Search by country name", {"name": "Peru"}, Phrase("the entry with country name Peru")),
        ("Return the last business day of a given month for a country.", {"year": 2026, "month": 3, "country": "SE"},
         Phrase("the last business day of month 3 for SE in 2026")),
        ("Count business days between two dates.", {"start_date": "a", "end_date": "b", "country": "SE"},
         Phrase("count business days from a to b in SE", True)),
    ],
)  # fmt: skip
def test_a_call_is_described_as_a_person_would_ask_for_it(description, arguments, phrase):
    assert describe_call(description, arguments) == phrase


def test_what_holds_only_where_a_switch_is_on_is_left_out_of_the_words():
    description = "Returns the day on/after (inclusive) or strictly after a date."
    rules = {"inclusive": {"type": "boolean", "default": False}, "date": {"type": "string"}}
    assert drop_switched_off(description, rules) == "Returns the day strictly after a date."
    rules["inclusive"]["default"] = True
    assert drop_switched_off(description, rules) == description


@pytest.mark.parametrize(
    ("text", "path", "asked"),
    [
        ("the country with code PE", "[0].population", "the population of the country with code PE"),
        ("the country with code PE", "[0].name.official", "the official name of the country with code PE"),
        ("the country with code PE", "", "the country with code PE"),
        ("the weather in Oslo", ".data.windSpeed", "the wind speed of the weather in Oslo"),
        ("the next business day after a", ".next_business_day", "the next business day after a"),
    ],
)
def test_a_field_is_asked_for_by_its_name_unless_the_words_name_it(text, path, asked):
    assert describe_field(Phrase(text), path) == Phrase(asked)


def test_a_second_wish_that_the_field_does_not_answer_is_left_out():
    phrase = Phrase("count business days and list weekday holidays from a to b", True)
    assert describe_field(phrase, ".business_days").text == "count business days from a to b"


def test_fields_that_the_description_names_are_asked_for_and_truths_only_then():
    fields = {".next_day": ["a", "b"], ".skipped": [1, 2], ".is_holiday": [True, False], ".cca3": ["PER", "DEU"]}
    assert list_offered_paths("Returns the next day after a date.", fields) == {".next_day"}
    assert list_offered_paths("Returns a calendar entry.", fields) == {".next_day", ".skipped"}
    assert list_offered_paths("Checks whether a date is a holiday.", fields) == {".is_holiday"}


@pytest.mark.parametrize(
    ("description", "changes"),
    [("Returns the current time.", True), ("The latest rates.", True), ("Returns a rate. Now with tax.", False)],
)
def test_answers_of_the_moment_are_recognised(description, changes):
    assert changes_with_time(description) is changes


def test_a_docstring_says_what_each_parameter_takes():
    text = 'Checks a date.\n\nArgs:\n    date: A day, e.g. "2026-04-21",\n        not earlier.\n    country: A code.\n'
    assert find_parameter_hint(text, "date") == 'A day, e.g. "2026-04-21", not earlier.'
    assert find_parameter_hint(text, "country") == "A code." and find_parameter_hint(text, "year") == ""


def test_parameters_of_a_well_known_kind_take_its_usual_values():
    assert "DE" in list_options({"type": "string"}, "country: ISO 3166-1 alpha-2 code", [])
    assert "2025-05-01" in list_options({"type": "string", "format": "date"}, "", [])
    assert 12 in list_options({"type": "integer"}, "month: of the year", [])


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
