"""Runs the steps of one turn: a DAG whose edges are the access lists.

A step starts the moment the steps it may see have ended; there is no barrier between layers. A worker's input is built
here from the step's access list and from nothing else, so access is enforced, not advisory. Every step ends in exactly
one observation, also when the round is cut short.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.approval.plan_gate import NEEDS_APPROVAL
from orchestrator.engine.budget import Budget, explain_outcome
from orchestrator.engine.events import Outcome
from orchestrator.plan import Step, fit_arguments
from orchestrator.quotes import MAX_QUOTED_CHARS, count_quoted_chars, explain_missing_part, substitute
from pool_registry.actions import Action, Failure, JsonValue, Observation, Status
from pool_registry.calls.live_pool import LivePool
from pool_registry.calls.spending import charge_this_task_to
from pool_registry.worker import Scope, Visible

MISSING_PART = "missing_part"  # the code of a step that quotes a field or an item that an output lacks


@dataclass(frozen=True, slots=True)
class Recorder:
    """The callbacks that record when a step starts and ends."""

    started: Callable[[int, Mapping[str, JsonValue]], None]
    ended: Callable[[int, Observation], None]


class RoundRun:
    """The run of one round. `seen` maps earlier step ids to (worker, observation) and grows as steps end.

    The steps `unapproved` do not run: their calls may have effects, and nobody could be asked."""

    def __init__(
        self,
        steps: Sequence[Step],
        seen: dict[int, tuple[str, Observation]],
        pool: LivePool,
        budget: Budget,
        record: Recorder,
        scope_of: Callable[[Step], Scope | None] = lambda _: None,
        unapproved: Collection[int] = (),
    ) -> None:
        self._steps = {step.id: step for step in steps}
        self._seen = seen
        self._pool = pool
        self._budget = budget
        self._record = record
        self._scope_of = scope_of
        self._unapproved = unapproved
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._open = len(self._steps)
        self._loop = asyncio.get_running_loop()
        self._finished: asyncio.Future[None] = self._loop.create_future()
        self._quoted = {step.id: step.references for step in steps}
        self._views: dict[int, Visible] = {}
        self._waiting: dict[int, int] = {}
        self._readers: dict[int, list[int]] = {}
        self._started: dict[int, float] = {}  # when a step's worker began, on the loop's clock

    async def run(self) -> None:
        """Return when every step has an observation, at the latest when the budget cuts the round."""
        if not self._steps:
            return
        self._connect()
        self._launch([step for step in self._steps.values() if not self._waiting[step.id]])
        try:
            await self._budget.wait_for(self._finished)
        except asyncio.CancelledError:
            self._cut("stopped")
            raise
        if self._open:
            self._cut("stopped" if self._budget.stopped.done() else "deadline")
        if self._finished.done():
            self._finished.result()  # raises what went wrong in the engine itself

    def _connect(self) -> None:
        for step in self._steps.values():
            awaited = () if step.problem else {k for k in step.access if k in self._steps}
            self._waiting[step.id] = len(awaited)
            for k in awaited:
                self._readers.setdefault(k, []).append(step.id)

    def _launch(self, ready: list[Step]) -> None:
        """Start the steps' tasks. A step with nothing to run ends at once, which may make others ready:
        they join the list, so that a long chain of them needs no deep recursion."""
        for step in ready:
            denied = self._check_admission(step)
            if denied is not None:
                ready += self._end(step, denied)
            else:
                self._tasks[step.id] = self._loop.create_task(self._run(step))

    def _check_admission(self, step: Step) -> Observation | None:
        """The observation of a step that may not run, or None."""
        if step.problem is not None:
            code = "malformed_step" if step.worker in self._pool.workers else "unknown_worker"
            return Observation.failure(Status.PARSE_ERR, code, step.problem)
        if step.id in self._unapproved:
            sentence = (
                f"a call of {step.worker} may have effects, and no person can be asked here. Run the query by itself, "
                "or set the pool's mode to autonomous"
            )
            return Observation.failure(Status.EXEC_ERR, NEEDS_APPROVAL, sentence)
        failure = self._budget.admit_step() or self._check_references(step)
        if failure is not None:
            return Observation(Status.EXEC_ERR, error=failure)
        missing = self._explain_missing_part(step)
        return Observation.failure(Status.PARSE_ERR, MISSING_PART, missing) if missing else None

    def _check_references(self, step: Step) -> Failure | None:
        """Why the step's `$k` cannot be replaced, if so: one failed, or they are too long. A failed step that is only
        in the access list stops nothing: an agent sees its status."""
        quoted = self._quoted[step.id]
        if not quoted:
            return None
        failed = [k for k in sorted(quoted) if not self._seen[k][1].ok]
        if failed:
            listed = ", ".join(f"${k} ({self._seen[k][1].status})" for k in failed)
            return Failure("dependency_failed", f"{listed} has no value to put in")
        size = count_quoted_chars(step.arguments, self._values(step))
        if size > MAX_QUOTED_CHARS:
            sentence = f"its $k bring in {size:,} characters; {MAX_QUOTED_CHARS:,} are allowed. Quote less."
            return Failure("arguments_too_long", sentence)
        return None

    def _explain_missing_part(self, step: Step) -> str | None:
        """Why a part of an output that the step quotes cannot be put in. Where outputs are hidden from some, the names
        of their parts are."""
        if not self._quoted[step.id]:
            return None
        return explain_missing_part(step.arguments, self._values(step), not self._pool.run_limits.seen_by)

    def _values(self, step: Step) -> dict[int, JsonValue]:
        return {k: self._seen[k][1].value for k in step.access}

    async def _run(self, step: Step) -> None:
        try:
            arguments = self._arguments(step)
            spending = self._budget.open_spending()
            charge_this_task_to(spending)
            observation = await self._pool.call(
                Action(step.worker, arguments),
                tuple([self._view(k) for k in step.access]),
                self._scope_of(step),
                lambda: self._start(step, arguments),
            )
            if observation.episode is None:  # an inner episode has spent from this same budget itself
                spending.charge_rest(observation.usage, observation.cached)
            self._launch(self._end(step, observation))
        except Exception as error:  # noqa: BLE001  not the worker's (calls never raise): `run` raises it
            if not self._finished.done():
                self._finished.set_exception(error)

    def _start(self, step: Step, arguments: Mapping[str, JsonValue]) -> None:
        self._started[step.id] = self._loop.time()
        self._record.started(step.id, arguments)

    def _view(self, k: int) -> Visible:
        """An ended step as its readers see it: without its prompt, which holds what only that step may see. Readers
        share one object."""
        view = self._views.get(k)
        if view is None:
            worker, seen = self._seen[k]
            if seen.prompt is not None:
                seen = replace(seen, prompt=None)
            view = self._views[k] = Visible(k, worker, seen)
        return view

    def _arguments(self, step: Step) -> Mapping[str, JsonValue]:
        if not self._quoted[step.id]:
            return {name: substitute(value, {}) for name, value in step.arguments.items()}  # $$ is a dollar
        resolved = substitute(step.arguments, self._values(step))
        assert isinstance(resolved, dict)
        return fit_arguments(resolved, self._pool.workers[step.worker].parameters)

    def _end(self, step: Step, observation: Observation) -> list[Step]:
        """Record how a step ended; returns the steps that are ready now."""
        if step.id in self._seen:  # cut short while its last await was returning
            return []
        self._seen[step.id] = (step.worker, observation)
        self._record.ended(step.id, observation)
        self._open -= 1
        if self._open == 0 and not self._finished.done():
            self._finished.set_result(None)
        ready = []
        for reader in self._readers.get(step.id, ()):
            self._waiting[reader] -= 1
            if self._waiting[reader] == 0:
                ready.append(self._steps[reader])
        return ready

    def _cut(self, outcome: Outcome) -> None:
        """End all open steps: running ones are cancelled, waiting ones never start."""
        self._readers.clear()
        for task in self._tasks.values():
            task.cancel()
        sentence = explain_outcome(outcome, self._budget.limits)
        for step in self._steps.values():
            status = Status.TIMEOUT if step.id in self._tasks and outcome == "deadline" else Status.EXEC_ERR
            now = self._loop.time()
            latency_s = now - self._started.get(step.id, now)
            self._end(step, Observation.failure(status, outcome, sentence, latency_s))
