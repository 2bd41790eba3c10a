"""What chances are worth on held-out outcomes, and the scale that makes them agree with how often workers are right."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trainer.choice.measure import calibration_error

BINS = 5  # of the calibration error: held-out outcomes are few
HELD = 4.0  # outcomes that hold a scale to slope 1 and intercept 0
ITERATIONS = 25  # of Newton's method, for two numbers
LEAST_SLOPE = 0.1  # the order of workers stays


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Outcomes by row, a worker and a question each: the place of the question, the share of right ones, how many."""

    question: Tensor
    right: Tensor
    weight: Tensor


@dataclass(frozen=True, slots=True)
class Judgement:
    """Of some chances: the log loss of an outcome, the calibration error, and the share of right outcomes of the worker
    that they choose for each question whose workers differ; None where there is no such question."""

    log_loss: float
    calibration_error: float
    choice_right: float | None


@dataclass(frozen=True, slots=True)
class Scale:
    """A logit becomes slope x logit + intercept (Platt, 1999)."""

    slope: float = 1.0
    intercept: float = 0.0

    def apply(self, logits: Tensor) -> Tensor:
        """The scaled logits."""
        return self.slope * logits + self.intercept


def compute_log_loss(logits: Tensor, outcomes: Outcomes) -> Tensor:
    """The mean log loss of an outcome."""
    losses = nn.functional.binary_cross_entropy_with_logits(logits, outcomes.right, reduction="none")
    return (losses * outcomes.weight).sum() / outcomes.weight.sum()


def judge_chances(logits: Tensor, outcomes: Outcomes) -> Judgement:
    """What these logits are worth."""
    counts = outcomes.weight.long()
    chances = torch.sigmoid(logits).repeat_interleave(counts)
    choices = _judge_choices(logits, outcomes)
    return Judgement(
        round(float(compute_log_loss(logits, outcomes)), 4),
        round(calibration_error(chances, outcomes.right.repeat_interleave(counts), BINS), 4),
        round(sum(choices) / len(choices), 4) if choices else None,
    )


def _judge_choices(logits: Tensor, outcomes: Outcomes) -> list[float]:
    """The share of right outcomes of the likeliest worker, for each question whose workers differ."""
    rows = [(outcomes.question == question).nonzero().squeeze(1) for question in outcomes.question.unique()]
    rights = [(logits[row], outcomes.right[row]) for row in rows]
    return [float(right[chances.argmax()]) for chances, right in rights if float(right.max() - right.min()) > 0]


def fit_scale(logits: Tensor, outcomes: Outcomes) -> Scale:
    """The scale of the least log loss, held a little to the one that changes nothing."""
    features = torch.stack([logits, torch.ones_like(logits)], dim=1).double()
    right, weight = outcomes.right.double(), outcomes.weight.double()
    start = torch.tensor([1.0, 0.0], dtype=torch.double)
    scale = start.clone()
    for _ in range(ITERATIONS):
        chances = torch.sigmoid(features @ scale)
        gradient = features.T @ (weight * (chances - right)) + HELD * (scale - start)
        curvature = (features * (weight * chances * (1 - chances)).unsqueeze(1)).T @ features
        scale = scale - torch.linalg.solve(curvature + HELD * torch.eye(2, dtype=torch.double), gradient)
    return Scale(max(LEAST_SLOPE, float(scale[0])), float(scale[1]))


def scale_by_other_half(logits: Tensor, outcomes: Outcomes) -> Tensor:
    """The logits scaled for each half of the questions by what the other half shows, so that no outcome is measured
    with a scale that has seen it."""
    first = outcomes.question % 2 == 0
    scaled = logits.clone()
    for half in (first, ~first):
        other = ~half
        seen = Outcomes(outcomes.question[other], outcomes.right[other], outcomes.weight[other])
        scaled[half] = fit_scale(logits[other], seen).apply(logits[half])
    return scaled


def compute_scaled_loss(logits: Tensor, outcomes: Outcomes) -> float:
    """The log loss with the scale that these outcomes themselves ask for: how well the logits tell them apart."""
    return float(compute_log_loss(fit_scale(logits, outcomes).apply(logits), outcomes))
