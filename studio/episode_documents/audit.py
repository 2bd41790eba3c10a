"""The audit trail of an episode: what held its plans up, and who decided about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.approval.records import StepEstimate
from orchestrator.engine.edits import AnyEdit, SetAnswer
from orchestrator.engine.episode import Episode
from orchestrator.engine.events import PlanDecided, PlanEscalated, PlanHeld
from studio.episode_documents.arguments import describe_arguments
from studio.episode_documents.schema import ApprovalRequest, AuditLine, PlannedCall, PlanReason

SHORT = 400  # characters of a call's arguments
WORDS = {"change": "changed", "add": "added", "remove": "removed", "again": "kept"}


def list_audit(episode: Episode) -> list[AuditLine]:
    """What happened to the plans of an episode before they ran, oldest first."""
    return [_describe_release(event) for done in episode.rounds for event in done.releases]


def build_request(episode: Episode) -> ApprovalRequest | None:
    """What a person is asked about the plan that waits; None where none does."""
    held = episode.held
    if held is None:
        return None
    return ApprovalRequest(
        round=held.round,
        held_at=held.held_at,
        reasons=[PlanReason(code=reason.code, sentence=reason.sentence) for reason in held.reasons],
        cost=held.estimate.cost,
        seconds=held.estimate.seconds,
        calls=[_describe_call(item, episode) for item in held.estimate.steps],
    )


def _describe_call(item: StepEstimate, episode: Episode) -> PlannedCall:
    values, planned = describe_arguments(episode.steps[item.step], episode, SHORT)
    return PlannedCall(
        step=item.step,
        worker=item.worker,
        instruction=values,
        planned=planned,
        cost=item.cost,
        seconds=item.seconds,
        effects=item.effects,
    )


def describe_audit(audit: list[Mapping[str, Any]]) -> list[str]:
    """The audit trail of a trace document as lines for a terminal."""
    return [_describe_line(line) for line in audit if line["kind"] != "held"]


def _describe_line(line: Mapping[str, Any]) -> str:
    by = f" by {line['by']}" if line["by"] else ""
    text = f": {line['text']}" if line["text"] else ""
    return f"round {line['round']} {line['kind']}{by}{text}"


def _describe_release(event: PlanHeld | PlanEscalated | PlanDecided) -> AuditLine:
    match event:
        case PlanHeld():
            why = " ".join(reason.sentence for reason in event.reasons)
            return AuditLine(round=event.round, kind="held", by="", when=event.held_at, text=why)
        case PlanEscalated():
            why = " ".join(reason.sentence for reason in event.reasons)
            outcome = f"It has no plan: {event.error}" if event.error else "Its plan is taken."
            return AuditLine(
                round=event.round, kind="escalated", by=event.orchestrator, when="", text=f"{why} {outcome}"
            )
        case PlanDecided():
            return _describe_decision(event)


def _describe_decision(event: PlanDecided) -> AuditLine:
    edits = ", ".join(map(_describe_edit, event.edits))
    text = "; ".join(filter(None, (edits, event.note)))
    if event.verdict == "reject":
        return AuditLine(round=event.round, kind="rejected", by=event.by, when=event.decided_at, text=event.note)
    if event.by.startswith("mode:"):
        text = "within every limit"
    return AuditLine(
        round=event.round, kind="edited" if event.edits else "approved", by=event.by, when=event.decided_at, text=text
    )


def _describe_edit(edit: AnyEdit) -> str:
    return "answer changed" if isinstance(edit, SetAnswer) else f"step {edit.step} {WORDS[edit.edit]}"
