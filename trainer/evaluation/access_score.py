"""Access lists against those of the reference plan: what was shared that had to be, and what need not have been.

An episode's step *matches* a step of the reference plan when both call workers that do the same work with the
same arguments. Workers do the same work when their kind and configuration are equal (a flaky worker does that
of the one inside it): a renamed worker, a substitute and a cheaper twin all match. Arguments are compared after
`$k` was read as "the reference step that step k matches" and without differences in case and white space. Of
several candidates the one whose access list agrees best is taken, then the one that no step matches yet. A call
that is made again after a failure matches the same reference step again.

Only matched steps are judged, for what a step of another way to the answer needs nobody has written down:
- precision: of all entries of their access lists, the share that the matched reference step has, too;
- recall: of all entries of the matched reference steps' access lists, the share that the step has, too.
An entry that names a step without a match is an extra one. Both are micro-averages over the episode's steps, None
where there is nothing to share. How much of the plan was matched at all is told beside them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.engine.episode import Episode
from orchestrator.layers import layer_sizes
from orchestrator.plan import REFERENCE, Step, Turn
from pool_registry.actions import JsonValue, as_text
from pool_registry.pool import Pool
from pool_registry.worker import WorkerSpec

WorkKey = Callable[[str], str]  # a worker's name -> what it does, equal for workers that do the same


@dataclass(frozen=True, slots=True)
class AccessScore:
    """An episode's access lists against the reference plan's. `overshared_chars` is how much text its matched
    steps were shown of steps that they need not see."""

    access_precision: float | None
    access_recall: float | None
    matched_steps: int
    oracle_steps: int
    oracle_depth: int
    overshared_chars: int


def score_access(episode: Episode, reference: Turn | None, same_work: WorkKey) -> AccessScore | None:
    """How an episode shared what its steps made. None where there is no reference plan."""
    if reference is None:
        return None
    plan = {step.id: step for step in reference.steps}
    match = match_steps(episode, reference, same_work)
    good = entries = covered = needed = over = 0
    for mine, theirs in match.items():
        access, wanted = episode.steps[mine].step.access, set(plan[theirs].access)
        extra = [k for k in access if match.get(k) not in wanted]
        entries, good = entries + len(access), good + len(access) - len(extra)
        needed, covered = needed + len(wanted), covered + len(wanted & {match.get(k) for k in access})
        over += sum(_count_chars(episode, k) for k in extra)
    return AccessScore(
        access_precision=good / entries if entries else None,
        access_recall=covered / needed if needed else None,
        matched_steps=len(set(match.values())),
        oracle_steps=len(plan),
        oracle_depth=len(layer_sizes(reference.steps)),
        overshared_chars=over,
    )


def match_steps(episode: Episode, reference: Turn, same_work: WorkKey) -> dict[int, int]:
    """Which step of the reference plan each step of the episode makes; steps of its own are left out."""
    plans = {step.id: _call_key(step, same_work, {k: k for k in step.references}) for step in reference.steps}
    found: dict[int, int] = {}
    for run in sorted(episode.steps.values(), key=lambda run: run.step.id):
        call = _call_key(run.step, same_work, found)
        candidates = [step for step in reference.steps if plans[step.id] == call]
        if candidates:
            seen, taken = {found.get(k) for k in run.step.access}, set(found.values())
            found[run.step.id] = min(
                candidates, key=lambda step: (-_measure_agreement(step, seen), step.id in taken, step.id)
            ).id
    return found


def identify_work(pool: Pool) -> WorkKey:
    """What the workers of a pool do. An unknown name does what nothing else does."""
    work = {spec.name: _work_key(spec) for spec in pool.workers}
    return lambda name: work.get(name, f"unknown {name}")


def _work_key(spec: WorkerSpec) -> str:
    inner = spec.config.get("inner") if spec.kind == "flaky" else None
    return (
        _work_key(WorkerSpec.model_validate(inner)) if inner else json.dumps([spec.kind, spec.config], sort_keys=True)
    )


def _measure_agreement(step: Step, seen: set[int | None]) -> float:
    """How alike two access lists are: shared entries over all entries (Jaccard), 1 where both are empty."""
    wanted = set(step.access)
    return len(wanted & seen) / len(wanted | seen) if wanted | seen else 1.0


def _call_key(step: Step, same_work: WorkKey, meaning: Mapping[int, int]) -> tuple[str, str]:
    """A step's work and arguments in a form that equal calls share."""
    values = [_normalize(value, meaning) for _, value in sorted(step.arguments.items())]
    return same_work(step.worker), json.dumps(values)


def _normalize(value: JsonValue, meaning: Mapping[int, int]) -> str:
    """An argument's text without what does not matter, each `$k` as the reference step it stands for."""

    def meant(found: re.Match[str]) -> str:
        return "$" if found[1] == "$" else f"<{meaning.get(int(found[1]), f'own {found[1]}')}>"

    text = value if isinstance(value, str) else as_text(value)
    return " ".join(REFERENCE.sub(meant, text).casefold().split())


def _count_chars(episode: Episode, step: int) -> int:
    """How much a step was shown of another one's observation."""
    observation = episode.steps[step].observation if step in episode.steps else None
    if observation is None:
        return 0
    return len(observation.error.message) if observation.error else len(as_text(observation.value))
