"""The episode loop: take a turn of the orchestrator, run its steps, show it the observations, until it answers or
a limit is reached. Conductor mode (one turn), ParaManager mode (several) and recursion are this same loop.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from orchestrator.engine.budget import Budget, explain_outcome
from orchestrator.engine.edits import WhatIf
from orchestrator.engine.episode import Episode
from orchestrator.engine.events import (
    EpisodeEnded,
    EpisodeStarted,
    Event,
    Outcome,
    ParentStep,
    StepEnded,
    StepStarted,
    TaskRef,
    TurnStarted,
    TurnTaken,
)
from orchestrator.engine.executor import Recorder, RoundRun
from orchestrator.errors import InvalidQuery, OrchestratorError
from orchestrator.plan import MAX_QUOTED_CHARS, Step, Turn, check_turn, count_quoted_chars, references, substitute
from pool_registry.actions import JsonValue, Observation, clean_text
from pool_registry.calls.live_pool import LivePool
from pool_registry.errors import WorkerFault
from pool_registry.language_models.completion import agent_messages
from pool_registry.pool import Limits
from pool_registry.worker import Reply, Visible

MAX_QUERY_CHARS = 1_000_000
MAX_USELESS_TURNS = 2  # of an orchestrator that gives up: it would fail again, at the same price


class Orchestrator(Protocol):
    """A policy: from the episode so far to the next turn. A trained model, an API model or a fixed baseline.

    One with an attribute `gives_up` that is true does not recover from its mistakes: after MAX_USELESS_TURNS turns that
    could not be used it is not asked again.
    """

    @property
    def name(self) -> str: ...

    async def turn(self, episode: Episode) -> Turn: ...


class Sink(Protocol):
    """Receives events as they happen; must not block."""

    def append(self, episode_id: str, event: Event) -> None: ...


class NoSink:
    """A sink that drops all events, for callers that read the returned episode only."""

    def append(self, episode_id: str, event: Event) -> None:  # noqa: ARG002
        return


# (name, query, pool) -> the orchestrator that a recursive worker starts by its name
Resolve = Callable[[str, str, LivePool], Orchestrator]


@dataclass(frozen=True, slots=True)
class EpisodeSpec:
    """The episode to run. `parent` and `depth` are set for recursive episodes only.

    `kept` holds, by step id, the observations of steps that are not called again (what_if.py).
    """

    query: str
    task: TaskRef | None = None
    depth: int = 0
    parent: ParentStep | None = None
    id: str = ""
    what_if: WhatIf | None = None
    kept: Mapping[int, Observation] = field(default_factory=dict)
    user: str = ""  # who asked; inner episodes have the outer one's


def new_episode_id() -> str:
    return secrets.token_hex(6)


async def run_episode(
    spec: EpisodeSpec,
    orchestrator: Orchestrator,
    pool: LivePool,
    *,
    limits: Limits | None = None,
    sink: Sink | None = None,
    budget: Budget | None = None,
    resolve: Resolve | None = None,
) -> Episode:
    """Run one episode to its end and return it. Errors of orchestrator and workers are recorded, never raised.

    Raises InvalidQuery when the query is empty or longer than MAX_QUERY_CHARS.
    """
    check_query(spec.query)
    limits = limits or pool.pool.limits
    loop = _Loop(spec, orchestrator, pool, limits, sink or NoSink(), budget or Budget(limits), resolve)
    return await loop.run()


def check_query(query: str) -> None:
    """Raise InvalidQuery if a query is empty or too long."""
    if not query.strip():
        raise InvalidQuery("the query is empty; type a question, or draw one from a suite")
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidQuery(f"the query has {len(query):,} characters; {MAX_QUERY_CHARS:,} are allowed")


@dataclass
class _Loop:
    """The run of one episode."""

    spec: EpisodeSpec
    orchestrator: Orchestrator
    pool: LivePool
    limits: Limits
    sink: Sink
    budget: Budget
    resolve: Resolve | None

    def __post_init__(self) -> None:
        self.episode = Episode(self.spec.id or new_episode_id())
        self._zero = time.perf_counter()
        self._seen: dict[int, tuple[str, Observation]] = {}

    async def run(self) -> Episode:
        self._record_start()
        try:
            outcome, answer, reason = await self._run_rounds()
        except asyncio.CancelledError:
            self._record(EpisodeEnded("stopped", self._now(), reason=explain_outcome("stopped", self.limits)))
            raise
        self._record(EpisodeEnded(outcome, self._now(), answer, reason))
        return self.episode

    async def _run_rounds(self) -> tuple[Outcome, JsonValue, str | None]:
        useless = 0
        for number in range(1, self.limits.max_rounds + 1):
            reached = self.budget.check_limits()
            if reached is not None:
                return reached, None, explain_outcome(reached, self.limits)
            turn = await self._take_turn(number)
            if turn.failed:
                return "orchestrator_failed", None, turn.error
            if turn.error is None:
                await self._run_steps(turn)
                if turn.has_answer and self._can_answer(turn):
                    return "answered", self._resolve_answer(turn), None
            useless += _is_useless(turn)
            if useless >= MAX_USELESS_TURNS and self._gives_up(number):
                return "gave_up", None, _explain_useless(turn)
        reached = self.budget.check_limits() or "max_rounds"
        return reached, None, explain_outcome(reached, self.limits)

    def _gives_up(self, number: int) -> bool:
        """Whether the orchestrator's mistakes, and not a limit, end the episode after this round."""
        more = number < self.limits.max_rounds and self.budget.check_limits() is None
        return more and getattr(self.orchestrator, "gives_up", False)

    async def _take_turn(self, number: int) -> Turn:
        """Take the orchestrator's next turn and check it against the pool; the deadline and `stop()` cut it off."""
        self._record(TurnStarted(number, self._now()))
        task = asyncio.create_task(self._ask())
        try:
            await self.budget.wait_for(task)
        finally:
            if not task.done():
                task.cancel()
        turn = check_turn(self._outcome_of(task), self.pool, self._seen)
        self.budget.spend(turn.usage)
        self._record(TurnTaken(number, turn, self._now()))
        return turn

    async def _ask(self) -> Turn:
        turn = await self.orchestrator.turn(self.episode)
        if not isinstance(turn, Turn):
            raise TypeError(f"a turn was expected, not {type(turn).__name__}")
        return turn

    def _outcome_of(self, task: asyncio.Task[Turn]) -> Turn:
        if not task.done():
            return Turn(error=explain_outcome("stopped" if self.budget.stopped.done() else "deadline", self.limits))
        if task.cancelled():
            return Turn(error="the orchestrator was cancelled from inside", failed=True)
        error = task.exception()
        if error is None:
            return task.result()
        if isinstance(error, OrchestratorError | WorkerFault):
            return Turn(error=clean_text(str(error)), failed=True)
        sentence = f"the orchestrator raised {type(error).__name__}: {error}"
        return Turn(error=clean_text(sentence), failed=True)

    async def _run_steps(self, turn: Turn) -> None:
        recorder = Recorder(  # not an attribute: a reference cycle in each episode burdens the garbage collector
            started=lambda step, arguments: self._record(StepStarted(step, self._now(), arguments)),
            ended=lambda step, observation: self._record(StepEnded(step, observation, self._now())),
        )
        scope_of = self._scope_of if self.resolve is not None else lambda _: None
        steps = self._take_over(turn.steps) if self.spec.kept else turn.steps
        await RoundRun(steps, self._seen, self.pool, self.budget, recorder, scope_of).run()

    def _take_over(self, steps: Sequence[Step]) -> list[Step]:
        """Record the kept observations of these steps; returns the steps that are left to run."""
        for step in steps:
            observation = self.spec.kept.get(step.id)
            if observation is not None:  # no StepStarted: its worker was not called
                self._seen[step.id] = (step.worker, observation)
                self._record(StepEnded(step.id, observation, self._now()))
        return [step for step in steps if step.id not in self._seen]

    def _scope_of(self, step: Step) -> EpisodeScope | None:
        return EpisodeScope(self, step)

    def _can_answer(self, turn: Turn) -> bool:
        """Whether the answer can be resolved: it quotes no failed step and no megabytes. If not, the next turn may
        recover."""
        quoted = references(turn.answer)
        if not all(self._seen[k][1].ok for k in quoted):
            return False
        return count_quoted_chars(turn.answer, self._values(quoted)) <= MAX_QUOTED_CHARS

    def _resolve_answer(self, turn: Turn) -> JsonValue:
        return substitute(turn.answer, self._values(references(turn.answer)))

    def _values(self, steps: Iterable[int]) -> dict[int, JsonValue]:
        return {k: self._seen[k][1].value for k in steps}

    def _record_start(self) -> None:
        pool, spec = self.pool.pool, self.spec
        self._record(
            EpisodeStarted(
                query=clean_text(spec.query),
                pool=pool.name,
                pool_hash=self.pool.hash,
                orchestrator=self.orchestrator.name,
                limits=self.limits.model_dump(mode="json"),
                started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
                depth=spec.depth,
                parent=spec.parent,
                task=spec.task,
                what_if=spec.what_if,
                user=spec.user,
            )
        )

    def _record(self, event: Event) -> None:
        self.episode.apply(event)
        self.sink.append(self.episode.id, event)

    def _now(self) -> float:
        return time.perf_counter() - self._zero


