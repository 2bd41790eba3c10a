"""Made queries are those that a person would type: what is left of a description or a form is struck."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.tasks.practice.clauses import ask_directly, count_things, name_thing, to_base
from trainer.tasks.practice.measures import list_input_measures, list_output_measures
from trainer.tasks.practice.naturalness import find_problem
from trainer.tasks.practice.phrase import Phrase, ask_for, ask_for_both, describe_call, describe_field, share_end


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("How many pieces of spelt roll lie in the shelf, e.g. 'plum cake', please.", "an example"),
        ("Yearly fee in euros for junior like junior or senior, please.", "an example"),
        ("What is the product of two numbers?", "stand for a value"),
        ("What is the fare for so many kilometres?", "stand for a value"),
        ("Product (a 3, b 5) and what a customer pays", "as in a form"),
        ("What is city_of for Acme?", "as in a form"),
        ("Tell me the how many goals Nadia has", "missing or repeated"),
        ("Add 20 % and give me the price of of tea", "missing or repeated"),
        ("First add 4. With it, the price by the result", "no name"),
        ("Add 5. What is the price of tea?", "run together"),
    ],
)
def test_what_no_person_would_type_is_found(query, problem):
    assert problem in find_problem(query)


@pytest.mark.parametrize(
    "query",
    [
        "who supplies hinges",
        "What is the room number of Dr. Lund's surgery?",
        "shelf of Emma?",
        "convert 1.8 m to feet",
    ],
)
def test_what_a_person_would_type_stays(query):
    assert find_problem(query, {"city_of"}, ["hinges"]) == ""


def test_names_of_the_data_are_the_persons_own():
    assert find_problem("the price of a_b (large) for Acme") and not find_problem(
        "the price of a_b (large) for Acme", (), ["a_b (large)"]
    )


@pytest.mark.parametrize(
    ("clause", "subject", "question"),
    [
        ("how many goals Nadia has scored this season", "Nadia", "how many goals has Nadia scored this season"),
        ("where Emma stands", "Emma", "where does Emma stand"),
        ("how many pieces of hinges we have in stock", "hinges", "how many pieces of hinges do we have in stock"),
        ("on which weekday Dr Lund holds a late clinic", "Dr Lund", "on which weekday does Dr Lund hold a late clinic"),
        ("which team Mei is in", "Mei", "which team is Mei in"),
        ("when the shop opens on Monday", "Monday", "when does the shop open on Monday"),
        ("who supplies tape", "tape", "who supplies tape"),
        ("where tea", "tea", ""),
    ],
)
def test_a_clause_is_asked_with_its_verb_in_front(clause, subject, question):
    assert ask_directly(clause, [subject]) == question


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("the number of copies of Emma that we own", "how many copies of Emma we own"),
        ("the points that Emma has", "how many points Emma has"),
        ("the packs of Emma in the cupboard", "how many packs of Emma there are in the cupboard"),
        ("the price of Emma", ""),
    ],
)
def test_numbers_of_things_are_counted(text, clause):
    assert count_things(text, ["Emma"]) == clause


@pytest.mark.parametrize(("verb", "base"), [("has", "have"), ("carries", "carry"), ("teaches", "teach"), ("took", "")])
def test_verbs_have_a_base(verb, base):
    assert to_base(verb) == base


def test_clauses_become_parts_of_other_questions_where_they_are_things():
    assert name_thing("which team Mei is in") == "the team Mei is in"
    assert name_thing("who supplies tape") == "whoever supplies tape"
    assert name_thing("how many goals Mei has") == ""


@pytest.mark.parametrize(
    ("description", "arguments", "text"),
    [
        ("Number of copies of a book that we own", {"title": "Emma"}, "the number of copies of Emma that we own"),
        ("Where a book stands (shelf mark), e.g. 'F12'.", {"title": "Emma"}, "where Emma stands"),
        ("Pieces of an item (e.g. Hinges) in stock", {"item": "tape"}, "the pieces of tape in stock"),
        ("Fee for a category like junior or senior.", {"category": "adult"}, "the fee for adult"),
        ("Product of two numbers", {"a": 3, "b": 5}, "the product of 3 and 5"),
        ("Converts kilometres to miles.", {"km": 42}, "convert 42 kilometres to miles"),
        ("Fare in euros for a trip of so many kilometres.", {"km": 1}, "the fare in euros for a trip of 1 kilometre"),
        ("Compute the BMI from weight (kg) and height (m).", {"weight_kg": 70, "height_m": 1.8},
         "compute the BMI from a weight of 70 kg and a height of 1.8 m"),
        ("Adds 20 % VAT to an amount in euros.", {"amount": 9.5}, "add 20 % VAT to 9.5 euros"),
    ],
)  # fmt: skip
def test_arguments_take_the_place_of_the_words_for_them(description, arguments, text):
    assert describe_call(description, arguments).text == text


def test_a_field_is_asked_for_without_the_other_that_the_description_names():
    phrase = describe_call("Gets the phone number and the opening days of a shop.", {"shop": "Colora"})
    assert describe_field(phrase, ".opening_days").text == "the opening days of Colora"


def test_two_wishes_are_one_sentence_only_about_one_subject():
    price, aisle, other = (Phrase(text) for text in ("the price of tea", "the aisle of tea", "the price of oil"))
    assert share_end(price, aisle) and not share_end(price, other)
    assert "price and the aisle of tea" in ask_for_both(price, aisle, Random(0))


def test_a_name_is_not_asked_for_as_a_thing():
    phrase = Phrase("the coach of Otters").answered_by("Tom Bakke")
    assert not [query for seed in range(60) if "hat" in (query := ask_for(phrase, Random(seed)))]


def test_a_price_is_not_fed_where_kilometres_go():
    fare = "Fare in euros for a trip of so many kilometres."
    assert list_output_measures(fare) == {"money"} and list_input_measures("km", fare) == {"distance"}


@given(st.text(max_size=80), st.lists(st.text(max_size=10), max_size=3))
def test_any_text_can_be_looked_at(text, values):
    assert isinstance(find_problem(text, values, values), str)
    assert isinstance(ask_directly(text, values), str)
    assert isinstance(count_things(text, values), str)
