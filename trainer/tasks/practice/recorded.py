"""Arguments of calls that succeeded in recorded runs of a pool: they are good for practice too."""

from __future__ import annotations

from collections import defaultdict

from orchestrator.traces.store import TraceFilter, TraceStore
from pool_registry.actions import JsonValue
from trainer.tasks.practice.traffic_record import read_traffic

EPISODES = 200
PER_WORKER = 24


def list_recorded_arguments(
    traces: TraceStore, pool: str, episodes: int = EPISODES
) -> dict[str, list[dict[str, JsonValue]]]:
    """List arguments by worker, the newest first, of calls that used no other step's output, in the newest runs. Those
    of clients are among them only where their requests may become tasks."""
    arguments: defaultdict[str, list[dict[str, JsonValue]]] = defaultdict(list)
    traffic = read_traffic(pool)
    for row in traces.search(TraceFilter(pool=pool, limit=episodes)):
        if not traffic.allows(row.source):
            continue
        for run in traces.episode(row.id).steps.values():
            alone = not run.step.references and not run.step.access
            worker_calls = arguments[run.step.worker]
            if alone and run.observation is not None and run.observation.ok and len(worker_calls) < PER_WORKER:
                worker_calls.append(dict(run.step.arguments))
    return {worker: calls for worker, calls in arguments.items() if calls}
