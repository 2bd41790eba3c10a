"""The episode loop: take a turn of the orchestrator, run its steps, show it the observations, until it answers or
a limit is reached. Conductor mode (one turn), ParaManager mode (several) and recursion are this same loop.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from orchestrator.approval.plan_gate import PlanReview, find_unapproved
from orchestrator.approval.records import AskReason
from orchestrator.engine.budget import Budget, explain_outcome
from orchestrator.engine.edits import WhatIf
from orchestrator.engine.episode import Episode, hide_output
from orchestrator.engine.events import (
    AnswerPresented,
    EpisodeEnded,
    EpisodeStarted,
    Event,
    FollowUp,
    Outcome,
    ParentStep,
    PlanDecided,
    PlanEscalated,
    PlanHeld,
    ServedAs,
    StepEnded,
    StepStarted,
    TaskRef,
    TurnStarted,
    TurnTaken,
)
from orchestrator.engine.executor import Recorder, RoundRun
from orchestrator.engine.final_answer import FinalCall, Finalizer, Presenter
from orchestrator.engine.fixed_plan import FixedPlan, build_turn, check_plan
from orchestrator.engine.release import Decision, Orchestrator, PlanRelease, complete_orchestrator
from orchestrator.errors import InvalidQuery, OrchestratorError
from orchestrator.orchestrator_name import OrchestratorName
from orchestrator.plan import Step, Turn, check_turn
from orchestrator.quotes import MAX_QUOTED_CHARS, count_quoted_chars, explain_missing_part, references, substitute
from pool_registry.actions import JsonValue, Observation, clean_text
from pool_registry.calls.live_pool import LivePool, list_sources
from pool_registry.calls.spending import Spending, charge_this_task_to
from pool_registry.deployment_mode import DeploymentMode
from pool_registry.errors import WorkerFault
from pool_registry.language_models.completion import agent_messages
from pool_registry.pool import Limits
from pool_registry.worker import Call, PlannedCall, Reply, Visible

__all__ = [
    "EpisodeScope",
    "EpisodeSpec",
    "NoSink",
    "Orchestrator",
    "Resolve",
    "Sink",
    "check_query",
    "is_useless",
    "new_episode_id",
    "resume_episode",
    "run_episode",
    "with_context",
]

MAX_QUERY_CHARS = 1_000_000
AGENT_WITH_TOOLS = "tools"  # the policy of an agent that calls its own tools
MAX_USELESS_TURNS = 2  # of an orchestrator that gives up: it would fail again, at the same price


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
    source: str = ""  # what it runs for, as in EpisodeStarted
    approved: bool = False  # a person wrote the plan: calls that have effects may be made
    mode: DeploymentMode | None = None  # of the episode around an inner one
    served_as: ServedAs | None = None
    retry_of: str = ""  # the failed episode whose lesson it is shown
    follow_up: FollowUp | None = None


def new_episode_id() -> str:
    """Draw an id of 96 bits: of 10 million episodes two have the same with a probability of 6 in 10 ** 16."""
    return secrets.token_hex(12)


async def run_episode(
    spec: EpisodeSpec,
    orchestrator: Orchestrator,
    pool: LivePool,
    *,
    limits: Limits | None = None,
    sink: Sink | None = None,
    budget: Budget | None = None,
    resolve: Resolve | None = None,
    release: PlanRelease | None = None,
    finalizer: Finalizer | Presenter | None = None,
) -> Episode:
    """Run one episode to its end and return it. Errors of orchestrator and workers are recorded, never raised.

    With `release` a plan may have to wait for a person: the episode that is returned has not ended then, and
    `resume_episode` goes on with it. Without, plans run at once; but on a pool whose mode is not autonomous no call is
    made that may have effects. `finalizer` writes the final answer for a person (final_answer.py). A caller's limits
    come with the pool (`LivePool.limit`), for which the orchestrator is made, too.

    Raises InvalidQuery when the query is empty or longer than MAX_QUERY_CHARS.
    """
    check_query(spec.query)
    limits = limits or pool.pool.limits
    budget = budget or Budget(limits, pool.run_limits.max_cost)
    loop = _Loop(spec, orchestrator, pool, limits, sink or NoSink(), budget, resolve, release, finalizer)
    return await loop.run()


async def resume_episode(
    episode: Episode,
    decision: Decision,
    orchestrator: Orchestrator,
    pool: LivePool,
    release: PlanRelease,
    *,
    sink: Sink | None = None,
    budget: Budget | None = None,
    resolve: Resolve | None = None,
    finalizer: Finalizer | Presenter | None = None,
) -> Episode:
    """Go on with an episode whose plan waited, once that was decided. The time that it waited does not count.

    The episode is changed and returned, ended or waiting again.
    """
    started = episode.started
    assert started is not None and episode.held is not None, "the caller has looked whether it waits"
    limits = Limits.model_validate(dict(started.limits))
    budget = budget or Budget(limits, pool.run_limits.max_cost)
    calls = sum(run.started_at is not None for run in episode.steps.values())
    budget.resume(episode.usage, calls, episode.last_at)
    spec = EpisodeSpec(
        started.query, started.task, started.depth, started.parent, episode.id, started.what_if, user=started.user
    )
    loop = _Loop(spec, orchestrator, pool, limits, sink or NoSink(), budget, resolve, release, finalizer, episode)
    return await loop.resume(decision)


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
    release: PlanRelease | None = None
    finalizer: Finalizer | Presenter | None = None
    recorded: Episode | None = None  # one that waited

    def __post_init__(self) -> None:
        self.orchestrator = complete_orchestrator(self.orchestrator)
        self.episode = self.recorded or Episode(self.spec.id or new_episode_id())
        self._clock = asyncio.get_running_loop().time
        self._zero = self._clock() - self.episode.last_at
        steps = self.episode.steps
        self._seen: dict[int, tuple[str, Observation]] = {
            k: (steps[k].step.worker, observation) for k, observation in self.episode.observations().items()
        }
        self._turn_refused = False  # by a cap
        self._useless = sum(is_useless(done.turn) for done in self.episode.rounds[:-1] if done.turn)

    async def run(self) -> Episode:
        self._record_start()
        return await self._run_to_end(self._run_rounds())

    async def resume(self, decision: Decision) -> Episode:
        """Go on after the decision about the last plan."""
        return await self._run_to_end(self._resume_rounds(decision))

    async def _run_to_end(self, rounds: Coroutine[Any, Any, _End | None]) -> Episode:
        try:
            end = await rounds
            if end is not None and end.outcome == "answered" and self.finalizer is not None:
                await self._write_final(self.finalizer, end.answer)
        except asyncio.CancelledError:
            self._record(EpisodeEnded("stopped", self._now(), reason=explain_outcome("stopped", self.limits)))
            raise
        if end is not None:
            self._record(EpisodeEnded(end.outcome, self._now(), end.answer, end.reason))
        return self.episode

    async def _write_final(self, finalizer: Finalizer | Presenter, answer: JsonValue) -> None:
        if isinstance(finalizer, Presenter):
            if (text := finalizer.present(self.episode, answer, self.pool)) is not None:
                self._record(AnswerPresented(text, self._now()))
            return
        allowed = self.spec.approved or self.mode.name == "autonomous"
        call = FinalCall(finalizer, self.episode, self.pool, self.budget, self._record, self._now, allowed)
        await call.make(answer)

    async def _run_rounds(self) -> _End | None:
        """How the episode ends; None when a plan waits for a person."""
        for number in range(len(self.episode.rounds) + 1, self.limits.max_rounds + 1):
            reached = self.budget.check_limits()
            if reached is not None:
                return _End(reached, None, explain_outcome(reached, self.limits))
            turn = await self._take_turn(number)
            if turn.failed:
                return _End(self._find_cap() or "orchestrator_failed", None, turn.error)
            if turn.error is None and self.release is not None:
                released = await self._ask_release(turn, number)
                if not isinstance(released, Turn):
                    return released
                turn = released
            end = await self._finish_round(turn, number)
            if end is not None:
                return end
        reached = self.budget.check_limits() or "max_rounds"
        last = self.episode.rounds[-1].turn
        missing = self._explain_missing_part(last) if last is not None else None
        reason = explain_outcome(reached, self.limits)
        return _End(reached, None, f"{reason} Its answer cannot be given: {missing}" if missing else reason)

    async def _resume_rounds(self, decision: Decision) -> _End | None:
        number = len(self.episode.rounds)
        if self.release is not None and self.release.make_stronger is not None and self.episode.escalated_to:
            self.orchestrator = complete_orchestrator(self.release.make_stronger())
        released = self._apply_decision(decision, number)
        if not isinstance(released, Turn):
            return released
        return await self._finish_round(released, number) or await self._run_rounds()

    async def _finish_round(self, turn: Turn, number: int) -> _End | None:
        """Run a turn's steps; returns how the episode ends, if it does."""
        if turn.error is None:
            await self._run_steps(turn)
            if turn.has_answer and self._can_answer(turn):
                answer = self._resolve_answer(turn)
                if self._accepts(answer):
                    return _End("answered", answer, None)
        self._useless += is_useless(turn)
        if self._useless >= MAX_USELESS_TURNS and self._gives_up(number):
            return _End("gave_up", None, _explain_useless(turn, self._explain_missing_part(turn)))
        return None

    async def _ask_release(self, turn: Turn, number: int) -> Turn | _End | None:
        """The turn whose plan may run; how the episode ends where it was rejected; None when it waits."""
        assert self.release is not None, "asked for where there is a gate"
        gate, depth = self.release.gate, self.episode.out_of_depth
        escalated = bool(self.episode.escalated_to)
        review = gate.review(turn, depth, self.pool, doubted=not escalated)
        if review is not None and self.release.make_stronger is not None and not escalated and _is_in_doubt(review):
            turn, review = await self._escalate(turn, number, review, self.release.make_stronger)
        if review is None:
            if gate.mode.name == "escalate" and turn.steps:
                self._record(PlanDecided(number, "approve", f"mode:{gate.mode.name}", self._now(), _utc_now()))
            return turn
        self._record(PlanHeld(number, review.reasons, review.estimate, self._now(), _utc_now()))
        before = self._clock()
        decision = await self.release.approve(review)
        thought_s = self._clock() - before
        self._zero += thought_s
        self.budget.skip(thought_s)
        return None if decision is None else self._apply_decision(decision, number)

    async def _escalate(
        self, turn: Turn, number: int, review: PlanReview, make_stronger: Callable[[], Orchestrator]
    ) -> tuple[Turn, PlanReview | None]:
        """Ask the stronger orchestrator for this turn; returns the turn to run, and why that may still not run."""
        assert self.release is not None, "escalated where there is a gate"
        gate, name = self.release.gate, self.release.gate.mode.escalate_to
        try:
            stronger = make_stronger()
            name = stronger.name
            taken = await self._ask_for_turn(stronger, self.episode.before_last_turn())
        except OrchestratorError as error:
            taken = Turn(error=str(error))
        if taken.error is not None:
            self._record(PlanEscalated(number, review.reasons, name, self._now(), error=taken.error))
            reason = AskReason("escalation", f"{name} was asked and has no plan: {taken.error}")
            return turn, replace(review, reasons=(*review.reasons, reason))
        taken = replace(taken, usage=turn.usage + taken.usage)
        self._record(PlanEscalated(number, review.reasons, name, self._now(), taken))
        self.orchestrator = complete_orchestrator(stronger)
        return taken, gate.review(taken, None, self.pool, doubted=False)

    def _apply_decision(self, decision: Decision, number: int) -> Turn | _End:
        at, done = self._now(), self.episode.rounds[-1]
        self._record(
            PlanDecided(
                number,
                decision.verdict,
                decision.by,
                at,
                _utc_now(),
                decision.note,
                decision.edits,
                decision.turn,
            )
        )
        if decision.verdict == "reject":
            note = f": {decision.note}" if decision.note else ""
            return _End("rejected", None, f"{decision.by or 'A person'} rejected the plan{note}")
        assert done.turn is not None, "a plan that waits is a turn's"
        return done.turn

    def _accepts(self, answer: JsonValue) -> bool:
        return self.orchestrator.accepts_answer(answer)

    def _gives_up(self, number: int) -> bool:
        """Whether the orchestrator's mistakes, and not a limit, end the episode after this round."""
        more = number < self.limits.max_rounds and self.budget.check_limits() is None
        return more and self.orchestrator.gives_up

    async def _take_turn(self, number: int) -> Turn:
        """Take the orchestrator's next turn and check it against the pool; the deadline and `stop()` cut it off."""
        self._record(TurnStarted(number, self._now()))
        turn = await self._ask_for_turn(self.orchestrator, self.episode)
        self._record(TurnTaken(number, turn, self._now()))
        return turn

    def _find_cap(self) -> Outcome | None:
        """The cap that keeps the orchestrator from being asked: it is reached, or one more turn might pass it."""
        return self.budget.check_caps() or ("max_cost" if self._turn_refused else None)

    async def _ask_for_turn(self, orchestrator: Orchestrator, episode: Episode) -> Turn:
        spending = self.budget.open_spending()
        task = asyncio.create_task(self._ask(orchestrator, self._hide_outputs(orchestrator, episode), spending))
        try:
            await self.budget.wait_for(task)
        finally:
            if not task.done():
                task.cancel()
        workers = {k: worker for k, (worker, _) in self._seen.items()} if self.pool.run_limits.seen_by else {}
        turn = check_turn(self._outcome_of(task), self.pool, self._seen, workers)
        self._turn_refused = spending.refused
        spending.charge_rest(turn.usage)
        return turn

    def _hide_outputs(self, orchestrator: Orchestrator, episode: Episode) -> Episode:
        """The episode as its orchestrator may read it. One that is an agent of the pool reads what that agent may see;
        the others quote what is hidden, so that none can write it into the call of a worker that may not see it."""
        limits = self.pool.run_limits
        if not limits.seen_by:
            return episode
        reader = OrchestratorName.parse(orchestrator.name).worker
        hidden = {}
        for k, (worker, observation) in self._seen.items():
            sources = list_sources((Visible(k, worker, observation),))
            if episode.steps[k].started_at is not None and limits.explain_hidden(reader, sources) is not None:
                hidden[k] = hide_output(k, observation)
            elif observation.prompt is not None:  # it holds what that step may see
                hidden[k] = replace(observation, prompt=None)
        return episode.hide_outputs(hidden)

    @staticmethod
    async def _ask(orchestrator: Orchestrator, episode: Episode, spending: Spending) -> Turn:
        charge_this_task_to(spending)
        turn = await orchestrator.turn(episode)
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
        await RoundRun(
            steps, self._seen, self.pool, self.budget, recorder, scope_of, self._find_unapproved(steps)
        ).run()

    def _find_unapproved(self, steps: Sequence[Step]) -> frozenset[int]:
        """The steps that may not run because their calls may have effects and this episode cannot ask anybody."""
        if self.release is not None or self.spec.approved or self.mode.name == "autonomous":
            return frozenset()
        return find_unapproved(steps, self.pool)

    @property
    def mode(self) -> DeploymentMode:
        """The deployment mode of this run: chosen for it, or of the episode around it, or its pool's."""
        return self.release.gate.mode if self.release is not None else self.spec.mode or self.pool.pool.mode

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
        """Whether the answer can be resolved: it quotes no failed step, no part that is not there and no megabytes. If
        not, the next turn may recover."""
        quoted = references(turn.answer)
        if not all(self._seen[k][1].ok for k in quoted) or self._explain_missing_part(turn):
            return False
        return count_quoted_chars(turn.answer, self._values(quoted)) <= MAX_QUOTED_CHARS

    def _explain_missing_part(self, turn: Turn) -> str | None:
        """Why a part of an output that the answer quotes cannot be put in, as far as the steps have outputs."""
        seen = {k: self._seen[k][1] for k in references(turn.answer) if k in self._seen}
        values = {k: observation.value for k, observation in seen.items() if observation.ok}
        return explain_missing_part(turn.answer, values, not self.pool.run_limits.seen_by)

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
                started_at=_utc_now(),
                depth=spec.depth,
                parent=spec.parent,
                task=spec.task,
                what_if=spec.what_if,
                user=spec.user,
                source=spec.source,
                mode=self.release.gate.mode if self.release is not None else None,
                run_limits=self.pool.run_limits or None,
                served_as=spec.served_as,
                retry_of=spec.retry_of,
                follow_up=spec.follow_up,
            )
        )

    def _record(self, event: Event) -> None:
        self.episode.apply(event)
        self.sink.append(self.episode.id, event)

    def _now(self) -> float:
        return self._clock() - self._zero


