"""Rewards: what an episode earns, term by term, each in [0, 1]; the recipe gives the weights.

accuracy    1 when the verifier accepts the answer (both papers).
format      share of turns that are turns, times share of steps that are well-formed calls; 0 without either
            (Conductor: nothing when the workflow does not parse).
diversity   how differently the episodes of a group use the workers: the mean distance of this episode's
            worker shares to those of the others (total variation; ParaManager rewards diversity).
efficiency  few rounds, few steps, a short critical path, little cost: the mean of what each leaves of its limit
            (ParaManager rewards efficiency). An episode without an answer gets 0, or silence would pay. Time
            counts in hundredths of the deadline: two runs of one plan never take the same, and the clock's part
            would tell apart groups that are equal.

Your own: `FILE.py:FUNCTION`, called as `function(sample, group)`, returning a number in [0, 1] or None.
"""

from __future__ import annotations

import importlib.util
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.engine.episode import Episode
from orchestrator.traces.episode_totals import EpisodeTotals, compute_totals
from pool_registry.actions import Status
from pool_registry.pool import Limits
from trainer.errors import InvalidRecipe
from trainer.recipe import RewardSettings
from trainer.tasks.task import Task


@dataclass(frozen=True, slots=True)
class Sample:
    """One episode of a group, finished and graded."""

    task: Task
    episode: Episode
    limits: Limits
    totals: EpisodeTotals

    @property
    def correct(self) -> bool:
        return self.episode.graded is not None and self.episode.graded.correct


Term = Callable[[Sample, Sequence[Sample]], float | None]


def sample_of(task: Task, episode: Episode, limits: Limits) -> Sample:
    return Sample(task, episode, limits, compute_totals(episode))


def accuracy(sample: Sample, _group: Sequence[Sample]) -> float:
    return float(sample.correct)


def format_(sample: Sample, _group: Sequence[Sample]) -> float:
    turns = [done.turn for done in sample.episode.rounds if done.turn is not None]
    valid = [turn for turn in turns if turn.error is None]
    if not valid:
        return 0.0
    statuses = [run.observation.status for run in sample.episode.steps.values() if run.observation is not None]
    formed = sum(status is not Status.PARSE_ERR for status in statuses) / len(statuses) if statuses else 1.0
    return len(valid) / len(turns) * formed


def diversity(sample: Sample, group: Sequence[Sample]) -> float:
    own = worker_shares([sample])
    others = [worker_shares([other]) for other in group if other is not sample]
    if not others:
        return 0.0
    return sum(_distance(own, other) for other in others) / len(others)


def efficiency(sample: Sample, _group: Sequence[Sample]) -> float:
    if sample.episode.ended is None or sample.episode.ended.outcome != "answered":
        return 0.0
    measured, limits = sample.totals, sample.limits
    used = [
        (measured.rounds - 1) / max(1, limits.max_rounds - 1),
        measured.steps / limits.max_steps,
        round(measured.critical_path_s / limits.deadline_s, 2),
    ]
    if limits.max_cost is not None:
        used.append(measured.cost / limits.max_cost)
    return sum(1 - min(1.0, share) for share in used) / len(used)


TERMS: dict[str, Term] = {
    "accuracy": accuracy,
    "format": format_,
    "diversity": diversity,
    "efficiency": efficiency,
}


def reward_terms(wanted: Sequence[RewardSettings]) -> dict[str, tuple[Term, float]]:
    """Name -> (function, weight). Raises InvalidRecipe for a term that does not exist or cannot be loaded."""
    terms: dict[str, tuple[Term, float]] = {}
    for index, reward in enumerate(wanted):
        name, term = (reward.term, TERMS[reward.term]) if reward.term in TERMS else _own(reward.term, index)
        if name in terms:
            raise InvalidRecipe([(f"grpo.rewards.{index}.term", f"{name} is there twice; add up the weights")])
        terms[name] = (term, reward.weight)
    return terms


def scores(group: Sequence[Sample], terms: Mapping[str, tuple[Term, float]]) -> list[dict[str, float]]:
    """Each sample's terms. A term that does not apply to a sample (None) is left out."""
    return [_scored(sample, group, terms) for sample in group]


def total(scored: Mapping[str, float], terms: Mapping[str, tuple[Term, float]]) -> float:
    """The weighted sum."""
    return sum(value * terms[name][1] for name, value in scored.items())


def advantages(rewards: Sequence[float], scale: str) -> list[float]:
    """Group-relative advantages as GRPO defines them: (r - mean) / (std + 1e-4), std with n - 1
    (Shao et al., arXiv 2402.03300, and TRL's implementation); without the division unless `scale` is group."""
    mean = sum(rewards) / len(rewards)
    if scale != "group":
        return [reward - mean for reward in rewards]
    spread = math.sqrt(sum((reward - mean) ** 2 for reward in rewards) / max(1, len(rewards) - 1))
    return [(reward - mean) / (spread + 1e-4) for reward in rewards]


def all_equal(rewards: Sequence[float]) -> bool:
    """Whether a group teaches nothing."""
    return max(rewards) - min(rewards) < 1e-6


def worker_shares(samples: Sequence[Sample]) -> dict[str, float]:
    """How the steps of these episodes are spread over the workers; sums to 1, or is empty without steps."""
    used = Counter(run.step.worker for sample in samples for run in sample.episode.steps.values())
    count = sum(used.values())
    return {worker: times / count for worker, times in used.items()}


def _distance(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Total variation of two distributions."""
    return sum(abs(one.get(name, 0.0) - other.get(name, 0.0)) for name in {*one, *other}) / 2


def _scored(sample: Sample, group: Sequence[Sample], terms: Mapping[str, tuple[Term, float]]) -> dict[str, float]:
    found = {name: term(sample, group) for name, (term, _) in terms.items()}
    return {name: min(1.0, max(0.0, float(value))) for name, value in found.items() if value is not None}


def _own(reference: str, index: int) -> tuple[str, Term]:
    """A function of the user's own file."""
    file, _, name = reference.rpartition(":")
    where = f"grpo.rewards.{index}.term"
    if not file:
        known = ", ".join(TERMS)
        raise InvalidRecipe([(where, f"there is no term {reference!r}; use one of {known}, or FILE.py:FUNCTION")])
    path = Path(file).expanduser()
    spec = importlib.util.spec_from_file_location(f"podium_reward_{index}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise InvalidRecipe([(where, f"{path} is no Python file")])
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidRecipe([(where, f"{path} cannot be loaded: {type(error).__name__}: {error}")]) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise InvalidRecipe([(where, f"{path} has no function {name!r}")])
    return name, function
