"""Traces and curves as runs of Trackio: `trackio:PROJECT`. Where they go is Trackio's own matter (TRACKIO_SPACE_ID,
TRACKIO_SERVER_URL, TRACKIO_DIR)."""

from __future__ import annotations

import contextvars
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.errors import TrackerRefused
from orchestrator.tracking.spans import Span

log = logging.getLogger(__name__)
TRACES = "traces"  # the run that holds the traces
KINDS = {"plan": "generation", "invoke_agent": "generation", "execute_tool": "tool"}


class TrackioTracker:
    """A project of Trackio: a run with the traces, and one for each job."""

    def __init__(self, project: str) -> None:
        """Raises TrackerRefused."""
        if not project:
            raise TrackerRefused("name the project of Trackio, as in trackio:my-orchestrator")
        import trackio
        import trackio.run
        import trackio.utils

        for module in (trackio, trackio.run, trackio.utils):
            vars(module)["print"] = _log_line  # it prints to standard output, which is for our answers
        self._trackio, self._project = trackio, project
        self._runs: dict[str, Any] = {}

    def push(self, spans: Sequence[Span]) -> None:
        root = spans[0]
        metadata = {
            "session_id": root.attributes["gen_ai.conversation.id"],
            "status": "error" if root.error else "ok",
            "duration_ms": (root.end_ns - root.start_ns) / 1e6,
            "cost_usd": root.attributes["podium.cost_usd"],
            "pool": root.attributes["gen_ai.workflow.name"],
            "orchestrator": root.attributes["gen_ai.agent.name"],
        }
        figures = {"cost_usd": metadata["cost_usd"], "duration_ms": metadata["duration_ms"], "tokens": _tokens(root)}
        if (correct := root.attributes.get("podium.correct")) is not None:
            figures["correct"] = float(correct)
        trace = self._trackio.Trace(list_messages(root), metadata, [describe_span(span) for span in spans])
        self._open(TRACES).log({"episode": trace, **figures})

    def log(self, run: str, step: int, figures: Mapping[str, float]) -> None:
        self._open(run).log(dict(figures), step=step)

    def close(self) -> None:
        for run in self._runs.values():
            run.finish()

    def _open(self, name: str) -> Any:
        if name not in self._runs:
            settings = {"resume": "allow", "embed": False, "auto_log_cpu": False, "auto_log_gpu": False}
            # In a context of its own: Trackio ends the run before in the same one.
            start = contextvars.Context().run
            self._runs[name] = start(self._trackio.init, self._project, name, **settings)
        return self._runs[name]


def list_messages(span: Span) -> list[dict[str, str]]:
    """What went in and came out of a span, as chat messages."""
    keys = ("gen_ai.input.messages", "gen_ai.output.messages")
    documents = [message for key in keys for message in json.loads(str(span.attributes.get(key, "[]")))]
    return [
        {"role": message["role"], "content": "\n".join(part["content"] for part in message["parts"])}
        for message in documents
    ]


def describe_span(span: Span) -> dict[str, Any]:
    """A span in Trackio's form."""
    values = span.attributes
    messages = list_messages(span)
    texts = {role: [message["content"] for message in messages if message["role"] == role] for role in _ROLES}
    return {
        "id": f"{span.span_id:016x}",
        "parent_id": f"{span.parent_id:016x}" if span.parent_id is not None else None,
        "name": span.name,
        "kind": KINDS.get(str(values["gen_ai.operation.name"]), "span"),
        "start_time": span.start_ns / 1e9,
        "end_time": span.end_ns / 1e9,
        "duration_ms": (span.end_ns - span.start_ns) / 1e6,
        "status": "error" if span.error else "ok",
        "error": span.error[1] if span.error else None,
        "input": values.get("gen_ai.tool.call.arguments", "\n".join(texts["user"])),
        "output": values.get("gen_ai.tool.call.result", "\n".join(texts["assistant"])),
        "model": values.get("gen_ai.request.model"),
        "usage": {"input_tokens": values.get(_TOKENS[0], 0), "output_tokens": values.get(_TOKENS[1], 0)},
        "cost_usd": values.get("podium.cost_usd", 0.0),
        "metadata": {key: value for key, value in values.items() if key.startswith("podium.")},
    }


def _log_line(*words: object, **_: object) -> None:
    log.debug("%s", " ".join(map(str, words)))


_ROLES = ("user", "assistant")
_TOKENS = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")


def _tokens(span: Span) -> int:
    return sum(int(span.attributes[key]) for key in _TOKENS)
