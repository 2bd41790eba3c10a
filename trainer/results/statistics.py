"""Means with intervals, resampled over tasks; differences of pairs; counts of wins.

Everything here depends on the values alone and not on their order: two evaluations that found the same
report the same, to the last digit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

RESAMPLES = 10_000
CACHED_INTERVALS = 4096  # intervals; each is known by its few distinct values


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
    if not scores:
        return Estimate(0.0, 0.0, 1.0)
    centre = mean(scores)
    if min(scores) == max(scores):
        return Estimate(centre, *wilson_interval(centre, len(scores)))
    return Estimate(centre, *_percentiles(scores, seed, resamples))


def bootstrap_difference(differences: Sequence[float], seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """Mean of paired differences in [-1, 1] with a 95 % percentile bootstrap interval over the pairs.

    A against B is the mirror image of B against A, exactly. When all differences are equal, the share of tasks
    that might be otherwise has Wilson's bound for none out of so many, and each of them could be -1 or 1.
    """
    if not differences:
        return Estimate(0.0, -1.0, 1.0)
    centre = mean(differences)
    if min(differences) == max(differences):
        _, others = wilson_interval(0.0, len(differences))
        return Estimate(centre, centre - others * (centre + 1), centre + others * (1 - centre))
    negated = [-value for value in differences]
    if sorted(negated) > sorted(differences):  # resample one of the two mirror images, always the same
        low, high = _percentiles(negated, seed, resamples)
        return Estimate(centre, -high, -low)
    return Estimate(centre, *_percentiles(differences, seed, resamples))


def _percentiles(values: Sequence[float], seed: int, resamples: int) -> tuple[float, float]:
    """The 2.5 and 97.5 % percentiles of the mean of resampled values."""
    distinct = tuple(sorted(Counter(values).items()))
    return _resample(distinct, seed, resamples)


@lru_cache(maxsize=CACHED_INTERVALS)
def _resample(distinct: tuple[tuple[float, int], ...], seed: int, resamples: int) -> tuple[float, float]:
    """The percentiles for values that occur so many times each. Kept: it takes milliseconds, and mean@1, pass@1 and
    pass^1, or a family alone and among others, are the same question."""
    import numpy as np

    # How often each distinct value is drawn is multinomial: the same resampling without an array of all draws
    values, counts = np.array([value for value, _ in distinct]), np.array([count for _, count in distinct])
    total = int(counts.sum())
    drawn = np.random.default_rng(seed).multinomial(total, counts / total, size=resamples)
    low, high = np.percentile(drawn @ values / total, [2.5, 97.5])
    return float(low), float(high)


def pass_at(k: int, right: int, samples: int) -> float:
    """The chance that at least one of `k` samples is right, of which `right` of `samples` were:
    1 - C(n - c, k) / C(n, k), unbiased (Chen et al., arXiv 2107.03374). `k` is at most `samples`."""
    return 1.0 - math.comb(samples - right, k) / math.comb(samples, k)


def pass_all(k: int, right: int, samples: int) -> float:
    """The chance that all of `k` samples are right: C(c, k) / C(n, k), unbiased (tau-bench's pass^k, Yao et al.,
    arXiv 2406.12045). `k` is at most `samples`."""
    return math.comb(right, k) / math.comb(samples, k)


def sign_test(wins: int, losses: int) -> float:
    """The two-sided p-value of the exact sign test: how likely so uneven counts are when winning and losing a
    task are equally likely. Ties are left out. With one sample a task this is McNemar's exact test (1947)."""
    decided = wins + losses
    if decided == 0:
        return 1.0
    tail = ways = 1
    for count in range(min(wins, losses)):  # C(n, k + 1) from C(n, k), in whole numbers: exact and fast
        ways = ways * (decided - count) // (count + 1)
        tail += ways
    return min(1.0, float(2 * tail / 2**decided))


def entropy(counts: Collection[int]) -> float:
    """Shannon's entropy of a distribution given by counts, in bits; 0 without any."""
    total = sum(counts)
    shares = [count / total for count in counts if count]
    return abs(math.fsum(-share * math.log2(share) for share in shares))


def mean(values: Collection[float]) -> float:
    """The mean, correctly rounded and therefore the same in any order; 0 without values."""
    return math.fsum(values) / len(values) if values else 0.0


def wilson_interval(share: float, count: int, z: float = 1.959964) -> tuple[float, float]:
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
