"""What the agreement of a turn's drawn plans says of an answer, in words (policies/options/voting.py counts it).

It is a count, not a probability: plans of one model can agree and be wrong. Where few agree, the answer is in doubt.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.plan import Vote


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many of the `plans` that were drawn in a round came to the result that was taken, itself included. `unsure`:
    no more than half of them."""

    round: int
    plans: int
    agreed: int
    unsure: bool
    sentence: str


def measure_agreement(number: int, vote: Vote) -> Agreement:
    """The agreement behind the plan of round `number`, by the record of its vote."""
    return Agreement(number, vote.sampled, vote.votes, is_unsure(vote), describe_agreement(vote))


def is_unsure(vote: Vote) -> bool:
    """Whether no more than half of the plans came to the result that was taken."""
    return 2 * vote.votes <= vote.sampled


def describe_agreement(vote: Vote) -> str:
    """How many plans agree, in a sentence that opens with "Unsure" where that is no majority."""
    if not is_unsure(vote):
        return f"{vote.votes} of {vote.sampled} plans agree."
    return f"Unsure: {_describe_doubt(vote)}."


def _describe_doubt(vote: Vote) -> str:
    plans, different = vote.sampled, {*vote.answers, *vote.unvoted}
    if vote.unreadable == plans:
        return f"none of {plans} plans can be read"
    if not vote.votes:
        return f"none of {plans} plans works"
    if vote.votes > 1:
        return f"only {vote.votes} of {plans} plans agree"
    if len(different) == plans:
        return f"{plans} plans, {plans} different answers"
    if any(count > 1 for count in vote.unvoted.values()):  # the others agree, and have no vote
        return f"only 1 of {plans} plans says this"
    return f"no two of {plans} plans agree"
