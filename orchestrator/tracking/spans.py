"""An episode as spans with the semantic conventions for generative AI, for other programs' traces.

https://opentelemetry.io/docs/specs/semconv/gen-ai/. An episode is an `invoke_workflow` span; its turns are `plan`
spans, its steps `execute_tool` (tools) or `invoke_agent` spans. An access list becomes links: a step links to every
step whose output it was allowed to see. Ids follow from the episode's, so that what is sent twice is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from orchestrator.engine.episode import Episode, FinalAnswer, Round, StepRun
from orchestrator.layers import is_used
from pool_registry.actions import Usage, as_text
from pool_registry.kinds import role_of
from pool_registry.pool import Pool

PROVIDER = "podium"
Kind = Literal["internal", "client"]
Value = str | int | float | bool
Attributes = dict[str, Value]


@dataclass(frozen=True, slots=True)
class Link:
    """Another span that this one rests on."""

    span_id: int
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class Span:
    """Times are nanoseconds since 1970, ids of 128 and 64 bits. `error` is its type and a sentence; None where all is
    well."""

    trace_id: int
    span_id: int
    parent_id: int | None
    name: str
    kind: Kind
    start_ns: int
    end_ns: int
    attributes: Attributes
    links: tuple[Link, ...] = ()
    error: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class TracedEpisode:
    """One episode and its pool, if that is kept. `outer` are the ids of the episodes around it, outermost first."""

    episode: Episode
    pool: Pool | None = None
    outer: tuple[str, ...] = ()

    @property
    def trace_id(self) -> int:
        return _number(self.outer[0] if self.outer else self.episode.id, 16)

    def span_id(self, part: str = "") -> int:
        return _number(f"{self.episode.id}/{part}", 8)


def list_spans(traced: TracedEpisode) -> Iterator[Span]:
    """The spans of an episode, its own first."""
    episode = traced.episode
    if episode.started is None:
        return
    yield build_episode_span(traced)
    for done in episode.rounds:
        yield build_turn_span(traced, done)
        for run in done.steps:
            yield build_step_span(traced, run)
    if episode.final is not None:
        yield from build_final_span(traced, episode.final)


def build_episode_span(traced: TracedEpisode) -> Span:
    """The span around all others of an episode."""
    episode = traced.episode
    started, ended = episode.started, episode.ended
    assert started is not None, "there are no spans before it has begun"
    outer = started.parent
    parent = _number(f"{outer.episode}/step-{outer.step}", 8) if outer is not None else None
    values = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.workflow.name": started.pool,
        "gen_ai.agent.name": started.orchestrator,
        "gen_ai.conversation.id": episode.id,
        "gen_ai.input.messages": _messages("user", episode.query),
        "gen_ai.output.messages": _messages("assistant", as_text(episode.final_answer))
        if ended and ended.answer is not None
        else None,
        "podium.pool.hash": started.pool_hash,
        "podium.outcome": ended.outcome if ended else "running",
        "podium.depth": started.depth,
        "podium.correct": episode.graded.correct if episode.graded else None,
        **_usage(episode.usage),
    }
    failed = ended is not None and ended.outcome != "answered"
    return _span(
        traced, "", f"invoke_workflow {started.pool}", "internal",
        (0.0, ended.at if ended else episode.last_at), values,
        error=(ended.outcome, ended.reason or "") if failed and ended else None, parent=parent, is_root=True,
    )  # fmt: skip


def build_turn_span(traced: TracedEpisode, done: Round) -> Span:
    """The span of a turn, in which the orchestrator writes a plan."""
    turn = done.turn
    assert traced.episode.started is not None, "there are no spans before it has begun"
    model = traced.episode.started.orchestrator
    values = {
        "gen_ai.operation.name": "plan",
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.request.model": model,
        "gen_ai.input.messages": _messages("user", turn.prompt) if turn and turn.prompt else None,
        "gen_ai.output.messages": _messages("assistant", turn.text) if turn and turn.text else None,
        "podium.round": done.number,
        **(_usage(turn.usage) if turn else {}),
    }
    ended = done.turn_ended_at if done.turn_ended_at is not None else traced.episode.last_at
    error = ("parse_error" if not turn.failed else "orchestrator_failed", turn.error) if turn and turn.error else None
    times = (done.started_at, ended)
    return _span(traced, f"turn-{done.number}", f"plan {model}", "client", times, values, error=error)


def build_final_span(traced: TracedEpisode, final: FinalAnswer) -> Iterator[Span]:
    """The span of the pool's finalizer, where it was called."""
    if final.started_at is None:
        return
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
    yield _span(traced, "final", name, "client", (final.started_at, ended), values, error=error)


def build_step_span(traced: TracedEpisode, run: StepRun) -> Span:
    """The span of a call of a worker."""
    spec = traced.pool.find_worker(run.step.worker) if traced.pool else None
    role = role_of(spec.kind) if spec is not None else "tool"
    seen = run.observation
    arguments = dict(run.arguments if run.arguments is not None else run.step.arguments)
    values: dict[str, Value | None] = {
        "podium.round": run.round,
        "podium.step": run.step.id,
        "podium.status": run.state,
    }
    kind: Kind
    if role == "tool":
        name, kind = f"execute_tool {run.step.worker}", "internal"
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
        name, kind = f"invoke_agent {run.step.worker}", "client"
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
    links = tuple(_link(traced, k, is_used(run.step, k, role)) for k in run.step.access if k in traced.episode.steps)
    return _span(traced, f"step-{run.step.id}", name, kind, times, values, error=error, links=links)


def _span(
    traced: TracedEpisode,
    part: str,
    name: str,
    kind: Kind,
    times: tuple[float, float],
    values: Mapping[str, Value | None],
    *,
    error: tuple[str, str] | None = None,
    links: tuple[Link, ...] = (),
    parent: int | None = None,
    is_root: bool = False,
) -> Span:
    """`times` are seconds since the episode began."""
    assert traced.episode.started is not None, "there are no spans before it has begun"
    zero = datetime.fromisoformat(traced.episode.started.started_at).timestamp()
    start, end = (int((zero + max(0.0, at)) * 1e9) for at in times)
    attributes = {key: value for key, value in values.items() if value is not None}
    return Span(
        trace_id=traced.trace_id,
        span_id=traced.span_id(part),
        parent_id=parent if is_root else traced.span_id(),
        name=name,
        kind=kind,
        start_ns=start,
        end_ns=max(start, end),
        attributes={**attributes, "error.type": error[0]} if error else attributes,
        links=links,
        error=error,
    )


def _link(traced: TracedEpisode, step: int, used: bool) -> Link:
    return Link(traced.span_id(f"step-{step}"), {"podium.access.used": used, "podium.step": step})


def _usage(usage: Usage) -> Attributes:
    return {
        "gen_ai.usage.input_tokens": usage.tokens_in,
        "gen_ai.usage.output_tokens": usage.tokens_out,
        "podium.cost_usd": usage.cost,
    }


def _messages(role: str, text: str) -> str:
    """The conventions' form of a chat message, as JSON text."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}], ensure_ascii=False)


def _number(text: str, size: int) -> int:
    """An id of `size` bytes."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size], "big")
