"""A choice, and the confidence that follows from choices, in words for a person."""

from __future__ import annotations

from orchestrator.choice.weigh_answers import SURE
from orchestrator.plan import AnswerConfidence, WorkerChoice


def describe_choice(choice: WorkerChoice | None) -> str:
    """How a worker was chosen, and what that rests on; "" where no score of outcomes chose it."""
    if choice is None:
        return ""
    how = "taken as the best" if choice.probability >= 1 else f"drawn with probability {choice.probability:.2f}"
    rests = f"{choice.right} of its {choice.of} outcomes right" if choice.of else "no outcome of it known"
    return f"Chosen by {choice.by} among {choice.among}: {choice.success:.2f} likely to serve this, {rests}; {how}."


def describe_confidence(confidence: AnswerConfidence) -> str:
    """How likely an answer is right, and by whose record, in a sentence that opens with "Unsure" below SURE."""
    several, different = confidence.agents > 1, len(confidence.answers)
    agents = f"the {confidence.agents} agents that were asked" if several else "the agent that gave it"
    agreement = f": {different} different answers" if different > 1 else ": all agree" if several else ""
    sentence = f"{confidence.probability:.2f} likely right by the record of {agents}{agreement} ({confidence.by})."
    return sentence if confidence.probability >= SURE else f"Unsure: {sentence}"
