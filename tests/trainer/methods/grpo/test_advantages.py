"""Advantages: what each kind of episode is trained with, and what bounds a tie-breaker."""

from __future__ import annotations

from itertools import pairwise
from statistics import stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.plan import Turn
from tests.orchestrator.support.engine import engine_kinds, step  # noqa: F401
from tests.trainer.methods.grpo.test_rewards import sample
from trainer.learner.token_transcript import Transcript
from trainer.methods.grpo.advantages import compute_advantages
from trainer.methods.grpo.rewards import (
    Sample,
    anneal_rewards,
    compute_outcome_weight,
    load_rewards,
    score_group,
    sum_weighted,
)
from trainer.methods.grpo.rollouts import Rollout, RolloutGroup, set_advantages
from trainer.methods.grpo.section import RewardSettings
from trainer.recipe import list_presets, load_recipe

WEIGHTS = {"accuracy": 1.0, "format": 0.2, "diversity": 0.015, "efficiency": 0.1}  # those of single-gpu-80gb
TERMS = load_rewards([RewardSettings(term=term, weight=weight) for term, weight in WEIGHTS.items()])
PLAN = Turn((step(1), step(2, access=[1])), "$2")
LONGER = Turn((step(1), step(2, access=[1]), step(3, access=[2])), "$3")


def right() -> Sample:
    return sample(PLAN)


def longer() -> Sample:
    """A right plan with one step that nobody needs."""
    return sample(LONGER)


def slip() -> Sample:
    """A valid plan with one wrong argument."""
    return sample(PLAN, correct=False)


def instant() -> Sample:
    """The answer "0" without a single call."""
    return sample(Turn((), "0"), correct=False)


def score(*samples: Sample) -> list[float]:
    return [sum_weighted(values, TERMS) for values in score_group(samples, TERMS)]


def train(*samples: Sample, scale: str = "group", mixed_only: bool = True) -> list[float]:
    """The advantages of a batch of one group."""
    rewards = score(*samples)
    rollouts = [Rollout(one, Transcript([]), None, reward=reward) for one, reward in zip(samples, rewards, strict=True)]
    group = RolloutGroup(samples[0].task, rollouts)
    set_advantages([group], scale, compute_outcome_weight(TERMS), mixed_only)
    return [rollout.advantage for rollout in group.rollouts]


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_the_order_is_right_then_right_and_longer_then_wrong(scale):
    """One group of each kind, scaled by its own deviation. Before, wrong answers too were paid for being short:

    | case                       | reward before | after | advantage before | after |
    | right plan                 | 1.30          | 1.30  | +0.87            | +0.88 |
    | right plan with extra step | 1.30          | 1.29  | +0.86            | +0.85 |
    | honest slip                | 0.30          | 0.20  | -0.89            | -0.87 |
    | instant wrong "0"          | 0.33          | 0.20  | -0.85            | -0.87 |
    """
    first, second, third, last = train(right(), longer(), slip(), instant(), scale=scale)
    assert first > second > 0 > third >= last
    assert second - third > 5 * (first - second)


@pytest.mark.parametrize("mixed_only", [True, False])
def test_an_all_wrong_group_pays_nobody_for_being_short(mixed_only):
    """Before, the instant answer had the advantage +1.49 in this group, and +2.37 in a group of eight."""
    assert train(slip(), slip(), slip(), instant(), mixed_only=mixed_only) == [0, 0, 0, 0]


def test_an_all_wrong_group_that_fills_up_a_batch_trains_nothing():
    babble = sample(Turn(error="no turn"), correct=False)
    assert train(instant(), babble, slip()) == [0, 0, 0]
    formed, broken, _ = train(instant(), babble, slip(), mixed_only=False)
    assert formed > 0 > broken, "a recipe that keeps such groups learns to write turns from them"


def test_an_all_right_group_is_ordered_and_no_advantage_of_it_is_large():
    """Before, one step more had the advantage -1.42 in this group."""
    *best, worst = train(right(), right(), right(), longer())
    assert 0 < best[0] < 0.1 and -0.1 < worst < 0


@pytest.mark.parametrize("access", [[], [1]])
def test_a_step_that_nobody_needs_does_not_pay_by_being_different(access):
    padded = sample(Turn((step(1), step(2, worker="agent", access=access)), "$1"))
    plain, other, more = score(sample(Turn((step(1),), "$1")), sample(Turn((step(1),), "$1")), padded)
    assert plain == other > more