@dataclass(frozen=True, slots=True)
class EpisodeScope:
    """The scope of a step whose worker is of kind `orchestrator`: it runs episodes one level deeper.

    They share the outer episode's budget and pool; each has a trace of its own, linked by `parent`.
    """

    outer: _Loop
    step: Step

    async def descend(self, orchestrator: str, query: str, visible: tuple[Visible, ...]) -> Reply:
        outer = self.outer
        depth = outer.spec.depth + 1
        if depth > outer.limits.max_depth:
            raise WorkerFault("max_depth", f"episodes may be nested {outer.limits.max_depth} deep at most")
        assert outer.resolve is not None, "a scope is handed out only by loops that can resolve names"
        query = with_context(query, visible)
        name = outer.orchestrator.name if orchestrator == "same" else orchestrator
        inner = await run_episode(
            EpisodeSpec(query, depth=depth, parent=ParentStep(outer.episode.id, self.step.id), user=outer.spec.user),
            outer.resolve(name, query, outer.pool),
            outer.pool,
            limits=outer.limits,
            sink=outer.sink,
            budget=outer.budget,
            resolve=outer.resolve,
        )
        return self._reply(inner)

    @staticmethod
    def _reply(inner: Episode) -> Reply:
        """The inner answer with its usage, which the shared budget has counted already."""
        ended = inner.ended
        assert ended is not None, "run_episode always ends an episode"
        if ended.outcome != "answered":
            sentence = f"the inner episode ended without an answer: {ended.reason}"
            raise WorkerFault(ended.outcome, sentence, episode=inner.id)
        return Reply(ended.answer, usage=inner.usage, episode=inner.id)


def _is_useless(turn: Turn) -> bool:
    """Whether nothing can come of a turn that did not end its episode: it could not be read, none of its steps could
    be run, or its answer quotes steps that failed."""
    return turn.error is not None or turn.has_answer or all(step.problem for step in turn.steps)


def _explain_useless(turn: Turn) -> str:
    problems = [step.problem for step in turn.steps if step.problem]
    last = turn.error or next(iter(problems), "its answer quotes a step that failed")
    return f"{MAX_USELESS_TURNS} of its turns could not be used, so it was not asked again; the last one: {last}"


def with_context(query: str, visible: tuple[Visible, ...]) -> str:
    """A recursive query, followed by the observations that its step may see."""
    return agent_messages("", query, visible)[-1].content if visible else query
