"""Runs the steps of one turn: a DAG whose edges are the access lists.

A step starts the moment the steps it may see have ended; there is no barrier between layers. What a
worker gets is built here from its access list and from nothing else, so access is enforced, not
advisory. Every step ends in exactly one observation, also when the round is cut short.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.budget import Budget, explain
from orchestrator.plan import Step, fit_arguments, substitute
from pool_registry.actions import Action, Failure, JsonValue, Observation, Status
from pool_registry.live import LivePool
from pool_registry.worker import Scope, Visible


@dataclass(frozen=True, slots=True)
class Recorder:
    """Where the executor tells what happens."""

    started: Callable[[int, Mapping[str, JsonValue]], None]
    ended: Callable[[int, Observation], None]


class RoundRun:
    """One round in flight. `seen` maps earlier step ids to (worker, observation) and grows as steps end."""

    def __init__(
        self,
        steps: Sequence[Step],
        seen: dict[int, tuple[str, Observation]],
        pool: LivePool,
        budget: Budget,
        record: Recorder,
        scope_of: Callable[[Step], Scope | None] = lambda _: None,
    ) -> None:
        self._steps = {step.id: step for step in steps}
        self._seen = seen
        self._pool = pool
        self._budget = budget
        self._record = record
        self._scope_of = scope_of
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._open = len(self._steps)
        self._finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting: dict[int, int] = {}
        self._readers: dict[int, list[int]] = {}

    async def run(self) -> None:
        """Return when every step has an observation, at the latest when the budget cuts the round."""
        if not self._steps:
            return
        self._connect()
        for step_id, count in list(self._waiting.items()):
            if count == 0:
                self._launch(self._steps[step_id])
        try:
            await asyncio.wait(
                (self._finished, self._budget.stopped),
                timeout=max(0.0, self._budget.remaining_s),
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            if self._open:
                self._cut()

    def _connect(self) -> None:
        for step in self._steps.values():
            awaited = set() if step.problem else {k for k in step.access if k in self._steps}
            self._waiting[step.id] = len(awaited)
            for k in awaited:
                self._readers.setdefault(k, []).append(step.id)

    def _launch(self, step: Step) -> None:
        """Start the step's task, or end it at once when there is nothing to run."""
        if step.problem is not None:
            self._end(step, Observation.failed(Status.PARSE_ERR, "malformed_step", step.problem))
            return
        denied = self._budget.admit_step() or self._failed_dependency(step)
        if denied is not None:
            self._end(step, Observation(Status.EXEC_ERR, error=denied))
            return
        self._tasks[step.id] = asyncio.create_task(self._run(step))

    def _failed_dependency(self, step: Step) -> Failure | None:
        """`$k` of a failed step has no value. Without `$k` the step runs and an agent sees the status."""
        failed = [k for k in sorted(step.references) if not self._seen[k][1].ok]
        if not failed:
            return None
        quoted = ", ".join(f"${k} ({self._seen[k][1].status})" for k in failed)
        return Failure("dependency_failed", f"{quoted} has no value to put in")

    async def _run(self, step: Step) -> None:
        arguments = self._arguments(step)
        visible = tuple(Visible(k, *self._seen[k]) for k in step.access)
        observation = await self._pool.call(
            Action(step.worker, arguments),
            visible,
            self._scope_of(step),
            lambda: self._record.started(step.id, arguments),
        )
        if observation.episode is None:  # an inner episode has spent from this same budget itself
            self._budget.spend(observation.usage)
        self._end(step, observation)

    def _arguments(self, step: Step) -> Mapping[str, JsonValue]:
        if not step.references:
            return step.arguments
        values = {k: self._seen[k][1].value for k in step.access}
        resolved = substitute(step.arguments, values)
        assert isinstance(resolved, dict)
        return fit_arguments(resolved, self._pool.workers[step.worker].parameters)

    def _end(self, step: Step, observation: Observation) -> None:
        if step.id in self._seen:  # cut short while its last await was returning
            return
        self._seen[step.id] = (step.worker, observation)
        self._record.ended(step.id, observation)
        self._open -= 1
        for reader in self._readers.get(step.id, ()):
            self._waiting[reader] -= 1
            if self._waiting[reader] == 0:
                self._launch(self._steps[reader])
        if self._open == 0 and not self._finished.done():
            self._finished.set_result(None)

    def _cut(self) -> None:
        """End what is left: running steps are cancelled, waiting ones never start."""
        outcome = self._budget.exhausted() or "stopped"
        sentence = explain(outcome, self._budget.limits)
        self._waiting.clear()
        self._readers.clear()
        for step_id, step in self._steps.items():
            if step_id in self._seen:
                continue
            task = self._tasks.get(step_id)
            late = task is not None and outcome == "deadline"
            if task is not None:
                task.cancel()
            self._end(
                step, Observation.failed(Status.TIMEOUT if late else Status.EXEC_ERR, outcome, sentence)
            )
