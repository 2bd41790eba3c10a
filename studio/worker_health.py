"""A worker's health, from its last probe, its recent calls and its circuit breaker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median
from typing import Literal

from orchestrator.traces.store import RecordedCall
from pool_registry.calls.circuit_breaker import Circuit
from pool_registry.worker import WorkerSpec

Light = Literal["ok", "degraded", "failing", "unknown"]

RECENT = 50  # newest calls that count
ENOUGH = 3  # fewer calls give no error rate
FAILING_RATE, DEGRADED_RATE = 0.5, 0.1
SLOW_SHARE = 0.5  # of the time-out; a median latency above it is reported as slow

# Codes of errors that are the worker's own fault. A wrong query, for example, says nothing about the database, and
# a sandboxed worker's own time limit means that the snippet was too slow.
_WORKERS_FAULTS = frozenset(
    {
        "auth", "quota", "rate_limited", "connection", "server_error", "not_found", "invalid_response",
        "bad_output", "address_refused", "bad_url", "timeout", "worker_raised", "unavailable", "circuit_open",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Probe:
    """The result of the last probe of a worker; `at` is UTC, ISO 8601."""

    ok: bool
    text: str
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


@dataclass(frozen=True, slots=True)
class WorkerHealth:
    """A light and the figures behind it. Latency in seconds; `error_rate` is None without calls."""

    light: Light
    sentence: str
    probe: Probe | None
    circuit: Circuit
    calls: int
    errors: int
    error_rate: float | None
    median_latency_s: float | None
    last_error: str | None


def assess_worker(
    spec: WorkerSpec, probe: Probe | None, calls: Sequence[RecordedCall], circuit: Circuit
) -> WorkerHealth:
    """Assess the health of a worker. `calls` are its recent ones, newest first."""
    failed = [call for call in calls if is_workers_fault(call)]
    rate = len(failed) / len(calls) if calls else None
    median_s = median(call.latency_s for call in calls) if calls else None
    last_error = (failed[0].code or failed[0].status) if failed else None
    light, sentence = _choose_light(spec, probe, rate if len(calls) >= ENOUGH else None, median_s, last_error, circuit)
    return WorkerHealth(light, sentence, probe, circuit, len(calls), len(failed), rate, median_s, last_error)


def is_workers_fault(call: RecordedCall) -> bool:
    """Whether a call failed because of the worker and not because of its arguments."""
    if call.code is None:
        return call.status in ("EXEC_ERR", "TIMEOUT")
    return call.code in _WORKERS_FAULTS


def _choose_light(
    spec: WorkerSpec,
    probe: Probe | None,
    rate: float | None,
    median_s: float | None,
    last_error: str | None,
    circuit: Circuit,
) -> tuple[Light, str]:
    """Choose the light and its sentence: the first rule that applies decides."""
    calls = median_s is not None
    often = f"{rate:.0%} of its recent calls failed, last with {last_error}" if rate else ""
    if circuit.state == "open":
        return "failing", f"failed {circuit.failures} times in a row; tried again in {circuit.seconds:.0f} s"
    if probe is not None and not probe.ok:
        return "failing", probe.text
    if rate is not None and rate >= FAILING_RATE:
        return "failing", often
    if circuit.state == "half-open":
        return "degraded", f"failed {circuit.failures} times in a row; the next call tries it again"
    if rate is not None and rate >= DEGRADED_RATE:
        return "degraded", often
    if median_s is not None and rate is not None and median_s > SLOW_SHARE * spec.timeout_s:
        return "degraded", f"slow: {median_s:.3g} s at the median, {spec.timeout_s:g} s allowed"
    if probe is not None:
        return "ok", probe.text if calls else f"not called yet; {probe.text}"
    return ("unknown", "not tested yet") if median_s is None else ("ok", "answers")
