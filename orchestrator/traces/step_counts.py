"""The steps of an episode as a person counts them: other words that were tried for a rejected call count apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from orchestrator.engine.episode import Episode, Round, StepRun


@dataclass(frozen=True, slots=True)
class StepCounts:
    """`steps` are those whose result counts, `failed` those of them that failed, `tries` all others: calls with other
    words (repairs/mend_calls.py) that nothing was taken from, and failed calls that a later one took the place of."""

    steps: int
    failed: int
    tries: int


def count_steps(episode: Episode) -> StepCounts:
    """Count the steps of an episode so far."""
    tries = find_tries(episode)
    failed = sum(1 for k, run in episode.steps.items() if run.failed and k not in tries)
    return StepCounts(len(episode.steps) - len(tries), failed, len(tries))


def describe_steps(counts: StepCounts) -> str:
    """The counts in words: "3 steps (1 failed), 2 other tries"."""
    steps = f"{counts.steps} {'step' if counts.steps == 1 else 'steps'}"
    failed = f" ({counts.failed} failed)" if counts.failed else ""
    tries = f", {counts.tries} other {'try' if counts.tries == 1 else 'tries'}" if counts.tries else ""
    return f"{steps}{failed}{tries}"


def find_tries(episode: Episode) -> frozenset[int]:
    """The ids of the steps that count as tries."""
    tries: set[int] = set()
    waiting: list[StepRun] = []  # failed steps that nothing has taken the place of yet
    for done in episode.rounds:
        is_trial = done.turn is not None and done.turn.trial
        if is_trial:
            tries |= {run.step.id for run in done.steps}
        pair = _pair_accepted if is_trial else _pair_repeated
        for old, new in pair(done, waiting) if waiting else ():
            waiting.remove(old)
            tries.add(old.step.id)
            tries -= {new.step.id, *new.step.access}
        if not is_trial:
            waiting += [run for run in done.steps if run.failed]
    return frozenset(tries)


def _pair_accepted(done: Round, waiting: Iterable[StepRun]) -> Iterator[tuple[StepRun, StepRun]]:
    """Rejected calls with the calls of this round that their workers accepted."""
    rejected = [run for run in waiting if run.step.need]
    for run in done.steps:
        same = (old for old in rejected if (old.step.worker, old.step.need) == (run.step.worker, run.step.need))
        old = next(same, None) if run.state == "OK" else None
        if old is not None:
            rejected.remove(old)
            yield old, run


def _pair_repeated(done: Round, waiting: Iterable[StepRun]) -> Iterator[tuple[StepRun, StepRun]]:
    """Failed steps with the steps of this round that serve the same needs."""
    failed = [run for run in waiting if run.step.need]
    for run in done.steps:
        old = next((old for old in failed if old.step.need == run.step.need), None)
        if old is not None:
            failed.remove(old)
            yield old, run
