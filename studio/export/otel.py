"""Traces as OpenTelemetry spans in OTLP's JSON encoding, with the semantic conventions for generative AI.

https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding and .../semconv/gen-ai/. An episode is an
`invoke_agent` span; its turns are `chat` spans, its steps `execute_tool` (tools) or `invoke_agent` spans. An access
list becomes span links: a step links to every step whose output it was allowed to see.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.engine.episode import Episode, FinalAnswer, Round, StepRun
from orchestrator.layers import is_used
from pool_registry.actions import Usage, as_text
from pool_registry.kinds import role_of
from pool_registry.pool import Pool

INTERNAL, CLIENT = 1, 3  # opentelemetry.proto.trace.v1.Span.SpanKind
OK, ERROR = 1, 2  # opentelemetry.proto.trace.v1.Status.StatusCode
SCHEMA = "https://opentelemetry.io/schemas/1.37.0"
PROVIDER = "podium"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TracedEpisode:
    """One episode and its pool, if that is kept. `outer` are the ids of the episodes around it, outermost first."""

    episode: Episode
    pool: Pool | None = None
    outer: tuple[str, ...] = ()

    @property
    def trace_id(self) -> str:
        return _hex(self.outer[0] if self.outer else self.episode.id, 32)

    def span_id(self, part: str = "") -> str:
        return _hex(f"{self.episode.id}/{part}", 16)


def build_export_request(episodes: Iterable[TracedEpisode], version: str) -> Json:
    """Build an ExportTraceServiceRequest. Inner episodes are spans of the outermost episode's trace."""
    spans = [span for traced in episodes for span in _spans(traced)]
    resource = {"attributes": _attributes({"service.name": "podium", "service.version": version})}
    scope = {"scope": {"name": "podium", "version": version}, "spans": spans, "schemaUrl": SCHEMA}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope], "schemaUrl": SCHEMA}]}


def _spans(traced: TracedEpisode) -> Iterator[Json]:
    episode = traced.episode
    if episode.started is None:
        return
    yield _episode_span(traced)
    for done in episode.rounds:
        yield _turn_span(traced, done)
        for run in done.steps:
            yield _step_span(traced, run)
    if episode.final is not None and episode.final.started_at is not None:
        yield _final_span(traced, episode.final, episode.final.started_at)


def _episode_span(traced: TracedEpisode) -> Json:
    episode = traced.episode
    started, ended = episode.started, episode.ended
    assert started is not None, "_spans has checked it"
    parent = ""
    if started.parent is not None:
        parent = _hex(f"{started.parent.episode}/step-{started.parent.step}", 16)
    values = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.agent.name": started.orchestrator,
        "gen_ai.conversation.id": episode.id,
        "gen_ai.input.messages": _messages("user", episode.query),
        "gen_ai.output.messages": _messages("assistant", as_text(episode.final_answer))
        if ended and ended.answer is not None
        else None,
        "podium.pool.name": started.pool,
        "podium.pool.hash": started.pool_hash,
        "podium.outcome": ended.outcome if ended else "running",
        "podium.depth": started.depth,
        "podium.correct": episode.graded.correct if episode.graded else None,
        **_usage(episode.usage),
    }
    failed = ended is not None and ended.outcome != "answered"
    return _span(
        traced, "", f"invoke_agent {started.orchestrator}", INTERNAL,
        (0.0, ended.at if ended else episode.last_at), values,
        error=(ended.outcome, ended.reason or "") if failed and ended else None, parent=parent,
    )  # fmt: skip


def _turn_span(traced: TracedEpisode, done: Round) -> Json:
    turn = done.turn
    assert traced.episode.started is not None, "_spans has checked it"
    model = traced.episode.started.orchestrator
    values = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.request.model": model,
        "gen_ai.input.messages": _messages("user", turn.prompt) if turn and turn.prompt else None,
        "gen_ai.output.messages": _messages("assistant", turn.text) if turn and turn.text else None,
        "podium.round": done.number,
        **(_usage(turn.usage) if turn else {}),
    }
    ended = done.turn_ended_at if done.turn_ended_at is not None else traced.episode.last_at
    error = ("parse_error" if not turn.failed else "orchestrator_failed", turn.error) if turn and turn.error else None
    return _span(traced, f"turn-{done.number}", f"chat {model}", CLIENT, (done.started_at, ended), values, error=error)


