"""What a policy brings exactly, beside what real episodes come to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from bench.agents.ground import Judged
from bench.agents.rows import Row

SURE, SURPRISING = 1.96, 3.29  # standard deviations: 95 % and 99.9 %


@dataclass(frozen=True, slots=True)
class Play:
    """What a policy brings to one task: exactly, and in the episode that was run. Cost in cents."""

    judged: Judged
    right: bool
    cost: float


def average(rows: Sequence[Judged]) -> Judged:
    """The mean of what a policy brings."""
    return Judged(sum(row.right for row in rows) / len(rows), sum(row.cost for row in rows) / len(rows))


def compare_plays(plays: Sequence[Play], name: str) -> Row:
    """What the episodes came to, with the 95 % interval that the exact chances allow; says so on stderr where they are
    further off than in one of a thousand measurements."""
    count = len(plays)
    observed, exact = sum(play.right for play in plays) / count, sum(play.judged.right for play in plays) / count
    deviation = sqrt(sum(play.judged.right * (1 - play.judged.right) for play in plays)) / count
    if abs(observed - exact) > SURPRISING * deviation + 1e-9:
        print(f"{name}: {observed:.4f} of the episodes are right, {exact:.4f} is exact", file=sys.stderr)
    return {
        "observed": round(observed, 4),
        "observed_low": round(observed - SURE * deviation, 4),
        "observed_high": round(observed + SURE * deviation, 4),
        "observed_cost": round(sum(play.cost for play in plays) / count, 4),
        "episodes": count,
    }
