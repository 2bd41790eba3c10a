"""Deployments in sentences, for the command line and the page."""

from __future__ import annotations

from studio.deployments.states import Candidate, DeploymentChange


def describe_change(change: DeploymentChange) -> str:
    """One line about a change: what serves after it, who made it and when."""
    serving = change.state.serving
    line = (
        f"{change.deployment} {change.number}: {change.action} by {change.by}, {change.at[:16].replace('T', ' ')} UTC. "
    )
    line += f"{serving.orchestrator} serves {serving.pool}@{serving.pool_version}"
    if change.state.candidate is not None:
        line += f"; {describe_candidate(change.state.candidate)}"
    return f"{line}. {change.reason}".rstrip() if change.reason else f"{line}."


def describe_candidate(candidate: Candidate) -> str:
    """How a candidate is tried."""
    if candidate.share is None:
        return f"{candidate.orchestrator} runs in its shadow, for at most ${candidate.max_cost:g}"
    return f"{candidate.orchestrator} answers {candidate.share:.0%} of the conversations"
