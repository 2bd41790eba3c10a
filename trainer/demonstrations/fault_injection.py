"""Failures injected on purpose, and a teacher that recovers from them, so that there is recovery to learn from.

A worker's first call fails or times out; or the oracle makes a slip of its own (bad arguments, a wrong worker).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.engine.episode import Episode
from orchestrator.engine.release import Orchestrator
from orchestrator.plan import Step, Turn, renumber_step
from orchestrator.policies.base import write_turn
from orchestrator.quotes import renumber_quotes
from pool_registry.actions import Action, Observation, Status, as_text
from pool_registry.calls.live_pool import LivePool, OnStart
from pool_registry.worker import Scope, Visible


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure to inject. `status` is what the worker's first call ends with; for the teacher's own slips
    it is None and `slip` says which."""

    worker: str
    status: Status | None = None
    slip: str = ""


class FaultyPool(LivePool):
    """A pool in which the first call of one worker fails."""

    def __init__(self, pool: LivePool, fault: Fault) -> None:
        super().__init__(pool.pool, pool.workers)
        self.stand_for(pool)
        self._fault: Fault | None = fault if fault.status is not None else None

    async def call(
        self,
        action: Action,
        visible: tuple[Visible, ...] = (),
        scope: Scope | None = None,
        on_start: OnStart | None = None,
    ) -> Observation:
        fault = self._fault
        if fault is None or fault.status is None or action.worker != fault.worker:
            return await super().call(action, visible, scope, on_start)
        self._fault = None
        if on_start is not None:
            on_start()
        if fault.status is Status.TIMEOUT:
            return Observation.failure(fault.status, "timeout", f"{action.worker} did not answer in time")
        return Observation.failure(
            fault.status, "unavailable", f"{action.worker} is unavailable at the moment; try again"
        )


class RecoveringTeacher(Orchestrator):
    """The oracle's plan, perhaps with a slip in its first turn, and repairs until every step is right."""

    name = "oracle"

    def __init__(self, reference: Turn, fault: Fault | None, workers: Sequence[str]) -> None:
        self._reference = reference
        self._slipped = _spoil_step(reference, fault, workers) if fault is not None and fault.slip else None
        self._done: dict[int, int] = {}  # the reference's step -> the step that did it

    async def turn(self, episode: Episode) -> Turn:
        if len(episode.rounds) <= 1:
            first = self._slipped[0] if self._slipped else self._reference.steps
            self._done = {step.id: step.id for step in self._reference.steps}
            return write_turn(first, as_text(self._reference.answer))
        return self._repair(episode)

    def _repair(self, episode: Episode) -> Turn:
        """The steps that failed and all that depends on them, once more."""
        seen = episode.observations()
        wrong = {self._slipped[1]} if self._slipped and len(episode.rounds) == 2 else set()
        again: set[int] = set()
        for step in self._reference.steps:
            failed = not seen[self._done[step.id]].ok
            if failed or step.id in wrong or again.intersection(step.access):
                again.add(step.id)
        fresh = episode.next_step_id
        ids = dict(self._done)
        for offset, k in enumerate(sorted(again)):
            ids[k] = fresh + offset
        steps = [_renumber(step, ids) for step in self._reference.steps if step.id in again]
        self._done = ids
        return write_turn(steps, as_text(renumber_quotes(self._reference.answer, ids)))


def _spoil_step(reference: Turn, fault: Fault, workers: Sequence[str]) -> tuple[tuple[Step, ...], int] | None:
    """The plan with one step spoilt, and which; None when it has no step of that worker."""
    at = next((step for step in reference.steps if step.worker == fault.worker), None)
    if at is None:
        return None
    others = [name for name in workers if name != at.worker]
    if fault.slip == "wrong_worker" and others:
        spoilt = replace(at, worker=others[at.id % len(others)])
    elif at.references:
        spoilt = replace(at, access=())
    else:
        spoilt = replace(at, arguments={})
    return tuple(spoilt if step is at else step for step in reference.steps), at.id


def _renumber(step: Step, ids: Mapping[int, int]) -> Step:
    """The step under its new number. A repaired step may have a lower number than one that it sees: sort them."""
    moved = renumber_step(step, ids)
    return replace(moved, access=tuple(sorted(moved.access)))
