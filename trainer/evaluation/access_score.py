"""Scores access lists against those of the reference plan: precision and recall of what each step was shown.

An episode's step *matches* a step of the reference plan when both call workers that do the same work with the
same arguments. Workers do the same work when their kind and configuration are equal (a flaky worker counts as the
one inside it): a renamed worker, a substitute and a cheaper twin all match. In arguments `$k` stands for the
reference step that step k matches; case and white space do not count. Of several candidates the one whose access
list agrees best is taken, then the one that no step matches yet. A repeated call after a failure matches the same
reference step again.

Only matched steps are scored, because the needs of a step on another way to the answer are unknown:
- precision: of all entries of their access lists, the share that the matched reference step has too;
- recall: of all entries of the matched reference steps' access lists, the share that the step has too.
An entry that names a step without a match counts as extra. Both are micro-averages over the episode's steps, None
where nothing is shared. `matched_steps` of `oracle_steps` is the share of the plan that was matched at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.engine.episode import Episode
from orchestrator.layers import layer_sizes
from orchestrator.plan import Step, Turn
from orchestrator.quotes import REFERENCE
from pool_registry.actions import JsonValue, as_text
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec
from trainer.tasks.pool_conditions import unwrap_worker

WorkKey = Callable[[str], str]  # a worker's name -> a key that is equal for workers that do the same work


@dataclass(frozen=True, slots=True)
class AccessScore:
    """The score of an episode's access lists. `overshared_chars` counts the characters that its matched steps were
    shown without need."""

    access_precision: float | None
    access_recall: float | None
    matched_steps: int
    oracle_steps: int
    oracle_depth: int
    overshared_chars: int


def score_access(episode: Episode, reference: Turn | None, same_work: WorkKey) -> AccessScore | None:
    """Score the access lists of an episode. None where there is no reference plan."""
    if reference is None:
        return None
    plan = {step.id: step for step in reference.steps}
    matches = match_steps(episode, reference, same_work)
    good = entries = covered = needed = over = 0
    for mine, theirs in matches.items():
        access, expected = episode.steps[mine].step.access, set(plan[theirs].access)
        extra = [k for k in access if matches.get(k) not in expected]
        entries, good = entries + len(access), good + len(access) - len(extra)
        needed, covered = needed + len(expected), covered + len(expected & {matches.get(k) for k in access})
        over += sum(_count_chars(episode, k) for k in extra)
    return AccessScore(
        access_precision=good / entries if entries else None,
        access_recall=covered / needed if needed else None,
        matched_steps=len(set(matches.values())),
        oracle_steps=len(plan),
        oracle_depth=len(layer_sizes(reference.steps)),
        overshared_chars=over,
    )


def match_steps(episode: Episode, reference: Turn, same_work: WorkKey) -> dict[int, int]:
    """Match steps of the episode to steps of the reference plan (ids to ids); steps without a match are left out."""
    plans = {step.id: _call_key(step, same_work, {k: k for k in step.references}) for step in reference.steps}
    matches: dict[int, int] = {}
    for run in sorted(episode.steps.values(), key=lambda run: run.step.id):
        call = _call_key(run.step, same_work, matches)
        candidates = [step for step in reference.steps if plans[step.id] == call]
        if candidates:
            seen, taken = {matches.get(k) for k in run.step.access}, set(matches.values())
            matches[run.step.id] = min(
                candidates, key=lambda step: (-_measure_agreement(step, seen), step.id in taken, step.id)
            ).id
    return matches


def identify_work(pool: Pool) -> WorkKey:
    """Return the function from a worker's name to the key of its work. An unknown name has a key of its own."""
    work = {spec.name: _work_key(spec) for spec in pool.workers}
    return lambda name: work.get(name, f"unknown {name}")


def _work_key(spec: WorkerSpec) -> str:
    inner = unwrap_worker(spec)
    return json.dumps([inner.kind, inner.config], sort_keys=True)


def _measure_agreement(step: Step, seen: set[int | None]) -> float:
    """Compute the Jaccard index of two access lists: shared entries over all entries, 1 where both are empty."""
    expected = set(step.access)
    return len(expected & seen) / len(expected | seen) if expected | seen else 1.0


def _call_key(step: Step, same_work: WorkKey, matches: Mapping[int, int]) -> tuple[str, str]:
    """Build a key that is equal for calls with equal work and equal arguments."""
    values = [_normalize(value, matches) for _, value in sorted(step.arguments.items())]
    return same_work(step.worker), json.dumps(values)


def _normalize(value: JsonValue, matches: Mapping[int, int]) -> str:
    """Normalize an argument: case and white space removed, each `$k` replaced by the reference step it stands for."""

    def replace(match: re.Match[str]) -> str:
        stands_for = "$" if match[1] == "$" else f"<{matches.get(int(match[1]), f'own {match[1]}')}>"
        return f"{stands_for}{match[2]}"

    text = value if isinstance(value, str) else as_text(value)
    return " ".join(REFERENCE.sub(replace, text).casefold().split())


def _count_chars(episode: Episode, step: int) -> int:
    """Count the characters of a step's observation that another step is shown."""
    observation = episode.steps[step].observation if step in episode.steps else None
    if observation is None:
        return 0
    return len(observation.error.message) if observation.error else len(as_text(observation.value))
