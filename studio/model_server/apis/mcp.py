"""The orchestrator as a tool for other agents: an MCP server with the tool `ask`.

The official SDK speaks the protocol, over stdio or streamable HTTP. A cancelled call cancels its episode. Where plans
may have to wait for a person, `ask` puts the question to the client's own person (elicitation); without one it returns
the plan, and a second tool, `decide`, takes the decision.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field, ValidationError

from pool_registry.calls.run_limits import build_run_limits
from pool_registry.errors import InvalidRunLimits
from pool_registry.validation_words import describe_problems
from studio.frame.sse import KEEP_ALIVE_S
from studio.model_server.approvals import Approvals, ServedDecision
from studio.model_server.errors import REQUIRES_APPROVAL, ApiError, ApprovalRequired
from studio.model_server.request import EpisodeRequest
from studio.model_server.service import Service


class AskResult(BaseModel):
    """What the tools `ask` and `decide` return. A plan that waits has the status requires_approval and no answer."""

    answer: str
    status: str = "answered"
    approval: dict[str, Any] | None = Field(default=None, description="The plan that waits; decide about it by its id.")
    trace: str | None = Field(
        description="The id of the trace: the studio opens it at /?episode=ID. None where the server records nothing."
    )
    steps: int = Field(description="How many calls of workers it took.")
    tokens: int
    cost: float = Field(description="US dollars.")


class PlanQuestion(BaseModel):
    """What the client's person is asked about a plan that waits."""

    approve: bool = Field(description="Let the plan run.")
    note: str = Field(default="", description="A note for the audit trail.")


def create_mcp_server(service: Callable[[], Service], *, holds_plans: bool = False) -> MCPServer[None]:
    """Create the MCP server. `service` is called with each tool call: it exists only once the event loop runs.
    `holds_plans`: plans may have to wait for a person."""
    server: MCPServer[None] = MCPServer(
        "podium",
        instructions="Podium answers a question with a whole pool of agents and tools. Use `ask`.",
        log_level="WARNING",
    )

    @server.tool()
    async def ask(
        query: str,
        context: Context[None],
        without_workers: list[str] | None = None,
        max_cost: float | None = None,
        seen_by: dict[str, list[str]] | None = None,
        finalizer: bool = True,
    ) -> AskResult:
        """Ask the orchestrator: it decides which agents and tools of its pool to call, and answers. `without_workers`
        are not called; `max_cost` is the most US dollars; `seen_by` lists the only workers that may see the outputs of
        a worker: {"crm": ["analyst"]}; without `finalizer` the plan's own answer is returned."""
        try:
            limits = build_run_limits(without_workers or (), max_cost, seen_by)
            request = EpisodeRequest(query, question=query, run_limits=limits, finalizer=finalizer, for_person=False)
            await service().refresh()
            served = service().start_episode(request, _token_owner(context))
        except (ApiError, InvalidRunLimits) as refusal:
            raise ToolError(str(refusal)) from refusal
        progress = served.progress
        try:
            async for event in served.events(KEEP_ALIVE_S):
                line = progress.describe(event) if event is not None else None
                if line is not None:
                    await context.report_progress(progress.done, progress.total or None, line.rstrip())
            answer = await served.answer()
            episode, _ = await served.result()
        except ApprovalRequired as required:
            return await _ask_person(service().approvals, required.plan, context)
        except ApiError as error:
            raise ToolError(f"{error.code}: {error}") from error
        finally:
            served.stop()
        if not answer.text:
            raise ToolError("no answer within the limits." + (f" The trace is {served.trace}." if served.trace else ""))
        usage = episode.usage
        return AskResult(
            answer=answer.text,
            trace=served.trace,
            steps=len(episode.steps),
            tokens=usage.tokens,
            cost=usage.cost,
        )

    if holds_plans:
        _add_decide(server, service)
    return server


def _add_decide(server: MCPServer[None], service: Callable[[], Service]) -> None:
    @server.tool()
    async def decide(
        id: str,
        decision: Literal["approve", "edit", "reject"],
        context: Context[None],
        note: str = "",
        edits: list[dict[str, Any]] | None = None,
    ) -> AskResult:
        """Decide about a plan that waits for approval, after a person has agreed. `edits` are those of the plan's
        steps: {"edit": "change", "step": 1, "worker": ..., "arguments": {...}, "access": []}, {"edit": "remove",
        "step": 2}, {"edit": "add", ...}, {"edit": "answer", "answer": "$1"}."""
        try:
            made = ServedDecision.model_validate({"decision": decision, "note": note, "edits": edits or []})
            document = await service().approvals.decide(id, _token_owner(context), made)
        except ValidationError as error:
            raise ToolError(describe_problems(error)) from error
        except ApiError as refusal:
            raise ToolError(str(refusal)) from refusal
        return _describe_document(document, service().approvals)


async def _ask_person(approvals: Approvals, plan: dict[str, Any], context: Context[None]) -> AskResult:
    """Ask the client's own person about each plan of a run; where the client cannot ask, return the plan."""
    capabilities = context.client_capabilities
    while plan["status"] == REQUIRES_APPROVAL and capabilities is not None and capabilities.elicitation is not None:
        try:
            reply = await context.elicit(_write_question(plan), PlanQuestion)
        except (MCPError, RuntimeError):  # a connection on which the server cannot ask
            break
        if reply.action == "cancel":
            break
        agreed = reply.action == "accept" and reply.data.approve
        note = reply.data.note if reply.action == "accept" else ""
        made = ServedDecision(decision="approve" if agreed else "reject", note=note)
        try:
            plan = await approvals.decide(plan["id"], _token_owner(context), made)
        except ApiError as refusal:
            raise ToolError(str(refusal)) from refusal
    return _describe_document(plan, approvals)


def _describe_document(document: dict[str, Any], approvals: Approvals) -> AskResult:
    """The result of a run that waited, as it is now. Raises ToolError where it ended without an answer."""
    usage, steps = approvals.count_usage(document["id"])
    if document["status"] not in ("answered", REQUIRES_APPROVAL):
        raise ToolError(f"{document['status']}: {document['reason']} The trace is {document['id']}.")
    waits = document["status"] == REQUIRES_APPROVAL
    return AskResult(
        answer="" if waits else document["answer"],
        status=document["status"],
        approval=document if waits else None,
        trace=document["id"],
        steps=steps,
        tokens=usage.tokens,
        cost=usage.cost,
    )


def _write_question(plan: dict[str, Any]) -> str:
    steps = [
        f"{step['id']} {step['worker']}: {json.dumps(step['values'], ensure_ascii=False)}" for step in plan["steps"]
    ]
    why = [reason["sentence"] for reason in plan["reasons"]]
    total = f"Estimate: {plan['estimated_s']:.1f} s, ${plan['estimated_cost']:.4f}."
    return "\n".join([f"Let this plan run? {plan['query']}", *why, *steps, total])


def _token_owner(context: Context[None]) -> str:
    """The owner of the HTTP request's token; "" over stdio."""
    request = context.request_context.request
    return str(getattr(getattr(request, "state", None), "user", "")) if request is not None else ""
