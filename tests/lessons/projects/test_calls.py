"""How the steps of a question are written, and what a project's file may not say."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from podium_lessons.lesson_data import FOLDER
from podium_lessons.projects.calls import LookUp, Sum, Work, list_gaps, parse_call
from podium_lessons.projects.project_data import kind_of_gap, list_projects, read_project
from trainer.errors import UnusableTasks


@pytest.mark.parametrize(
    ("text", "call", "gaps"),
    [
        ("stem_price {flower}", LookUp("stem_price", "{flower}"), ["flower"]),
        ("phone $1", LookUp("phone", "$1"), []),
        ("= {n} * ($1 + 2.5)", Sum("{n} * ($1 + 2.5)"), ["n"]),
        ("days {day} $2", Work("days_between", (("start", "{day}"), ("end", "$2"))), ["day"]),
        ("later $1 14", Work("add_days", (("date", "$1"), ("days", "14"))), []),
        (
            "larger {flower} $1 {flower2} $2",
            Work(
                "larger", (("first_name", "{flower}"), ("first", "$1"), ("second_name", "{flower2}"), ("second", "$2"))
            ),
            ["flower", "flower2"],
        ),
    ],
)
def test_a_step_is_a_look_up_a_sum_a_span_or_a_comparison(text, call, gaps):
    assert parse_call(text) == call
    assert list_gaps(call) == gaps


@given(st.text(max_size=40))
def test_any_other_text_is_an_error_that_says_what_to_write(text):
    try:
        parse_call(text)
    except ValueError as error:
        assert "write TOOL {gap}" in str(error) or "is no sum" in str(error)


@pytest.mark.parametrize("text", ["= 1 +", "= 2 ** 3", "= $1 // 2", "= price * 2", "= (1 + 2", "= $1 $2", "= 1.2.3"])
def test_a_sum_is_of_the_four_operations(text):
    with pytest.raises(ValueError, match="is no sum"):
        parse_call(text)


def test_two_gaps_may_stand_for_things_of_one_kind():
    assert [kind_of_gap(gap) for gap in ("flower", "flower2", "bus_line", "bus_line3")] == [
        "flower", "flower", "bus_line", "bus_line",
    ]  # fmt: skip


BROKEN = {
    "a gap that the steps lack": lambda data: data["questions"][0]["texts"].append("and {unheard}?"),
    "a step that quotes a later one": lambda data: data["questions"][0].update(steps=["= $2 + 1", "= $1 + 1"]),
    "a step that nothing quotes": lambda data: data["questions"][0]["steps"].append("= 1 + 1"),
    "an unknown function": lambda data: data["questions"][0].update(
        steps=[data["questions"][0]["steps"][0].replace(data["questions"][0]["steps"][0].split(" ")[0], "nowhere")]
    ),
    "a kind without things": lambda data: data["tools"][0].update(takes="unheard"),
    "one thing in two kinds": lambda data: data["things"].update(again=next(iter(data["things"].values()))),
    "two results at once": lambda data: data["tools"][0].update(gives={"date": [2024, 2025], "text": ["a", "b", "c"]}),
    "a number without room": lambda data: data["tools"][0].update(gives={"number": [3, 3, 0]}),
    "an unknown key": lambda data: data.update(colour="red"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_malformed_file_is_an_error_that_names_it(what, tmp_path):
    data = yaml.safe_load((FOLDER / "projects" / f"{list_projects()[0]}.yaml").read_text(encoding="utf-8"))
    BROKEN[what](data)
    file = tmp_path / "broken.yaml"
    file.write_text(yaml.safe_dump(data), encoding="utf-8")
    with pytest.raises(UnusableTasks, match=r"broken\.yaml is malformed"):
        read_project(file)
