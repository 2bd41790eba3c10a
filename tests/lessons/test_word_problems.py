"""Word problems that people wrote: what is kept of GSM8K and SVAMP, and how they are drawn."""

from __future__ import annotations

import json

import pytest

from podium_lessons.everyday.everyday_data import load_problems
from podium_lessons.scripts.build_word_problems import (
    is_usable,
    join_steps,
    list_unused_figures,
    read_gsm8k,
    read_svamp,
)
from pool_registry.workers.calculator import evaluate
from trainer.tasks.registry import open_source
from trainer.tasks.task import normalize_query

CLIPS = "Natalia sold clips to 48 friends in April, and half as many in May. How many clips did she sell altogether?"


@pytest.mark.parametrize(
    ("text", "steps", "expression"),
    [
        (CLIPS, [("48/2", "24"), ("48+24", "72")], "48 + 48 / 2"),
        ("A $40 coat is 20% off. What does it cost?", [("40*.2", "8"), ("40-8", "32")], "40 - 20 / 100 * 40"),
        ("Each of 3 kids gets 4 pens and 4 pads.", [("4+4", "8"), ("8*3", "24")], "(4 + 4) * 3"),
        ("2 boxes of 4 and 8 more, each twice.", [("2*4", "8"), ("8+8", "16")], None),  # which of the two is 8?
    ],
)
def test_the_steps_of_a_solution_become_one_expression(text, steps, expression):
    assert join_steps(text, steps) == expression


@pytest.mark.parametrize(
    ("text", "expression", "answer", "is_kept"),
    [
        (CLIPS, "48 + 48 / 2", 72, True),
        (CLIPS, "48 + 48 / 2", 71, False),  # another answer
        (CLIPS, "48 + 17", 65, False),  # a figure from nowhere
        ("Ann has 3 red and 4 green pens. How many red pens has she?", "3 * 1", 3, False),  # leaves 4 out
        ("It is 6 by 7. " * 20, "6 * 7", 42, False),  # too long
    ],
)
def test_a_problem_is_kept_when_its_expression_says_all_and_is_right(text, expression, answer, is_kept):
    assert is_usable(text, expression, answer) == is_kept


@pytest.mark.parametrize(
    ("text", "expression", "unused"),
    [
        ("perimeter of a 12 by 7 rectangle", "2 * pi * 12", [7]),
        ("perimeter of a 12 by 7 rectangle", "2 * (12 + 7)", []),
        ("the TV was 799, now there is 15 % off", "799 * 0.85", []),
        ("1,250 less 8 %", "1250 - 0.08 * 1250", []),
        ("two tips, 18% on 64.50", "64.5 * 100 / 100", [18]),
        ("2 weeks at 30 a day", "14 * 30", []),
    ],
)
def test_a_figure_may_be_written_in_other_units_and_as_a_share(text, expression, unused):
    assert list_unused_figures(text, expression) == unused


def test_both_collections_are_read(tmp_path):
    svamp = tmp_path / "SVAMP.json"
    row = {"Body": "Dan had $ 4. If he has $ 3 left", "Question": "How much is gone?", "Equation": "( 4.0 - 3.0 )"}
    svamp.write_text(json.dumps([{**row, "Answer": 1.0}]))
    gsm8k = tmp_path / "train.jsonl"
    gsm8k.write_text(json.dumps({"question": CLIPS, "answer": "<<48/2=24>>24\n<<48+24=72>>72\n#### 72"}) + "\n")
    assert list(read_svamp(svamp)) == [("Dan had $4. If he has $3 left, how much is gone?", "4 - 3", 1.0)]
    assert list(read_gsm8k(gsm8k)) == [(CLIPS, "48 + 48 / 2", 72.0)]


def test_every_expression_has_a_value_and_holds_the_figures_of_its_text():
    problems = load_problems().problems
    assert len({problem.text for problem in problems}) == len(problems) > 2000
    for problem in problems:
        assert isinstance(evaluate(problem.expression), int | float)
        assert not list_unused_figures(problem.text, problem.expression)


def simplify(text: str) -> str:
    return normalize_query(text).casefold().rstrip(".?! ")


@pytest.mark.medium
def test_no_split_has_a_problem_of_another_and_none_stands_in_the_questions_by_hand():
    problems = {simplify(problem.text) for problem in load_problems().problems}
    drawn = {
        split: problems & {simplify(task.query) for task in open_source("everyday:problems").tasks(split, 200, 0)}
        for split in ("train", "validation", "test")
    }
    assert all(len(texts) > 40 for texts in drawn.values())
    assert not drawn["train"] & drawn["validation"] and not (drawn["train"] | drawn["validation"]) & drawn["test"]
    assert not problems & {simplify(task.query) for task in open_source("everyday:held_out").tasks("test", 1000)}
