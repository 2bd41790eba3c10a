"""The plan that a skill brings along, as the orchestrator of an episode of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Step, Turn, check_turn
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import LivePool
from pool_registry.errors import WorkerFault
from pool_registry.worker import PlannedCall

SKILL = "skill"  # in the name of the orchestrator, before that of the worker
BROKEN = "broken_skill"  # the error code of a plan that cannot run on the pool at hand


class FixedPlan(Orchestrator):
    """Writes one turn, and gives up where that does not end the episode."""

    gives_up = True

    def __init__(self, skill: str, turn: Turn) -> None:
        self.name = f"{SKILL}:{skill}"
        self._turn = turn

    async def turn(self, episode: Episode) -> Turn:
        if len(episode.rounds) <= 1:
            return self._turn
        return Turn(error=explain_failure(episode) or "its plan has no answer", failed=True)


def build_turn(plan: Sequence[PlannedCall], answer: JsonValue) -> Turn:
    """The turn that these calls are."""
    steps = [Step(number, call.worker, call.arguments, call.access) for number, call in enumerate(plan, start=1)]
    return Turn(tuple(steps), answer)


def check_plan(skill: str, turn: Turn, pool: LivePool, outer: LivePool) -> Turn:
    """The turn as it may run on `pool`, which `outer` lets the skill use. Raises WorkerFault saying what keeps it from
    running: nothing of it has run then."""
    for step in turn.steps:
        if step.worker not in pool.workers:
            raise WorkerFault(
                BROKEN, f"{skill} was not run: it calls {step.worker}, {_explain_absence(step.worker, outer)}"
            )
    checked = check_turn(turn, pool, ())
    problems = [f"its step {step.id} ({step.worker}): {step.problem}" for step in checked.steps if step.problem]
    if checked.error is not None or problems:
        raise WorkerFault(BROKEN, f"{skill} was not run: {checked.error or problems[0]}")
    return replace(checked, text="")


def _explain_absence(worker: str, pool: LivePool) -> str:
    if worker in pool.run_limits.without_workers:
        return "which this run may not call"
    if worker in pool.workers:
        return "whose output this run does not show to it"
    if pool.pool.find_worker(worker) is not None:
        return "which is switched off; enable it, or remove the skill"
    return "which the pool lacks; add it again, or remove the skill"


def explain_failure(episode: Episode) -> str:
    """The first step that failed, in a sentence; "" where none did."""
    for run in episode.steps.values():
        seen = run.observation
        if seen is not None and seen.error is not None:
            return f"its step {run.step.id} ({run.step.worker}) failed: {seen.error.message}"
    return ""
