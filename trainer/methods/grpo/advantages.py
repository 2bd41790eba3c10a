"""Advantages: how much better an episode is than its group. They are computed here alone: TRL trains on these numbers,
and the rollout browser shows them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import stdev

from trainer.methods.grpo.section import AdvantageScale

EPSILON = 1e-4  # that of TRL; it matters only where every weight is 0


def compute_advantages(
    groups: Sequence[Sequence[float]], scale: AdvantageScale, outcome_weight: float
) -> list[list[float]]:
    """Compute (r - mean of the group) / divisor for the rewards of each group; the result has the same shape.

    The divisor is 1 for `none` (Dr. GRPO, arXiv 2503.20783), that of the group's rewards for `group` (GRPO, arXiv
    2402.03300), and that of all rewards for `batch`; see compute_divisor. `outcome_weight` is what a right answer
    earns more than a wrong one. Every group has at least one reward.
    """
    whole = compute_divisor([reward for rewards in groups for reward in rewards], outcome_weight)
    advantages = []
    for rewards in groups:
        divisor = {"none": 1.0, "batch": whole, "group": compute_divisor(rewards, outcome_weight)}[scale]
        mean = sum(rewards) / len(rewards)
        advantages.append([(reward - mean) / divisor for reward in rewards])
    return advantages


def compute_divisor(rewards: Sequence[float], outcome_weight: float) -> float:
    """Compute the standard deviation (with n - 1), and no less than one differing outcome would give.

    n - 1 rewards of 0 and one of w have the deviation w / sqrt(n). Where outcomes differ the divisor is thus GRPO's
    own. Where they do not, the rewards differ by tie-breakers alone, and a small deviation cannot turn those into
    advantages as large as an outcome's. The floor is this project's own rule; Dr. GRPO (arXiv 2503.20783) describes
    the bias that it limits.
    """
    spread = stdev(rewards) if len(rewards) > 1 else 0.0
    return max(spread, outcome_weight / math.sqrt(len(rewards))) + EPSILON
