"""The choice of the worker for a need: a score, less what price and latency cost, and a draw with its probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from random import Random

from orchestrator.choice.outcomes import Record
from orchestrator.choice.scores import Candidate, find_score
from orchestrator.plan import WorkerChoice
from pool_registry.language_models.completion import Draw

SLOW, EXPENSIVE = 0.05, 0.05  # what the slowest and the most expensive candidate lose: enough to break ties
SHARPNESS = 0.1  # of a draw at temperature 1: a candidate that is better by this is e times as likely


@dataclass(frozen=True, slots=True)
class Chooser:
    """Orders the candidates for a need by one of the SCORES, on the pool of this name. Greedy, or drawn where `draw`
    has a temperature."""

    by: str
    record: Record
    draw: Draw | None = None
    pool: str = ""

    def order(self, need: str, candidates: Sequence[Candidate]) -> list[tuple[Candidate, WorkerChoice]]:
        """The candidates, the chosen one first, each with the choice that it would be. Blocks: call it from a
        thread."""
        if not candidates:
            return []
        by, score = find_score(self.by, self.pool)
        chances = score(need, candidates)
        names = [candidate.worker for candidate in candidates]
        slow, expensive = (
            _shares([self.record.wall_s(name) for name in names]),
            _shares([*map(self.record.cost, names)]),
        )
        values = [
            chance - SLOW * seconds - EXPENSIVE * price
            for chance, seconds, price in zip(chances, slow, expensive, strict=True)
        ]
        order, probabilities = _draw_order(values, self.draw, need)
        return [
            (
                candidates[place],
                describe_chance(candidates[place], chances[place], probabilities[place], by, len(candidates)),
            )
            for place in order
        ]


def describe_chance(candidate: Candidate, chance: float, probability: float, by: str, among: int) -> WorkerChoice:
    """The record of a choice `among` so many candidates, with what the score `by` read of this one."""
    return WorkerChoice(
        success=round(chance, 4),
        probability=round(probability, 4),
        by=by,
        among=among,
        right=candidate.right,
        of=len(candidate.outcomes),
    )


def _shares(amounts: Sequence[float]) -> list[float]:
    """Each amount as a share of the highest one."""
    highest = max(amounts)
    return [amount / highest if highest > 0 else 0.0 for amount in amounts]


def _draw_order(values: Sequence[float], draw: Draw | None, need: str) -> tuple[list[int], list[float]]:
    """The places in the order of a draw without replacement, and the probability of each to come first. Greedy: the
    highest value first, with certainty; equal ones in their order."""
    places = range(len(values))
    if draw is None or draw.temperature <= 0:
        order = sorted(places, key=lambda place: (-values[place], place))
        return order, [float(place == order[0]) for place in places]
    scale = SHARPNESS * draw.temperature
    weights = [exp((value - max(values)) / scale) for value in values]
    random = Random(f"{draw.seed}/{need}")  # noqa: S311  a draw, no secret
    # The order of values with Gumbel noise is a draw by softmax without replacement (Kool et al., 2019).
    noisy = [value / scale - log(-log(random.uniform(1e-12, 1 - 1e-12))) for value in values]
    return sorted(places, key=lambda place: -noisy[place]), [weight / sum(weights) for weight in weights]
