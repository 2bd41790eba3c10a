"""How likely an answer is right: one figure from what a run knows of its own plan.

A logistic function of the share of drawn plans that agree, of what went wrong on the way and of how unlike the learnt
ones the question is. Its coefficients are fitted for one checkpoint by `bench/doubt.py`, on questions whose answers are
known; for any other orchestrator there is no figure, only the words of the agreement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from assets import asset
from orchestrator.agreement import describe_agreement, is_unsure
from orchestrator.errors import UnknownOrchestrator
from orchestrator.orchestrator_name import TurnOptions, split_options
from orchestrator.plan import OutOfDepth, Turn, Vote
from pool_registry.strict_model import StrictModel

FILE = "answer_chance.json"
HALF = 0.5
MAX_TROUBLES = 3  # more say no more
NOT_COMPARED = "No chance is given: the answers of this orchestrator were never compared with right ones."


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a run knows of its plan. `share`: of the drawn plans that came to the result, None where one was drawn.
    `troubles`: repairs, further rounds and failed steps. `distance`: 0 to 1, how unlike what was learnt the words are.
    `weakest`: the chance of the least likely worker by its record, None where no record chose."""

    share: float | None = None
    troubles: int = 0
    distance: float = 0.0
    weakest: float | None = None


class Coefficients(StrictModel):
    """Of the logistic function: those of `troubles` and `distance` are not above zero, that of `share` not below."""

    intercept: float
    share: float = 0.0
    troubles: float
    distance: float

    def estimate(self, evidence: Evidence) -> float:
        """The chance of the answer to be right; never above that of the least likely worker."""
        troubles = min(evidence.troubles, MAX_TROUBLES)
        score = self.intercept + self.share * (evidence.share or 0.0)
        score += self.troubles * troubles + self.distance * evidence.distance
        chance = 1 / (1 + math.exp(-score))
        return chance if evidence.weakest is None else min(chance, evidence.weakest)


class Calibration(StrictModel):
    """Of one checkpoint: the function where one plan was drawn and where several were, and the least chance of each
    that is called likely: of the fitted answers above it nine in ten are right; 1 where none are."""

    one: Coefficients
    several: Coefficients
    likely_one: float
    likely_several: float

    def estimate(self, evidence: Evidence) -> float:
        """The chance of the answer to be right."""
        return (self.one if evidence.share is None else self.several).estimate(evidence)

    def is_likely(self, evidence: Evidence) -> bool:
        """Whether nine in ten of the fitted answers with such a chance were right."""
        least = self.likely_one if evidence.share is None else self.likely_several
        return self.estimate(evidence) >= max(least, HALF)


class Calibrations(StrictModel):
    """The file `assets/answer_chance.json`."""

    checkpoints: dict[str, Calibration]


@dataclass(frozen=True, slots=True)
class AnswerChance:
    """What stands above an answer: its chance to be right in words, `probability` None where nothing is fitted."""

    probability: float | None
    unsure: bool
    likely: bool
    sentence: str
    why: str


@cache
def load_calibrations() -> Calibrations:
    """The coefficients that ship."""
    return Calibrations.model_validate_json(asset(FILE).read_bytes())


def find_calibration(orchestrator: str) -> Calibration | None:
    """The calibration of an orchestrator's name; None where its way to plan is not the one that was measured."""
    try:
        name, options = split_options(orchestrator)
    except UnknownOrchestrator:
        return None
    measured = replace(options, samples=1, finalizer=None, who="") == TurnOptions()
    return load_calibrations().checkpoints.get(name) if measured else None


def read_evidence(turns: Sequence[Turn], failed_steps: int = 0, depth: OutOfDepth | None = None) -> Evidence:
    """The evidence of a run's turns so far."""
    vote = find_vote(turns)
    troubles = failed_steps + sum(len(turn.repairs) + (turn.error is not None) for turn in turns) + len(turns[1:])
    chosen = [step.choice.success for turn in turns for step in turn.steps if step.choice is not None]
    share = vote.votes / vote.sampled if vote is not None else None
    return Evidence(share, troubles, depth.probability if depth else 0.0, min(chosen, default=None))


def find_vote(turns: Sequence[Turn]) -> Vote | None:
    """The last vote among several plans."""
    return next((turn.vote for turn in reversed(turns) if turn.vote is not None and turn.vote.sampled > 1), None)


def judge_chance(orchestrator: str, evidence: Evidence, vote: Vote | None) -> AnswerChance | None:
    """The chance of an answer in words; None where nothing is known of it."""
    calibration = find_calibration(orchestrator)
    if calibration is None:
        if vote is None:
            return None
        return AnswerChance(None, is_unsure(vote), False, describe_agreement(vote).rstrip("."), NOT_COMPARED)
    chance, likely = calibration.estimate(evidence), calibration.is_likely(evidence)
    sentence = _describe_chance(chance, likely, vote)
    return AnswerChance(round(chance, 4), chance < HALF, likely, sentence, _explain(evidence, vote))


def _describe_chance(chance: float, likely: bool, vote: Vote | None) -> str:
    tenths = min(9, max(1, round(10 * chance)))
    if chance < HALF:
        return describe_agreement(vote).rstrip(".") if vote and is_unsure(vote) else f"Unsure (about {tenths} in 10)"
    return f"Likely right (about {tenths} in 10)" if likely else f"Perhaps right (about {tenths} in 10)"


def _explain(evidence: Evidence, vote: Vote | None) -> str:
    """What the figure rests on, in a sentence."""
    plans = "one plan was written" if vote is None else f"{vote.votes} of {vote.sampled} plans agree"
    calls = "every call worked at once" if not evidence.troubles else "calls failed or were mended"
    words = "its words are unlike" if evidence.distance >= HALF else "its words are not unlike"
    return f"So many such answers were right before: {plans}, {calls}, and {words} what was learnt."
