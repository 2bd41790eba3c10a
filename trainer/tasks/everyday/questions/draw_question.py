"""The draw of a question of any kind, and how often each kind is drawn."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from trainer.tasks.everyday.questions.companies import draw_company, draw_exchange
from trainer.tasks.everyday.questions.countries import draw_compared, draw_fact
from trainer.tasks.everyday.questions.dates import draw_dates
from trainer.tasks.everyday.questions.mixtures import draw_mixture
from trainer.tasks.everyday.questions.places import draw_airport, draw_distances, draw_zones
from trainer.tasks.everyday.questions.question import EverydayQuestion
from trainer.tasks.everyday.questions.sums_and_units import (
    draw_list,
    draw_molecule,
    draw_sum,
    draw_temperature,
    draw_units,
)

Draw = Callable[[str, Random], EverydayQuestion]

_DRAWS: tuple[tuple[Draw, float], ...] = (
    (draw_sum, 20), (draw_list, 2), (draw_units, 8), (draw_temperature, 2), (draw_dates, 16), (draw_zones, 5),
    (draw_distances, 6), (draw_airport, 2), (draw_fact, 6), (draw_compared, 6), (draw_molecule, 3),
    (draw_company, 4), (draw_exchange, 3), (draw_mixture, 4),
)  # fmt: skip


def draw_question(split: str, random: Random) -> EverydayQuestion:
    """A question of any kind in this split's words."""
    draws, weights = zip(*_DRAWS, strict=True)
    draw: Draw = random.choices(draws, weights)[0]
    return draw(split, random)
