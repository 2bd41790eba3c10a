"""Wordings: choices spelled out, one text kept from training, every query read back by the words it is put in."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_lessons.wordings import Wordings, expand_choices, make_templates, match_templates
from trainer.tasks import SUITES, find_task
from trainer.tasks.suite import SPLITS

CELLS = [(family, level) for family, suite in SUITES.items() for level in suite.levels]


def test_every_choice_makes_a_wording():
    assert expand_choices("[Add|Sum] it[| up].") == ["Add it.", "Add it up.", "Sum it.", "Sum it up."]
    assert expand_choices("No choice {here}.") == ["No choice {here}."]


def test_a_text_is_drawn_as_often_as_another_whatever_its_choices():
    wordings = Wordings([list("abcdefgh"), ["i"], ["j"], ["held out"]])
    random = Random(0)
    drawn = Counter(wordings[wordings.draw("train", random)] for _ in range(3000))
    assert set(drawn) == set("abcdefghij")
    assert 850 < drawn["i"] < 1150 and 850 < sum(drawn[letter] for letter in "abcdefgh") < 1150


@given(sizes=st.lists(st.integers(1, 5), min_size=3, max_size=8), seed=st.integers(0, 99))
def test_the_last_text_is_for_the_test_split_alone(sizes, seed):
    wordings = Wordings([list(range(size)) for size in sizes])
    random = Random(seed)
    for split in SPLITS:
        drawn = [wordings.draw(split, random) for _ in range(60)]
        assert any(map(wordings.is_held_out, drawn)) == (split == "test")
        if split == "test":
            assert min(drawn) >= sum(sizes[:-3])


@pytest.mark.medium
@pytest.mark.parametrize(("family", "level"), CELLS)
def test_a_query_is_read_back_from_its_words(family, level):
    suite = SUITES[family]
    for split in SPLITS:
        for index in range(60):
            query = find_task(family, level, split, index).query
            read = suite.read(query)
            assert read is not None and suite.write(read) == query and suite.level_of(read) == level
            assert not suite.uses_new_words(read) or split == "test"


@pytest.mark.parametrize(("family", "level"), [(family, level) for family, level in CELLS if level < 4])
def test_one_test_task_in_three_is_in_new_words(family, level):
    suite = SUITES[family]
    new = sum(suite.uses_new_words(suite.read(find_task(family, level, "test", index).query)) for index in range(90))
    assert 15 <= new <= 45


def test_case_space_and_the_last_mark_do_not_matter():
    kinds = {
        "add": make_templates(["Add {n} to it."], {"n": r"\d+"}),
        "ask": make_templates(["Why?", "What is {n}[, please|]?"], {"n": r"\d+"}),
    }
    assert match_templates(kinds, "  what IS  5, please") == ("ask", 1, {"n": "5"})
    assert match_templates(kinds, "What is five?") is None
