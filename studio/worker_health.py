"""A worker's light: what its last probe, its recent calls and its circuit breaker say together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from statistics import median
from typing import Any, Literal

from orchestrator.traces.store import RecordedCall
from pool_registry.calls.circuit_breaker import Circuit
from pool_registry.worker import WorkerSpec

Light = Literal["ok", "degraded", "failing", "unknown"]

RECENT = 50  # calls that count
ENOUGH = 3  # calls below which a rate says nothing
FAILING_RATE, DEGRADED_RATE = 0.5, 0.1
SLOW_SHARE = 0.5  # a median above this share of the time-out leaves little room

# Errors that come from what was asked, not from the worker: a wrong query says nothing about the database.
# A sandboxed worker's own time limit is one of them, too: the snippet was too slow.
_WORKERS_FAULTS = frozenset(
    {
        "auth", "quota", "rate_limited", "connection", "server_error", "not_found", "invalid_response",
        "bad_output", "address_refused", "bad_url", "timeout", "worker_raised", "unavailable", "circuit_open",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Health:
    """The last probe of a worker; `at` is UTC, ISO 8601."""

    ok: bool
    text: str
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


@dataclass(frozen=True, slots=True)
class WorkerHealth:
    """One light and what stands behind it. Latency in seconds; `error_rate` is None without calls."""

    light: Light
    sentence: str
    probe: Health | None
    circuit: Circuit
    calls: int
    errors: int
    error_rate: float | None
    median_latency_s: float | None
    last_error: str | None

    def document(self) -> dict[str, Any]:
        """As JSON for the page."""
        return asdict(self)


def judge(spec: WorkerSpec, probe: Health | None, calls: Sequence[RecordedCall], circuit: Circuit) -> WorkerHealth:
    """The light of a worker. `calls` are its recent ones, newest first."""
    failed = [call for call in calls if is_workers_fault(call)]
    rate = len(failed) / len(calls) if calls else None
    typical = median(call.latency_s for call in calls) if calls else None
    last_error = (failed[0].code or failed[0].status) if failed else None
    light, sentence = _light(spec, probe, rate if len(calls) >= ENOUGH else None, typical, last_error, circuit)
    return WorkerHealth(light, sentence, probe, circuit, len(calls), len(failed), rate, typical, last_error)


def is_workers_fault(call: RecordedCall) -> bool:
    """Whether a call failed for a reason that lies with the worker and not with what it was asked."""
    if call.code is None:
        return call.status in ("EXEC_ERR", "TIMEOUT")
    return call.code in _WORKERS_FAULTS


def _light(
    spec: WorkerSpec,
    probe: Health | None,
    rate: float | None,
    typical: float | None,
    last_error: str | None,
    circuit: Circuit,
) -> tuple[Light, str]:
    """The first of these that holds."""
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
    if typical is not None and rate is not None and typical > SLOW_SHARE * spec.timeout_s:
        return "degraded", f"slow: {typical:.3g} s at the median, {spec.timeout_s:g} s allowed"
    if probe is not None:
        return "ok", probe.text
    return ("unknown", "not tested yet") if typical is None else ("ok", "answers")
