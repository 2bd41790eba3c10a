"""The draw of a question of any subject, and how often each kind is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from podium_lessons.everyday.questions.combinations import draw_combination
from podium_lessons.everyday.questions.companies import draw_company, draw_exchange
from podium_lessons.everyday.questions.countries import draw_compared, draw_fact
from podium_lessons.everyday.questions.dates import draw_dates
from podium_lessons.everyday.questions.places import draw_airport, draw_distances, draw_zones
from podium_lessons.everyday.questions.problems import draw_problem
from podium_lessons.everyday.questions.question import EverydayQuestion
from podium_lessons.everyday.questions.sums_and_units import (
    draw_list,
    draw_molecule,
    draw_sum,
    draw_temperature,
    draw_units,
)

Draw = Callable[[str, Random], EverydayQuestion]

# The draws of each subject with their weights; a subject is drawn alone as the source `everyday:SUBJECT`.
SUBJECTS: Mapping[str, tuple[tuple[Draw, float], ...]] = {
    "sums": ((draw_sum, 20), (draw_list, 2)),
    "problems": ((draw_problem, 6),),
    "units": ((draw_units, 8), (draw_temperature, 2), (draw_molecule, 3)),
    "dates": ((draw_dates, 16), (draw_zones, 5)),
    "places": ((draw_distances, 6), (draw_airport, 2), (draw_fact, 6), (draw_compared, 6)),
    "companies": ((draw_company, 4), (draw_exchange, 3)),
    "combined": ((draw_combination, 12),),
}


def draw_question(split: str, random: Random, subject: str = "") -> EverydayQuestion:
    """A question of one subject, or of any, in this split's words."""
    draws, weights = zip(*_list_draws(subject), strict=True)
    draw: Draw = random.choices(draws, weights)[0]
    return draw(split, random)


def _list_draws(subject: str) -> Sequence[tuple[Draw, float]]:
    return SUBJECTS[subject] if subject else [draw for draws in SUBJECTS.values() for draw in draws]
