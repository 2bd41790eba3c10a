"""Needs and arguments survive writing and reading, and reading is total."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.plan import Step
from orchestrator.reader.fill import BoundNeed, format_fill, parse_fill
from orchestrator.reader.needs import Need, format_needs, parse_needs, quote_question
from orchestrator.reader.refusal import REFUSAL, is_refusal, read_refused_need, refuse

WORDS = st.lists(
    st.sampled_from(["distance", "between", "two", "airports", "yield", "of", "a", "tree"]), min_size=1, max_size=9
)
TEXTS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=20)


@st.composite
def needs(draw):
    """Needs whose access lists name earlier ones only."""
    count = draw(st.integers(1, 6))
    return [
        Need(" ".join(draw(WORDS)), tuple(sorted(draw(st.sets(st.integers(1, place - 1)))) if place > 1 else ()))
        for place in range(1, count + 1)
    ]


@given(needs())
@settings(deadline=None)
def test_needs_are_read_as_they_were_written(written):
    assert parse_needs(format_needs(written)) == written


@given(st.text(max_size=400))
@settings(deadline=None)
def test_any_text_gives_needs_that_see_earlier_ones_only(text):
    for place, need in enumerate(parse_needs(text), start=1):
        assert need.text and all(0 < k < place for k in need.access)


@given(needs(), st.data())
@settings(deadline=None)
def test_arguments_are_read_as_they_were_written(written, data):
    values = st.dictionaries(st.sampled_from(["a", "b_2", "unit"]), st.one_of(TEXTS, st.integers(), st.booleans()))
    steps = [
        Step(place, f"w{place}", {k: str(v).replace("$", "") for k, v in data.draw(values).items()}, need.access)
        for place, need in enumerate(written, start=1)
    ]
    bound = [BoundNeed(need, f"w{place}", 1.0) for place, need in enumerate(written, start=1)]
    turn = parse_fill(format_fill(steps, f"${len(steps)}"), bound, 1)
    assert turn.error is None and turn.answer == f"${len(steps)}"
    assert [(s.id, s.worker, dict(s.arguments), s.access, s.problem) for s in turn.steps] == [
        (s.id, s.worker, dict(s.arguments), s.access, None) for s in steps
    ]
    assert [step.need for step in turn.steps] == [need.text for need in written]


@given(st.text(max_size=400), st.integers(1, 50))
@settings(deadline=None)
def test_any_text_gives_a_turn(text, first_id):
    bound = [BoundNeed(Need("distance"), "miles", 0.9), BoundNeed(Need("sum", (1,)), "adder", 0.8)]
    turn = parse_fill(text, bound, first_id)
    assert turn.error or turn.answer is not None
    assert [step.id for step in turn.steps] in ([], [first_id, first_id + 1])


def test_a_quoted_step_is_seen_without_being_listed():
    bound = [BoundNeed(Need("distance"), "miles", 0.9), BoundNeed(Need("sum"), "adder", 0.8)]
    turn = parse_fill('1. {"route": "LHR to JFK"}\n2. {"expression": "$1 / 2"}\n= $2', bound, 4)
    assert turn.steps[1].access == (4,) and turn.steps[1].arguments == {"expression": "$4 / 2"} and turn.answer == "$5"


def test_a_step_without_readable_arguments_does_not_sink_the_others():
    bound = [BoundNeed(Need("distance"), "miles", 0.9), BoundNeed(Need("sum"), "adder", 0.8)]
    turn = parse_fill('1. {"route": \n2. {"expression": "2"}', bound, 1)
    assert turn.error is None and turn.answer == "$2"
    assert "not JSON" in (turn.steps[0].problem or "") and turn.steps[1].problem is None


def test_a_refusal_names_the_need():
    assert refuse() == REFUSAL and is_refusal(refuse("apple prices")) and not is_refusal(42) and not is_refusal("$1")
    assert read_refused_need(refuse("apple prices")) == "apple prices" and read_refused_need("No apples") == ""
    turn = parse_fill(f"= {refuse('apple prices')}", [BoundNeed(Need("apple prices"), "w", 0.1)], 1)
    assert turn.answer == refuse("apple prices") and not turn.steps


@pytest.mark.parametrize("mark", ["", "= "])
def test_a_refusal_in_the_place_of_arguments_is_an_answer(mark):
    bound = [BoundNeed(Need("distance"), "miles", 0.9)]
    turn = parse_fill(f"{mark}{refuse('distance')}\n", bound, 1)
    assert (turn.error, turn.steps, read_refused_need(turn.answer)) == (None, (), "distance")


def test_a_need_in_quotation_marks_is_a_question_and_is_read_as_it_was_written():
    need = Need(quote_question('May I sign "a loan"  (for $5)\nfor my mother?'))
    assert need.is_question and need.words == "May I sign a loan for 5 for my mother?"
    assert parse_needs(format_needs([need, Need(need.text, (1,))])) == [need, Need(need.text, (1,))]
    plain = Need("distance between two airports")
    assert not plain.is_question and plain.words == plain.text