def _final_span(traced: TracedEpisode, final: FinalAnswer, started_at: float) -> Json:
    """The call of the pool's finalizer."""
    seen = final.observation
    values = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.agent.name": final.worker,
        "gen_ai.input.messages": _messages("user", seen.prompt) if seen and seen.prompt else None,
        "gen_ai.output.messages": _messages("assistant", as_text(seen.value)) if seen and seen.ok else None,
        "podium.plan_answer": as_text(traced.episode.answer),
        **(_usage(seen.usage) if seen else {}),
    }
    ended = final.ended_at if final.ended_at is not None else traced.episode.last_at
    error = (seen.error.code, seen.error.message) if seen and seen.error else None
    name = f"invoke_agent {final.worker}"
    return _span(traced, "final", name, CLIENT, (started_at, ended), values, error=error)


def _step_span(traced: TracedEpisode, run: StepRun) -> Json:
    spec = traced.pool.find_worker(run.step.worker) if traced.pool else None
    role = role_of(spec.kind) if spec is not None else "tool"
    seen = run.observation
    arguments = dict(run.arguments if run.arguments is not None else run.step.arguments)
    values: Json = {"podium.round": run.round, "podium.step": run.step.id, "podium.status": run.state}
    if role == "tool":
        name, kind = f"execute_tool {run.step.worker}", INTERNAL
        values |= {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": run.step.worker,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": f"{traced.episode.id}-{run.step.id}",
            "gen_ai.tool.description": spec.description if spec else None,
            "gen_ai.tool.call.arguments": json.dumps(arguments, ensure_ascii=False),
            "gen_ai.tool.call.result": as_text(seen.value) if seen and seen.ok else None,
        }
    else:
        name, kind = f"invoke_agent {run.step.worker}", CLIENT
        values |= {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": PROVIDER,
            "gen_ai.agent.name": run.step.worker,
            "gen_ai.agent.description": spec.description if spec else None,
            "gen_ai.request.model": str(spec.config.get("model")) if spec and spec.config.get("model") else None,
            "gen_ai.input.messages": _messages("user", (seen.prompt if seen else None) or as_text(arguments)),
            "gen_ai.output.messages": _messages("assistant", as_text(seen.value)) if seen and seen.ok else None,
            **(_usage(seen.usage) if seen else {}),
        }
    start = run.started_at if run.started_at is not None else run.ended_at
    last = traced.episode.last_at
    times = (last if start is None else start, last if run.ended_at is None else run.ended_at)
    error = (seen.error.code, f"{seen.status}: {seen.error.message}") if seen and seen.error else None
    links = [_link(traced, k, is_used(run.step, k, role)) for k in run.step.access if k in traced.episode.steps]
    return _span(traced, f"step-{run.step.id}", name, kind, times, values, error=error, links=links)


def _span(
    traced: TracedEpisode,
    part: str,
    name: str,
    kind: int,
    times: tuple[float, float],
    values: Mapping[str, Any],
    *,
    error: tuple[str, str] | None = None,
    links: list[Json] | None = None,
    parent: str | None = None,
) -> Json:
    assert traced.episode.started is not None, "_spans has checked it"
    zero = datetime.fromisoformat(traced.episode.started.started_at).timestamp()
    start, end = (str(int((zero + max(0.0, at)) * 1e9)) for at in times)
    span: Json = {
        "traceId": traced.trace_id,
        "spanId": traced.span_id(part),
        "parentSpanId": traced.span_id() if parent is None else parent,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": start,
        "endTimeUnixNano": max(start, end, key=int),
        "attributes": _attributes({**values, "error.type": error[0]} if error else values),
        "links": links or [],
        "status": {"code": ERROR, "message": error[1]} if error else {"code": OK},
    }
    return span


def _link(traced: TracedEpisode, step: int, used: bool) -> Json:
    attributes = _attributes({"podium.access.used": used, "podium.step": step})
    return {"traceId": traced.trace_id, "spanId": traced.span_id(f"step-{step}"), "attributes": attributes}


def _usage(usage: Usage) -> Json:
    return {
        "gen_ai.usage.input_tokens": usage.tokens_in,
        "gen_ai.usage.output_tokens": usage.tokens_out,
        "podium.cost_usd": usage.cost,
    }


def _messages(role: str, text: str) -> str:
    """The conventions' form of a chat message, as JSON text."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}], ensure_ascii=False)


def _attributes(values: Mapping[str, Any]) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def _value(value: Any) -> Json:
    """An AnyValue; 64-bit integers are texts in this encoding."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}


def _hex(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
