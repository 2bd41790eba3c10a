"""What a policy brings exactly, beside what real episodes come to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from bench.agents.experts import CENT
from bench.agents.ground import Judged
from bench.agents.rows import Row
from orchestrator.engine.episode import Episode

SURE, SURPRISING = 1.96, 3.29  # standard deviations: 95 % and 99.9 %


@dataclass(frozen=True, slots=True)
class Play:
    """What a policy brings to one task: exactly, and in the episode that was run."""

    exact: Judged
    observed: Judged


def observe(episode: Episode) -> Judged:
    """What a graded episode came to: right or not, and its price in cents."""
    assert episode.graded is not None, "its verifier asks nobody"
    return Judged(float(episode.graded.correct), episode.usage.cost / CENT)


def average(rows: Sequence[Judged]) -> Judged:
    """The mean of what a policy brings."""
    return Judged(sum(row.right for row in rows) / len(rows), sum(row.cost for row in rows) / len(rows))


def compare_plays(plays: Sequence[Play], name: str) -> Row:
    """What the episodes came to, with the 95 % interval that the exact chances allow; says so on stderr where they are
    further off than in one of a thousand measurements."""
    exact, observed = average([play.exact for play in plays]), average([play.observed for play in plays])
    deviation = sqrt(sum(play.exact.right * (1 - play.exact.right) for play in plays)) / len(plays)
    if abs(observed.right - exact.right) > SURPRISING * deviation + 1e-9:
        print(f"{name}: {observed.right:.4f} of the episodes are right, {exact.right:.4f} is exact", file=sys.stderr)
    return {
        "observed": round(observed.right, 4),
        "observed_low": round(observed.right - SURE * deviation, 4),
        "observed_high": round(observed.right + SURE * deviation, 4),
        "observed_cost": round(observed.cost, 4),
        "episodes": len(plays),
    }
