"""What "Try it" begins with, and what it shows of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pool_registry.actions import JsonValue, Observation, as_text
from pool_registry.errors import WorkerFault
from pool_registry.worker import Worker, WorkerSpec
from studio.pages.pool.schema import ObservationDocument
from studio.runtime import Runtime


def find_sample(runtime: Runtime, worker: Worker[Any]) -> Mapping[str, JsonValue]:
    """The worker's own sample, or where it has none a call that reads what it has: a person's own tables."""
    if worker.sample or worker.remote or not worker.cacheable:
        return worker.sample
    try:
        calls = runtime.run(worker.list_sample_calls(1))
    except WorkerFault:  # the test itself says what cannot be read
        return worker.sample
    return calls[0].arguments if calls else worker.sample


def alone(spec: WorkerSpec) -> WorkerSpec:
    """The worker without those that stand in for it: a call is about the worker itself."""
    return spec.model_copy(update={"fallback": "", "cache": False})


def build_observation(seen: Observation) -> ObservationDocument:
    """An observation as the page shows it."""
    return ObservationDocument(
        status=seen.status.value,
        value=as_text(seen.value) if seen.ok else None,
        latency_s=seen.latency_s,
        tokens_in=seen.usage.tokens_in,
        tokens_out=seen.usage.tokens_out,
        cost=seen.usage.cost,
        error=f"{seen.error.code}: {seen.error.message}" if seen.error else None,
        notes=list(seen.notes),
    )


def make_arguments(runtime: Runtime, worker: Worker[Any]) -> dict[str, JsonValue]:
    """What "Try it" offers: a sample, or plain values that its schema would take."""
    sample = find_sample(runtime, worker)
    if sample:
        return dict(sample)
    properties = worker.parameters.get("properties")
    required = worker.parameters.get("required")
    if not isinstance(properties, Mapping):
        return {}
    names = [name for name in properties if isinstance(required, list) and name in required]
    return {name: _example(properties[name]) for name in names}


def _example(rule: JsonValue) -> JsonValue:
    """A value as a JSON Schema would have it: its own example or default, or the plainest of its type."""
    if not isinstance(rule, Mapping):
        return ""
    for key in ("examples", "enum"):
        offered = rule.get(key)
        if isinstance(offered, list) and offered:
            return offered[0]
    for key in ("example", "default", "const"):
        if rule.get(key) is not None:
            return rule[key]
    plain: dict[str, JsonValue] = {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}
    return plain.get(str(rule.get("type")), "")
