"""A follow-up question as the Run page and the command line show it: how it was understood, and what of the runs before
it sees."""

from __future__ import annotations

from orchestrator.engine.events import FollowUp
from studio.episode_documents.schema import FollowUpView, RunBefore

READINGS = {"rule": "understood as", "person": "asked in full as", "agent": "understood by {agent} as"}
UNSEEN = "Its workers see nothing of the runs before."
QUOTED = "Its workers see nothing of the runs before but what this question quotes."


def describe_reader(follow_up: FollowUp) -> str:
    """How a follow-up became the question that follows."""
    return READINGS[follow_up.by].format(agent=follow_up.agent)


def build_follow_up_view(follow_up: FollowUp) -> FollowUpView:
    """What a run goes on with."""
    return FollowUpView(
        text=follow_up.text,
        how=describe_reader(follow_up),
        seen=QUOTED if follow_up.quotes else UNSEEN,
        before=[RunBefore(episode=run.episode, question=run.question, answer=run.answer) for run in follow_up.before],
    )
