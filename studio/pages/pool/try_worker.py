"""A worker's test from its card: its own sample call where it has one, otherwise its probe."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from pool_registry.actions import JsonValue, Observation, as_text
from pool_registry.errors import WorkerFault
from pool_registry.kinds import open_worker
from pool_registry.worker import Worker, WorkerSpec
from studio.pages.pool.schema import ObservationDocument, WorkerTest
from studio.runtime import Runtime

MAX_SHOWN_CHARS = 2000
NO_HITS = "no_hits"


def run_worker_test(runtime: Runtime, spec: WorkerSpec) -> WorkerTest:
    """What came of it, for the page. Raises InvalidPool when the worker cannot be opened.

    Only a kind's own sample is called: made-up arguments could have effects in another service.
    """
    worker = open_worker(spec)
    sample = find_sample(runtime, worker)
    if not sample or spec.kind == "orchestrator":
        return _probe(runtime, spec)
    seen = runtime.try_worker(alone(spec), sample, worker.sample_seen)
    probe = _probe(runtime, spec)  # for the light of its card, too
    if seen.error is not None and seen.error.code == NO_HITS:
        return probe  # a person's own documents need not hold the sample's words
    document = build_observation(seen)
    return WorkerTest(
        how="call",
        status=document.status,
        latency_s=seen.latency_s,
        text=str(document.value if seen.ok else document.error)[:MAX_SHOWN_CHARS],
        asked=as_text(next(iter(sample.values()))),
    )


def find_sample(runtime: Runtime, worker: Worker[Any]) -> Mapping[str, JsonValue]:
    """The worker's own sample, or where it has none a call that reads what it has: a person's own tables."""
    if worker.sample or worker.remote or not worker.cacheable:
        return worker.sample
    try:
        calls = runtime.run(worker.list_sample_calls(1))
    except WorkerFault:  # the test itself says what cannot be read
        return worker.sample
    return calls[0].arguments if calls else worker.sample


def _probe(runtime: Runtime, spec: WorkerSpec) -> WorkerTest:
    started = time.perf_counter()
    health = runtime.check_workers([spec])[0]
    latency_s = time.perf_counter() - started
    status = "OK" if health.ok else "EXEC_ERR"
    return WorkerTest(how="probe", status=status, latency_s=latency_s, text=health.text, asked="")


def alone(spec: WorkerSpec) -> WorkerSpec:
    """The worker without those that stand in for it: a test is about the worker itself."""
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
