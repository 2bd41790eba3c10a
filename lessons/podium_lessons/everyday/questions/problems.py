"""Word problems of GSM8K and SVAMP, each answered by one expression (podium_lessons/scripts/build_word_problems.py)."""

from __future__ import annotations

from functools import cache
from random import Random

from podium_lessons.everyday.asks import evaluate
from podium_lessons.everyday.everyday_data import WordProblem, load_problems
from podium_lessons.everyday.questions.question import EverydayQuestion

TEST_PART = 20  # one in so many problems is kept for the test split


def draw_problem(split: str, random: Random) -> EverydayQuestion:
    """A problem of this split."""
    problem = random.choice(_list_problems(split == "test"))
    text = problem.text.replace("{", "{{").replace("}", "}}")
    return EverydayQuestion(text, {}, (evaluate(problem.expression),))


@cache
def _list_problems(is_test: bool) -> tuple[WordProblem, ...]:
    problems = enumerate(load_problems().problems)
    return tuple(problem for place, problem in problems if (place % TEST_PART == 0) == is_test)
