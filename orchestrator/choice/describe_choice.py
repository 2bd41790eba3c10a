"""A choice in words, for a person."""

from __future__ import annotations

from orchestrator.plan import WorkerChoice


def describe_choice(choice: WorkerChoice | None) -> str:
    """How a worker was chosen, and what that rests on; "" where no score of outcomes chose it."""
    if choice is None:
        return ""
    how = "taken as the best" if choice.probability >= 1 else f"drawn with probability {choice.probability:.2f}"
    rests = f"{choice.right} of its {choice.of} outcomes right" if choice.of else "no outcome of it known"
    return f"Chosen by {choice.by} among {choice.among}: {choice.success:.2f} likely to serve this, {rests}; {how}."
