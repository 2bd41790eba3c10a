"""What `$k` and its fields stand for, and what is said of a part that is not there."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.plan import Step, Turn
from orchestrator.prompt import observation_text
from orchestrator.quotes import count_quoted_chars, escape, explain_missing_part, references, substitute
from pool_registry.actions import Status
from tests.orchestrator.support.engine import Scripted, codes, engine_kinds, play_turns

__all__ = ["engine_kinds"]

VALUES = {
    1: 42.5,
    2: "two",
    3: {"a": [1]},
    4: [{"rate": {"EUR": 1.5}}],
    5: [{"id": 3, "at": [1, 2]}, {"id": 9, "at": []}],
    12: "twelve",
}


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ("$1", 42.5),
        ("$3", {"a": [1]}),
        ("x $1 y", "x 42.5 y"),
        ("$3.", '{"a": [1]}.'),
        ("$2$2", "twotwo"),
        ("$12", "twelve"),
        ("$2nd", "twond"),
        ("$3.a", [1]),
        ("$3.a[0]", 1),
        ("$4[0].rate.EUR", 1.5),
        ("at $4[0].rate.EUR.", "at 1.5."),
        ("$3.b", '{"a": [1]}.b'),
        ("$2.Thanks", "two.Thanks"),
        ("$5[*].id", [3, 9]),
        ("ids: $5[*].id.", "ids: [3, 9]."),
        ("$5[*].at[*]", [[1, 2], []]),
        ("$3.a[*]", [1]),
        ("$5.length", 2),
        ("$3.a.length", 1),
        ("$5[*].at.length", [2, 0]),
        ("there are $5.length.", "there are 2."),
        ("$2.length", "two.length"),
        ("$3.length", '{"a": [1]}.length'),
        ("$5[*].name", f"{json.dumps(VALUES[5])}[*].name"),
        ("$5[*].at[0]", f"{json.dumps(VALUES[5])}[*].at[0]"),  # the second has none
        ("$1[*]", "42.5[*]"),
        ("$4[7]", '[{"rate": {"EUR": 1.5}}][7]'),
        ("$$3.a", "$3.a"),
        ("$1.50", "42.5.50"),
        ("$$", "$"),
        ("$$1", "$1"),
        ("$$$2", "$two"),
        ("$", "$"),
        ("$0 $x 5$", "$0 $x 5$"),
        (["$1", {"k": "$2"}], [42.5, {"k": "two"}]),
        ({"$1": "key stays"}, {"$1": "key stays"}),
        (7, 7),
    ],
)
def test_a_quote_becomes_the_steps_value(written, becomes):
    assert substitute(written, VALUES) == becomes


def test_what_a_value_brings_in_is_not_read_as_a_quote():
    assert substitute("$1 and $2", {1: "$2", 2: "secret"}) == "$2 and secret"


def test_quotes_are_found_at_any_depth():
    assert references({"a": ["$1", {"b": "x $12 $$7"}], "c": 3}) == {1, 12}


@given(st.text())
def test_escaped_text_quotes_nothing_and_comes_back(text):
    assert references(escape(text)) == set()
    assert substitute(escape(text), {}) == text


def test_the_text_that_quotes_bring_in_is_counted_each_time():
    assert count_quoted_chars({"a": "$2 $2", "b": ["$2"]}, VALUES) == 9


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("$3.b", "there is no $3.b: $3 has a"),
        ("$4.rate", "there is no $4.rate: $4 is a list of 1; $4[0] has rate"),
        ("$4[0].price", "there is no $4[0].price: $4[0] has rate"),
        ("$3.length", "there is no $3.length: $3 has a"),
        ("$4[7]", "there is no $4[7]: $4 is a list of 1; $4[0] has rate"),
        ("$5[*].name", "there is no $5[*].name: $5 is a list of 2; $5[0] has id, at"),
        ("$3.a.first", "there is no $3.a.first: $3.a is a list of 1"),
        ({"amounts": [1, ["$3.b"]]}, "there is no $3.b: $3 has a"),
        ("$3.a", None),
        ("$2.pdf", None),  # the name of a file
        ("$1.50", None),
        ("all of $3.b", None),
        ("$8.b", None),  # another rule says that there is no step 8
        (3.5, None),
    ],
)
def test_a_part_that_is_not_there_is_named_with_those_that_are(written, says):
    assert explain_missing_part(written, VALUES) == says


def test_the_names_of_parts_are_left_out_where_outputs_are_hidden():
    assert explain_missing_part("$3.b", VALUES, names_parts=False) == "there is no $3.b"


def test_a_step_that_quotes_a_missing_part_is_malformed_and_calls_nobody():
    episode = play_turns(
        Turn((Step(1, "number", {"value": 2}), Step(2, "number", {"value": "$1.price"}, (1,))), "$2"),
        Turn(answer="$1.value"),
    )
    seen = episode.observations()[2]
    assert seen.status is Status.PARSE_ERR and seen.error is not None
    assert (seen.error.code, seen.error.message) == ("missing_part", "there is no $1.price: $1 has value")
    assert episode.steps[2].started_at is None
    assert episode.answer == 2


def test_an_answer_that_quotes_a_missing_part_is_not_given_and_the_next_turn_reads_why():
    episode = play_turns(Turn((Step(1, "number", {"value": 2}),), "$1.price"), Turn(answer="$1.value"))
    assert (episode.answer, codes(episode)) == (2, {1: "OK"})
    assert "there is no $1.price: $1 has value" in observation_text(episode.rounds[0], 3)


class GivesUp(Scripted):
    gives_up = True


def test_an_orchestrator_that_gives_up_says_which_part_is_missing():
    wrong = Turn((Step(1, "number", {"value": 2}),), "$1.price")
    episode = play_turns(GivesUp(wrong, Turn(answer="$1.price")))
    assert episode.ended is not None and episode.ended.outcome == "gave_up"
    assert "there is no $1.price" in (episode.ended.reason or "")


def test_a_last_turn_whose_answer_quotes_a_missing_part_says_so():
    episode = play_turns(Turn((Step(1, "number", {"value": 2}),), "$1.price"), max_rounds=1)
    assert episode.ended is not None and episode.ended.outcome == "max_rounds"
    assert (episode.ended.reason or "").endswith(" Its answer cannot be given: there is no $1.price: $1 has value")
