"""Deployments in sentences, for the command line and the page."""

from __future__ import annotations

from studio.deployments.states import Candidate, DeploymentChange
from trainer.results.improvement import ImprovementReport


def describe_change(change: DeploymentChange) -> str:
    """One line about a change: what serves after it, who made it and when."""
    serving = change.state.serving
    line = (
        f"{change.deployment} {change.number}: {change.action} by {change.by}, {change.at[:16].replace('T', ' ')} UTC. "
    )
    line += f"{serving.orchestrator} serves {serving.pool}@{serving.pool_version}"
    if change.state.candidate is not None:
        line += f"; {describe_candidate(change.state.candidate)}"
    return " ".join(filter(None, (f"{line}.", change.reason, describe_kept_evidence(change))))


def describe_candidate(candidate: Candidate, label: str = "") -> str:
    """How a candidate is tried; `label` is what it is called in place of its name."""
    name = label or candidate.orchestrator
    if candidate.share is None:
        return f"{name} runs in the shadow, for at most ${candidate.max_cost:g}"
    return f"{name} answers {candidate.share:.0%} of the conversations"


def describe_evidence(report: ImprovementReport) -> str:
    """What a report measured, in one sentence."""
    parts = [
        f"{change.suite} tasks {change.better_by:+.3f} [{change.low:+.3f}, {change.high:+.3f}], n = {change.tasks}"
        for change in report.suites
    ]
    held = sum(figure.holds for figure in report.guarded)
    return f"Measured: {'; '.join(parts)}; {held} of {len(report.guarded)} guarded figures within their bounds."


def describe_kept_evidence(change: DeploymentChange) -> str:
    """What the report measured that a promotion rested on; "" for changes without one."""
    return describe_evidence(ImprovementReport.model_validate_json(change.report)) if change.report else ""
