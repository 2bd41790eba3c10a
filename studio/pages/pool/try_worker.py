"""A worker's test from its card: its own sample call where it has one, otherwise its probe."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from pool_registry.actions import JsonValue, Observation, as_text
from pool_registry.kinds import open_worker
from pool_registry.worker import Worker, WorkerSpec
from studio.runtime import Runtime

MAX_SHOWN_CHARS = 2000
NO_HITS = "no_hits"


def run_worker_test(runtime: Runtime, spec: WorkerSpec) -> dict[str, Any]:
    """What came of it, for the page. Raises InvalidPool when the worker cannot be opened.

    Only a kind's own sample is called: made-up arguments could have effects in another service.
    """
    worker = open_worker(spec)
    if not worker.sample or spec.kind == "orchestrator":
        return _probe(runtime, spec)
    seen = runtime.try_worker(alone(spec), worker.sample, worker.sample_seen)
    probe = _probe(runtime, spec)  # for the light of its card, too
    if seen.error is not None and seen.error.code == NO_HITS:
        return probe  # a person's own documents need not hold the sample's words
    document = build_observation(seen)
    return {
        "how": "call",
        "status": document["status"],
        "latency_s": seen.latency_s,
        "text": str(document["value"] if seen.ok else document["error"])[:MAX_SHOWN_CHARS],
        "asked": as_text(next(iter(worker.sample.values()))),
    }


def _probe(runtime: Runtime, spec: WorkerSpec) -> dict[str, Any]:
    started = time.perf_counter()
    health = runtime.check_workers([spec])[0]
    latency_s = time.perf_counter() - started
    status = "OK" if health.ok else "EXEC_ERR"
    return {"how": "probe", "status": status, "latency_s": latency_s, "text": health.text, "asked": ""}


def alone(spec: WorkerSpec) -> WorkerSpec:
    """The worker without those that stand in for it: a test is about the worker itself."""
    return spec.model_copy(update={"fallback": "", "cache": False})


def build_observation(seen: Observation) -> dict[str, Any]:
    """An observation as the page shows it."""
    return {
        "status": seen.status.value,
        "value": as_text(seen.value) if seen.ok else None,
        "latency_s": seen.latency_s,
        "tokens_in": seen.usage.tokens_in,
        "tokens_out": seen.usage.tokens_out,
        "cost": seen.usage.cost,
        "error": f"{seen.error.code}: {seen.error.message}" if seen.error else None,
    }


def make_arguments(worker: Worker[Any]) -> dict[str, JsonValue]:
    """What "Try it" offers: the worker's own sample, or plain values that its schema would take."""
    if worker.sample:
        return dict(worker.sample)
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
