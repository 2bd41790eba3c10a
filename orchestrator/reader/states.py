"""What came of a reader's plan, as it reads it before it plans again.

1. returned {"rep": "D-45", "segment": "retail"}
2. failed: there is no rep 'D-4561'
3. was not called
= there is no $1.name: $1 has rep, segment
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from orchestrator.engine.episode import Episode, StepRun
from orchestrator.plan import Step, Turn, renumber_step
from orchestrator.quotes import explain_missing_part, references, renumber_quotes
from orchestrator.reader.fill import ANSWER_MARK
from pool_registry.actions import JsonValue, Observation, Status, as_text
from pool_registry.language_models.completion import strip_special
from pool_registry.text import one_line, shorten

STATE_CHARS = 160  # of an output or an error


@dataclass(frozen=True, slots=True)
class TriedPlan:
    """A plan whose steps count from 1, its answer, and by step what came of it; a step without was not called."""

    steps: tuple[Step, ...]
    answer: JsonValue
    observations: Mapping[int, Observation]

    @property
    def missing_part(self) -> str | None:
        """What says that the answer quotes a part which an output lacks."""
        values = {k: seen.value for k, seen in self.observations.items() if seen.ok}
        return explain_missing_part(self.answer, values)


def join_last_plan(episode: Episode) -> TriedPlan | None:
    """The last plan of an episode: the steps of its last turn that had any, and the earlier ones that these and the
    answer go back to. None where no turn could be read."""
    turns = _list_turns(episode)
    if not turns:
        return None
    last = turns[-1]
    ids = _number_steps(episode, {*references(last.answer), *(step.id for step in last.steps)})
    runs = {place: episode.steps[k] for k, place in ids.items()}
    return TriedPlan(
        tuple(renumber_step(run.step, ids) for run in runs.values()),
        renumber_quotes(last.answer, ids),
        {place: run.observation for place, run in runs.items() if run.observation is not None},
    )


def _number_steps(episode: Episode, ids: set[int]) -> dict[int, int]:
    """Numbers from 1 on for these steps and those that they go back to."""
    needed: set[int] = set()
    waiting = [k for k in ids if k in episode.steps]
    while waiting:
        if (k := waiting.pop()) not in needed:
            needed.add(k)
            waiting += [other for other in episode.steps[k].step.access if other in episode.steps]
    return {k: place for place, k in enumerate(sorted(needed), start=1)}


def format_states(plan: TriedPlan) -> str:
    """What came of a plan, a line a step, and why its answer cannot be given."""
    lines = [f"{step.id}. {_describe(plan.observations.get(step.id))}" for step in plan.steps]
    missing = plan.missing_part
    return "\n".join([*lines, f"{ANSWER_MARK} {_clean(missing)}"] if missing else lines)


def _describe(seen: Observation | None) -> str:
    if seen is None:
        return "was not called"
    if seen.error is None:
        return f"returned {_clean(as_text(seen.value))}"
    return f"failed: {_clean(seen.error.message)}"


def _clean(text: str) -> str:
    return shorten(one_line(strip_special(text)), STATE_CHARS)


def go_on(turn: Turn, episode: Episode, effects: Collection[str]) -> Turn | None:
    """A turn whose steps count from 1 as the next one of an episode: without the calls that have worked there, whose
    outputs are quoted. None where it has nothing new to try: it repeats a call that failed, calls one of `effects` once
    more that has worked or may have, or is the last turn again."""
    ended = [run for run in episode.steps.values() if run.observation is not None]
    acted = {run.step.worker for run in ended if _may_have_worked(run)}.intersection(effects)
    ids: dict[int, int] = {}
    steps: list[Step] = []
    for step in turn.steps:
        moved = renumber_step(step, {**ids, step.id: episode.next_step_id + len(steps)})
        same = [run for run in ended if _is_call_of(run.step, moved)]
        worked = next((run.step.id for run in same if not run.failed), None)
        if worked is None and (same or step.worker in acted):
            return None
        ids[step.id] = moved.id if worked is None else worked
        steps += [moved] if worked is None else []
    answer = renumber_quotes(turn.answer, ids)
    is_repeated = not steps and answer == _list_turns(episode)[-1].answer
    return None if is_repeated else replace(turn, steps=tuple(steps), answer=answer)


def _may_have_worked(run: StepRun) -> bool:
    """Whether a call has worked, or was cut off: nobody knows what it had done by then."""
    return run.observation is not None and run.observation.status in (Status.OK, Status.TIMEOUT)


def _is_call_of(one: Step, other: Step) -> bool:
    return (one.worker, one.arguments) == (other.worker, other.arguments)


def _list_turns(episode: Episode) -> list[Turn]:
    """The turns of an episode that could be read."""
    return [done.turn for done in episode.rounds if done.turn is not None and done.turn.error is None]
