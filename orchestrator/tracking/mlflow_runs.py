"""Traces and curves in MLflow: `mlflow:URI` or `mlflow:URI#EXPERIMENT`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.errors import TrackerRefused
from orchestrator.tracking.spans import Span

EXPERIMENT = "podium"
TYPES = {"invoke_workflow": "WORKFLOW", "plan": "CHAT_MODEL", "invoke_agent": "AGENT", "execute_tool": "TOOL"}
INPUTS = ("gen_ai.input.messages", "gen_ai.tool.call.arguments")
OUTPUTS = ("gen_ai.output.messages", "gen_ai.tool.call.result")
MS = 1000


class MlflowTracker:
    """An experiment of MLflow: its traces, and a run for each job."""

    def __init__(self, target: str) -> None:
        """Raises TrackerRefused."""
        uri, _, experiment = target.partition("#")
        if not uri:
            raise TrackerRefused("name MLflow's server or store, as in mlflow:http://127.0.0.1:5000")
        import mlflow

        mlflow.set_tracking_uri(uri)
        self._mlflow, self._client = mlflow, mlflow.MlflowClient(uri)
        self._name = experiment or EXPERIMENT
        self._runs: dict[str, str] = {}
        self._experiment = ""

    def push(self, spans: Sequence[Span]) -> None:
        started: dict[int, Any] = {}
        # A parent first; those of inner episodes hang below the step that they serve.
        for span in sorted(spans, key=lambda span: (span.start_ns, span is not spans[0])):
            started[span.span_id] = self._start(span, started.get(span.parent_id or 0))
        for span in reversed(spans):
            live = started[span.span_id]
            live.set_outputs(_first(span, OUTPUTS))
            live.end(status="ERROR" if span.error else "OK", end_time_ns=span.end_ns)

    def log(self, run: str, step: int, figures: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * MS)
        metrics = [Metric(name, value, now, step) for name, value in figures.items()]
        self._client.log_batch(self._open_run(run), metrics=metrics)

    def close(self) -> None:
        self._mlflow.flush_trace_async_logging()
        for run in self._runs.values():
            self._client.set_terminated(run)

    def _start(self, span: Span, parent: Any) -> Any:
        values = span.attributes
        attributes = {key: value for key, value in values.items() if key not in (*INPUTS, *OUTPUTS)}
        tokens = [int(values.get(f"gen_ai.usage.{side}_tokens", 0)) for side in ("input", "output")]
        usage = {"input_tokens": tokens[0], "output_tokens": tokens[1], "total_tokens": sum(tokens)}
        asks_model = values["gen_ai.operation.name"] in ("plan", "invoke_agent")
        own = {"mlflow.chat.tokenUsage": usage} if asks_model else {}
        return self._mlflow.start_span_no_context(
            span.name,
            span_type=TYPES.get(str(values["gen_ai.operation.name"]), "UNKNOWN"),
            parent_span=parent,
            inputs=_first(span, INPUTS),
            attributes={**attributes, **own, **({"error.message": span.error[1]} if span.error else {})},
            experiment_id=self._find_experiment() if parent is None else None,
            start_time_ns=span.start_ns,
        )

    def _find_experiment(self) -> str:
        """The experiment's id, made at the first use."""
        if not self._experiment:
            there = self._client.get_experiment_by_name(self._name)
            self._experiment = there.experiment_id if there else self._client.create_experiment(self._name)
        return self._experiment

    def _open_run(self, name: str) -> str:
        if name not in self._runs:
            run = self._client.create_run(self._find_experiment(), run_name=name)
            self._runs[name] = run.info.run_id
        return self._runs[name]


def _first(span: Span, keys: Sequence[str]) -> object:
    return next((span.attributes[key] for key in keys if key in span.attributes), None)