@dataclass(frozen=True, slots=True)
class EpisodeScope:
    """The scope of a step whose worker is of kind `orchestrator`: it runs episodes one level deeper.

    They share the outer episode's budget and pool; each has a trace of its own, linked by `parent`.
    """

    outer: _Loop
    step: Step

    async def descend(self, orchestrator: str, query: str, visible: tuple[Visible, ...]) -> Reply:
        name = self.outer.orchestrator.name if orchestrator == "same" else orchestrator
        pool = self.outer.pool
        pool = pool.limit_inner(pool.list_answerers(self.step.worker), visible)
        return await self._run_inner(name, with_context(query, visible), pool)

    async def use_tools(self, agent: str, tools: Collection[str], query: str, visible: tuple[Visible, ...]) -> Reply:
        """Let an agent call its own tools until it answers."""
        pool = self.outer.pool.limit_inner({agent}, visible).narrow({agent, *tools})
        return await self._run_inner(f"{AGENT_WITH_TOOLS}:{agent}", with_context(query, visible), pool)

    async def follow(self, skill: str, plan: Sequence[PlannedCall], answer: JsonValue, call: Call) -> Reply:
        """Run the plan that a skill brings along. Raises WorkerFault, and calls nothing, where it cannot run here."""
        outer = self.outer
        pool = outer.pool.limit_inner(outer.pool.list_answerers(self.step.worker), call.visible)
        turn = check_plan(skill, build_turn(plan, answer), pool, outer.pool)
        query = f"{skill} {json.dumps(dict(call.arguments), ensure_ascii=False)}"
        # Who let this step run has let its plan run: the skill counts as having the effects of the workers it calls.
        approved = outer.release is not None or outer.spec.approved
        return await self._run_inner(skill, query, pool, FixedPlan(skill, turn), approved)

    async def _run_inner(
        self, name: str, query: str, pool: LivePool, orchestrator: Orchestrator | None = None, approved: bool = False
    ) -> Reply:
        outer = self.outer
        depth = outer.spec.depth + 1
        if depth > outer.limits.max_depth:
            raise WorkerFault("max_depth", f"episodes may be nested {outer.limits.max_depth} deep at most")
        assert outer.resolve is not None, "a scope is handed out only by loops that can resolve names"
        inner = await run_episode(
            EpisodeSpec(
                query,
                depth=depth,
                parent=ParentStep(outer.episode.id, self.step.id),
                user=outer.spec.user,
                source=outer.spec.source,
                mode=outer.mode,
                approved=approved,
            ),
            orchestrator or outer.resolve(name, query, pool),
            pool,
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


@dataclass(frozen=True, slots=True)
class _End:
    """How an episode ends."""

    outcome: Outcome
    answer: JsonValue
    reason: str | None


def _utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _is_in_doubt(review: PlanReview) -> bool:
    """Whether a stronger orchestrator may plan better: effects alone are for a person."""
    return any(reason.code in ("doubt", "cost", "time") for reason in review.reasons)


def is_useless(turn: Turn) -> bool:
    """Whether nothing can come of a turn that did not end its episode: it could not be read, none of its steps could
    be run, or its answer quotes steps that failed."""
    return turn.error is not None or turn.has_answer or all(step.problem for step in turn.steps)


def _explain_useless(turn: Turn, missing: str | None) -> str:
    problems = [step.problem for step in turn.steps if step.problem]
    last = turn.error or next(iter(problems), missing) or "its answer quotes a step that failed"
    return f"{MAX_USELESS_TURNS} of its turns could not be used, so it was not asked again; the last one: {last}"


def with_context(query: str, visible: tuple[Visible, ...]) -> str:
    """A recursive query, followed by the observations that its step may see."""
    return agent_messages("", query, visible)[-1].content if visible else query