@pytest.mark.parametrize(("progress", "lead"), [(0.0, 0.15), (0.25, 0.08), (0.5, 0.0), (1.0, 0.0)])
def test_a_parallel_plan_leads_early_and_not_once_the_weight_is_annealed(progress, lead):
    """Two right plans of three steps, one of them a chain, and a wrong one that calls three workers at once:

    | case                       | reward at 0 % | at 25 % | from 50 % on | advantage at 0 % | at 25 % | from 50 % on |
    | right, two steps at a time | 1.20          | 1.10    | 1.00         | +0.65            | +0.62   | +0.58        |
    | right, a chain             | 1.10          | 1.05    | 1.00         | +0.50            | +0.54   | +0.58        |
    | wrong, three at a time     | 0.00          | 0.00    | 0.00         | -1.15            | -1.15   | -1.15        |
    """
    wide = sample(Turn((step(1), step(2), step(3, access=[1, 2])), "$3"))
    wrong = sample(Turn((step(1), step(2), step(3)), "$1 $2 $3"), correct=False)
    weights = [
        RewardSettings(term="accuracy"),
        RewardSettings(term="parallelism", weight=0.3, anneal=0.5),
        RewardSettings(term="finish", weight=0.1, anneal=0.5),
    ]
    terms = anneal_rewards(load_rewards(weights), progress)
    rewards = [sum_weighted(values, terms) for values in score_group([wide, sample(LONGER), wrong], terms)]
    assert rewards[0] - rewards[1] == pytest.approx(0.3 / 3 * max(0, 1 - 2 * progress))
    assert rewards[2] == 0
    ((first, second, last),) = compute_advantages([rewards], "group", compute_outcome_weight(terms))
    assert first - second == pytest.approx(lead, abs=0.005) and second > 0 > last


@pytest.mark.parametrize("preset", list_presets())
def test_no_preset_pays_more_for_another_worker_than_a_needless_call_costs(preset):
    """One more call differs by 1 / (calls + 1) and loses at least a quarter of 1 / (calls + 2) of efficiency."""
    grpo = load_recipe(preset).grpo
    weights = {reward.term: reward.weight for reward in grpo.rewards} if grpo else {}
    assert 6 * weights.get("diversity", 0.0) <= weights.get("efficiency", 0.0)


def test_two_hundredths_of_a_reward_are_no_large_advantage():
    (advantages,) = compute_advantages([[1.3, 1.3, 1.28, 1.28]], "group", 1.0)
    assert advantages == pytest.approx([0.02, 0.02, -0.02, -0.02], abs=1e-3)


@given(st.integers(2, 64), st.floats(0.1, 10), st.floats(0, 1))
def test_one_differing_outcome_is_scaled_by_its_own_deviation(size, weight, common):
    rewards = [common] * (size - 1) + [common + weight]
    (advantages,) = compute_advantages([rewards], "group", weight)
    centre = sum(rewards) / size
    assert advantages == pytest.approx([(reward - centre) / (stdev(rewards) + 1e-4) for reward in rewards])


REWARD_LISTS = st.lists(st.floats(0, 10), min_size=1, max_size=16)


@given(REWARD_LISTS, st.sampled_from(["group", "batch", "none"]))
def test_advantages_sum_to_nothing_and_keep_the_order(rewards, scale):
    (advantages,) = compute_advantages([rewards], scale, 1.0)
    assert sum(advantages) == pytest.approx(0, abs=1e-6)
    order = sorted(range(len(rewards)), key=rewards.__getitem__)
    assert all(advantages[a] <= advantages[b] + 1e-9 for a, b in pairwise(order))


@given(REWARD_LISTS)
def test_a_group_of_equals_teaches_nothing(rewards):
    (advantages,) = compute_advantages([[rewards[0]] * len(rewards)], "group", 1.0)
    assert all(abs(advantage) < 1e-6 for advantage in advantages)


def test_a_batch_is_divided_by_the_deviation_of_all_its_rewards():
    groups = [[1.0, 0.0, 0.0, 1.0], [0.5, 0.25, 0.0, 1.0]]
    divisor = stdev([*groups[0], *groups[1]]) + 1e-4
    advantages = compute_advantages(groups, "batch", 1.0)
    assert advantages[0] == pytest.approx([0.5 / divisor, -0.5 / divisor, -0.5 / divisor, 0.5 / divisor])
    assert advantages[1] == pytest.approx([(reward - 0.4375) / divisor for reward in groups[1]])
