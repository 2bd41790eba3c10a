"""Means with intervals, resampled over tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its 95 % interval; all NaN-free, and the interval is the whole range without data."""

    mean: float
    low: float
    high: float


def bootstrap_mean(scores: Sequence[float], seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """Mean of scores in [0, 1] with a 95 % percentile bootstrap interval (Efron 1979), reproducible by seed.

    When all scores are equal the bootstrap sees no spread; then Wilson's interval (1927) is given, which
    stays honest about how few tasks there were.
    """
    import numpy as np

    if not scores:
        return Estimate(0.0, 0.0, 1.0)
    values = np.asarray(scores, dtype=float)
    mean = float(values.mean())
    if float(values.min()) == float(values.max()):
        return Estimate(mean, *wilson(mean, len(values)))
    # How often each distinct score is drawn is multinomial: the same resampling without an array of all draws
    distinct, counts = np.unique(values, return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(len(values), counts / len(values), size=resamples)
    low, high = np.percentile(drawn @ distinct / len(values), [2.5, 97.5])
    return Estimate(mean, float(low), float(high))


def wilson(share: float, count: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's 95 % interval of a share observed in `count` trials; it always holds the share."""
    centre = share + z * z / (2 * count)
    spread = z * ((share * (1 - share) + z * z / (4 * count)) / count) ** 0.5
    scale = 1 + z * z / count
    low, high = (centre - spread) / scale, (centre + spread) / scale
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which this share of `values` lies, interpolated; 0 without values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
