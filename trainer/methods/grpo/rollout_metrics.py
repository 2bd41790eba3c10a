"""The figures of a step's rollouts: what its episodes were like, and how long they took."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.engine.episode import Episode
from pool_registry.actions import Status
from trainer.learner.generator import Generator
from trainer.methods.grpo.rewards import Sample, compute_worker_shares
from trainer.methods.grpo.rollouts import RolloutGroup
from trainer.results.statistics import mean
from trainer.tasks.pool_conditions import unwrap_worker


def compute_rollout_metrics(
    groups: Sequence[RolloutGroup], skipped: Sequence[RolloutGroup], names: Sequence[str]
) -> dict[str, float]:
    """Compute what a step's episodes were like: reward terms (mean and spread), shape, statuses, workers."""
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    samples = [rollout.sample for rollout in rollouts]
    statuses = Counter(status for sample in samples for status in _list_statuses(sample.episode))
    steps = max(1, sum(statuses.values()))
    turns = [done for sample in samples for done in sample.written_rounds]
    metrics = {
        "rollout/correct": mean([float(sample.correct) for sample in samples]),
        "rollout/turns": mean([sample.totals.rounds for sample in samples]),
        "rollout/steps": mean([sample.totals.steps for sample in samples]),
        "rollout/width": mean([sample.totals.width for sample in samples]),
        "rollout/length": mean([sum(rollout.transcript.mask) for rollout in rollouts]),
        "rollout/reward_std": _compute_spread([rollout.reward for rollout in rollouts]),
        "rollout/cost": sum(sample.totals.cost for sample in samples),
        "rollout/valid_turns": mean([float(done.turn is not None and done.turn.error is None) for done in turns]),
        **_compute_recursion_metrics(groups),
        "groups/skipped": len(skipped),
        "groups/equal": sum(group.equal for group in groups),
    }
    metrics |= {f"status/{status.value}": statuses[status] / steps for status in Status}
    metrics |= {f"worker/{name}": share for name, share in compute_worker_shares(samples, _name_worker).items()}
    for name in names:
        values = [rollout.terms[name] for rollout in rollouts if name in rollout.terms]
        metrics |= {f"term/{name}": mean(values), f"term/{name}/spread": _compute_spread(values)}
    return metrics


def _compute_recursion_metrics(groups: Sequence[RolloutGroup]) -> dict[str, float]:
    """Compute, where groups had a recursive call, their share, and the share of right answers before and after it."""
    rollouts = [rollout for group in groups for rollout in group.rollouts if rollout.first is not None]
    if not rollouts:
        return {}
    return {
        "recursion/groups": mean([float(group.recursive) for group in groups]),
        "recursion/first": mean([float(rollout.first.correct) for rollout in rollouts if rollout.first]),
        "recursion/last": mean([float(rollout.sample.correct) for rollout in rollouts]),
    }


def _name_worker(sample: Sample, worker: str) -> str:
    """The worker's name, or its kind in a pool that the task brought: names there are drawn and never come again."""
    spec = sample.task.pool.find_worker(worker) if sample.task.pool is not None else None
    return worker if spec is None else unwrap_worker(spec).kind


def _list_statuses(episode: Episode) -> list[Status]:
    return [observation.status for observation in episode.observations().values()]


def _compute_spread(values: Sequence[float]) -> float:
    centre = mean(values)
    return float(mean([(value - centre) ** 2 for value in values]) ** 0.5)


@dataclass(slots=True)
class RolloutTimer:
    """How long a step's rollouts took, and the generator's part of it. In seconds."""

    generator: Generator
    wall_s: float = 0.0
    _busy: float = 0.0
    _tokens: int = 0
    _started: float = 0.0

    def __enter__(self) -> RolloutTimer:
        self._busy, self._tokens = self.generator.busy_s, self.generator.tokens
        self._started = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall_s = time.perf_counter() - self._started

    def metrics(self) -> dict[str, float]:
        busy = self.generator.busy_s - self._busy
        tokens = self.generator.tokens - self._tokens
        return {
            "time/rollouts_s": self.wall_s,
            "time/generation_s": busy,
            "time/tokens_per_s": tokens / busy if busy > 0 else 0.0,
        }
