"""The totals of an episode: time, cost and parallelism, computed from its trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.engine.episode import Episode, StepRun
from orchestrator.layers import layer_sizes
from orchestrator.traces.step_counts import StepCounts, count_steps


@dataclass(frozen=True, slots=True)
class EpisodeTotals:
    """Times in seconds, cost in US dollars.

    `serial_s` is the sum over all turns and steps, `critical_path_s` the sum over the longest chain of them that
    wait for each other, `speedup` serial over wall time (None before the episode has ended). `workers_speedup` is that
    of the workers' part alone: the sum of their times over the time in which at least one of them ran. `width` is the
    size of the largest layer, `depth` the number of layers over all rounds, `valid_turns` how many turns could be
    parsed. `steps` are all calls, `counts` the same as people count them.
    """

    wall_s: float
    critical_path_s: float
    serial_s: float
    speedup: float | None
    workers_speedup: float | None
    tokens_in: int
    tokens_out: int
    cost: float
    steps: int
    rounds: int
    valid_turns: int
    width: int
    depth: int
    statuses: dict[str, int]
    counts: StepCounts


def compute_totals(episode: Episode) -> EpisodeTotals:
    """The totals of an episode so far."""
    usage = episode.usage
    turns_s = sum(
        (episode.last_at if r.turn_ended_at is None else r.turn_ended_at) - r.started_at for r in episode.rounds
    )
    final = episode.final.observation if episode.final is not None else None
    ends_s = turns_s + (final.latency_s if final is not None else 0.0)  # nothing runs beside these
    serial_s = ends_s + sum(latency(run) for run in episode.steps.values())
    path_s = ends_s + sum(latency(episode.steps[k]) for k in critical_path(episode))
    wall_s = episode.ended.at if episode.ended else episode.last_at
    layered = [layers for done in episode.rounds if (layers := layer_sizes([run.step for run in done.steps]))]
    return EpisodeTotals(
        wall_s=wall_s,
        critical_path_s=path_s,
        serial_s=serial_s,
        speedup=serial_s / wall_s if episode.ended and wall_s > 0 else None,
        workers_speedup=_measure_workers_speedup(episode),
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        cost=usage.cost,
        steps=len(episode.steps),
        rounds=len(episode.rounds),
        valid_turns=sum(done.turn is not None and done.turn.error is None for done in episode.rounds),
        width=max((max(layers) for layers in layered), default=0),
        depth=sum(map(len, layered)),
        statuses=dict(Counter(run.state for run in episode.steps.values())),
        counts=count_steps(episode),
    )


def _measure_workers_speedup(episode: Episode) -> float | None:
    """None before the episode has ended, and where no worker took measurable time."""
    spans = [
        (run.started_at, run.ended_at)
        for run in episode.steps.values()
        if run.started_at is not None and run.ended_at is not None
    ]
    busy_s, until = 0.0, 0.0
    for start, end in sorted(spans):
        busy_s += max(0.0, end - max(start, until))
        until = max(until, end)
    return sum(end - start for start, end in spans) / busy_s if episode.ended and busy_s > 0 else None


def latency(run: StepRun) -> float:
    return run.observation.latency_s if run.observation is not None else 0.0


def critical_path(episode: Episode, measure: Callable[[StepRun], float] = latency) -> list[int]:
    """Step ids on the longest chain: within each round the longest over access edges, by the seconds of each step that
    `measure` returns (default: its latency)."""
    path: list[int] = []
    for done in episode.rounds:
        path += _longest_chain(done.steps, measure)
    return path


def _longest_chain(runs: list[StepRun], measure: Callable[[StepRun], float]) -> list[int]:
    """The ids of the chain with the most seconds. Ids are a topological order, so one pass is enough."""
    length: dict[int, float] = {}
    before: dict[int, int | None] = {}
    for run in runs:
        waited = [k for k in run.step.access if k in length]
        last = max(waited, key=lambda k: length[k], default=None)
        before[run.step.id] = last
        length[run.step.id] = measure(run) + (length[last] if last is not None else 0.0)
    chain: list[int] = []
    at = max(length, key=lambda k: length[k], default=None)
    while at is not None:
        chain.append(at)
        at = before[at]
    return chain[::-1]
