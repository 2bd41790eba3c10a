"""Statistics of evaluations: means with intervals over tasks, differences of pairs, counts of wins.

Every result depends on the values alone and not on their order: two evaluations with the same scores report the same
figures to the last digit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

RESAMPLES = 10_000
CACHED_INTERVALS = 4096  # the key of each is its few distinct values


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its 95 % interval. Never NaN: without data the interval is the whole range."""

    mean: float
    low: float
    high: float


def bootstrap_mean(scores: Sequence[float], seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """Estimate the mean of scores in [0, 1] with a 95 % percentile bootstrap interval (Efron 1979).

    Equal scores have no spread to resample: they get Wilson's interval (1927), which still widens when there are few
    tasks. The same seed gives the same interval.
    """
    if not scores:
        return Estimate(0.0, 0.0, 1.0)
    centre = mean(scores)
    if min(scores) == max(scores):
        return Estimate(centre, *wilson_interval(centre, len(scores)))
    return Estimate(centre, *_percentiles(scores, seed, resamples))


def bootstrap_difference(differences: Sequence[float], seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """Estimate the mean of paired differences in [-1, 1] with a 95 % percentile bootstrap interval over the pairs.

    A against B is exactly the mirror image of B against A. Equal differences have no spread to resample: Wilson's
    upper bound for 0 successes out of so many bounds the share of tasks that may differ, each by -1 or 1 at most.
    """
    if not differences:
        return Estimate(0.0, -1.0, 1.0)
    centre = mean(differences)
    if min(differences) == max(differences):
        _, others = wilson_interval(0.0, len(differences))
        # The unseen share `others` pulls the mean to -1 at worst and to 1 at best: (1 - others) * centre -+ others.
        return Estimate(centre, centre - others * (centre + 1), centre + others * (1 - centre))
    image, mirrored = sorted(differences), sorted(-value for value in differences)
    # Random resampling is not symmetric. To mirror exactly, always resample the same one of the two images.
    low, high = _percentiles(max(image, mirrored), seed, resamples)
    if image == mirrored:  # each is the other's image: half of the width on either side
        low, high = (low - high) / 2, (high - low) / 2
    return Estimate(centre, -high, -low) if mirrored > image else Estimate(centre, low, high)


def bootstrap_amount(differences: Sequence[float], seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """Estimate the mean of paired differences without bounds, as of seconds or dollars, like `bootstrap_difference`.

    Equal differences give an interval without width: nothing bounds what other tasks would add.
    """
    if not differences:
        return Estimate(0.0, 0.0, 0.0)
    centre = mean(differences)
    if min(differences) == max(differences):
        return Estimate(centre, centre, centre)
    return Estimate(centre, *_percentiles(differences, seed, resamples))


def _percentiles(values: Sequence[float], seed: int, resamples: int) -> tuple[float, float]:
    """Compute the 2.5 % and 97.5 % percentiles of the means of resampled values."""
    distinct = tuple(sorted(Counter(values).items()))
    return _resample(distinct, seed, resamples)


@lru_cache(maxsize=CACHED_INTERVALS)
def _resample(distinct: tuple[tuple[float, int], ...], seed: int, resamples: int) -> tuple[float, float]:
    """Compute the percentiles for (value, count) pairs.

    Cached, because it takes milliseconds and is often repeated: mean@1, pass@1 and pass^1 are the same numbers, and
    so is a family alone and among others.
    """
    import numpy as np

    # Drawing `total` values with replacement means that the counts of the distinct values are multinomial. Drawing the
    # counts needs resamples x distinct numbers instead of resamples x total.
    values, counts = np.array([value for value, _ in distinct]), np.array([count for _, count in distinct])
    total = int(counts.sum())
    drawn = np.random.default_rng(seed).multinomial(total, counts / total, size=resamples)
    means = drawn @ values / total  # one mean per resample
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def pass_at(k: int, right: int, samples: int) -> float:
    """Estimate the chance that at least one of `k` samples is right, when `right` of `samples` were.

    1 - C(n - c, k) / C(n, k), unbiased (Chen et al., arXiv 2107.03374). `k` is at most `samples`.
    """
    return 1.0 - math.comb(samples - right, k) / math.comb(samples, k)


def pass_all(k: int, right: int, samples: int) -> float:
    """Estimate the chance that all of `k` samples are right, when `right` of `samples` were.

    C(c, k) / C(n, k), unbiased (pass^k of tau-bench, Yao et al., arXiv 2406.12045). `k` is at most `samples`.
    """
    return math.comb(right, k) / math.comb(samples, k)


def sign_test(wins: int, losses: int) -> float:
    """Compute the two-sided p-value of the exact sign test: the chance of counts at least as uneven as these when
    winning and losing a task are equally likely.

    Ties are left out. With one sample per task this is McNemar's exact test (1947).
    """
    decided = wins + losses
    if decided == 0:
        return 1.0
    # The sum of C(n, k) for k up to the smaller count, in whole numbers: floats would overflow for large n.
    tail = ways = 1
    for count in range(min(wins, losses)):
        ways = ways * (decided - count) // (count + 1)  # C(n, k + 1) from C(n, k); the division leaves no remainder
        tail += ways
    return min(1.0, float(2 * tail / 2**decided))  # both tails; with equal counts they overlap


def entropy(counts: Collection[int]) -> float:
    """Compute the Shannon entropy of a distribution given by counts, in bits; 0 without counts."""
    total = sum(counts)
    shares = [count / total for count in counts if count]
    # abs: the sum over a single share of 1 is -0.0
    return abs(math.fsum(-share * math.log2(share) for share in shares))


def mean(values: Collection[float]) -> float:
    """Compute the mean, correctly rounded and therefore the same in any order; 0 without values."""
    try:
        return math.fsum(values) / len(values) if values else 0.0
    except OverflowError:  # their sum is too large for a float, their mean is not
        return math.fsum(value / len(values) for value in values)


def wilson_interval(share: float, count: int, z: float = 1.959964) -> tuple[float, float]:
    """Compute Wilson's score interval (1927) of a share observed in `count` trials; 95 % by default."""
    centre = share + z * z / (2 * count)
    spread = z * ((share * (1 - share) + z * z / (4 * count)) / count) ** 0.5
    scale = 1 + z * z / count
    low, high = (centre - spread) / scale, (centre + spread) / scale
    return max(0.0, min(low, share)), min(1.0, max(high, share))  # rounding may leave a share of 0 or 1 just outside


def quantile(values: Sequence[float], share: float) -> float:
    """Compute the quantile of `values` at `share` in [0, 1], interpolated linearly like numpy's; 0 without values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    position = (len(ordered) - 1) * share
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)
