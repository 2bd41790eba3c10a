"""Says in words what has become of the second try of a failed run."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.engine.events import Retried, RetryState

SENTENCES: Mapping[RetryState, str] = {
    "preparing": "To be tried again with its lesson",
    "running": "Being tried again with its lesson",
    "waiting": "Tried again with its lesson, which waits for a verdict on that answer",
    "interrupted": "Its second try was interrupted: say again that the answer is wrong, and it is made anew",
    "no reader": "Not tried again: its orchestrator reads no lessons",
    "no budget": "Not tried again: this run left nothing of its limits",
    "taken back": "Its lesson is not kept: the answer is right after all",
}
WITH_A_RUN = ("running", "waiting", "judged")  # states in which the second try can be looked at


def describe_retry(retried: Retried) -> str:
    """What has become of a second try, without a full stop."""
    if retried.state != "judged":
        return SENTENCES[retried.state]
    verdict = "right, so the lesson is kept" if retried.correct else "wrong again, so the lesson is forgotten"
    return f"Tried again with its lesson: {verdict}"


def has_run(retried: Retried) -> bool:
    """Whether there is a run to look at."""
    return retried.state in WITH_A_RUN
