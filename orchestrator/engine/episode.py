"""An episode: the state that its events add up to.

The episode loop, orchestrators, the page and the trainer all read this one object; only `apply(event)` changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from orchestrator.agreement import Agreement, measure_agreement
from orchestrator.engine.events import (
    AnswerPresented,
    CopiesCompared,
    EpisodeEnded,
    EpisodeStarted,
    Event,
    FinalizerEnded,
    FinalizerStarted,
    Graded,
    NotJudged,
    PlanDecided,
    PlanEscalated,
    PlanHeld,
    Retried,
    StepEnded,
    StepStarted,
    TurnStarted,
    TurnTaken,
)
from orchestrator.errors import DamagedTrace
from orchestrator.plan import (
    AnswerConfidence,
    OutOfDepth,
    RecalledLessons,
    ShownWorkers,
    Step,
    Turn,
)
from orchestrator.quotes import references, substitute
from pool_registry.actions import NO_USAGE, Failure, JsonValue, Observation, Usage
from pool_registry.calls.run_limits import NO_RUN_LIMITS, RunLimits


@dataclass(slots=True)
class StepRun:
    """A step and how far it is: pending until `started_at` is set, running until `observation` is."""

    step: Step
    round: int
    started_at: float | None = None
    ended_at: float | None = None
    arguments: Mapping[str, JsonValue] | None = None
    observation: Observation | None = None

    @property
    def state(self) -> str:
        """PENDING, RUNNING or the observation's status."""
        if self.observation is not None:
            return self.observation.status.value
        return "PENDING" if self.started_at is None else "RUNNING"

    @property
    def failed(self) -> bool:
        return self.observation is not None and not self.observation.ok


@dataclass(slots=True)
class Round:
    """One turn and the steps it launched."""

    number: int
    started_at: float
    turn: Turn | None = None
    turn_ended_at: float | None = None
    steps: list[StepRun] = field(default_factory=list)
    releases: list[PlanHeld | PlanEscalated | PlanDecided] = field(default_factory=list)

    @property
    def held(self) -> PlanHeld | None:
        """What its plan waits for; None where it does not wait."""
        last = self.releases[-1] if self.releases else None
        return last if isinstance(last, PlanHeld) else None


@dataclass(slots=True)
class FinalAnswer:
    """The call of the pool's finalizer, which writes the answer for a person from the outputs of the steps `sources`.
    `started_at` is None where it was not called."""

    worker: str
    sources: tuple[int, ...]
    started_at: float | None = None
    ended_at: float | None = None
    observation: Observation | None = None

    @property
    def writer(self) -> str:
        """Who wrote it: the finalizer, or the worker that took over."""
        return (self.observation.answered_by if self.observation else None) or self.worker

    @property
    def is_written(self) -> bool:
        return self.observation is not None and self.observation.ok


@dataclass(slots=True)
class Episode:
    """Query, rounds, answer and every measurement of an episode so far."""

    id: str
    started: EpisodeStarted | None = None
    rounds: list[Round] = field(default_factory=list)
    steps: dict[int, StepRun] = field(default_factory=dict)
    final: FinalAnswer | None = None
    presented: str | None = None  # the plan's own answer in words for a person, where that differs
    ended: EpisodeEnded | None = None
    graded: Graded | None = None
    not_judged: NotJudged | None = None
    compared: CopiesCompared | None = None
    retried: Retried | None = None
    last_at: float = 0.0

    @property
    def query(self) -> str:
        return self.started.query if self.started else ""

    @property
    def source(self) -> str:
        """What it ran for, as in EpisodeStarted."""
        return self.started.source if self.started else ""

    @property
    def run_limits(self) -> RunLimits:
        """What its caller limited it to."""
        return (self.started.run_limits if self.started else None) or NO_RUN_LIMITS

    @property
    def answer(self) -> JsonValue:
        """The plan's own answer, which is what is graded and learnt from."""
        return self.ended.answer if self.ended else None

    @property
    def final_answer(self) -> JsonValue:
        """The answer for a person: the finalizer's, where it wrote one, else the plan's own."""
        final = self.final
        written = self.ended is not None and final is not None and final.is_written
        return final.observation.value if written and final and final.observation else self.answer

    @property
    def shown_answer(self) -> JsonValue:
        """What a person reads: the final answer, in words where it was presented."""
        return self.final_answer if self.presented is None or self.ended is None else self.presented

    @property
    def held(self) -> PlanHeld | None:
        """What its last plan waits for; None where the episode does not wait for a person."""
        return self.rounds[-1].held if self.rounds and self.ended is None else None

    @property
    def escalated_to(self) -> str:
        """The stronger orchestrator that has taken over; "" where none has."""
        events = (event for done in self.rounds for event in done.releases if isinstance(event, PlanEscalated))
        return next((event.orchestrator for event in events if event.turn is not None), "")

    @property
    def next_step_id(self) -> int:
        """Step ids count 1, 2, 3 ... over the whole episode."""
        return len(self.steps) + 1

    @property
    def usage(self) -> Usage:
        """Tokens and cost of every turn, every step and the final answer so far, and of what understood a follow-up."""
        follow_up = self.started.follow_up if self.started else None
        total = follow_up.usage if follow_up else NO_USAGE
        for done in self.rounds:
            if done.turn is not None:
                total += done.turn.usage
        for run in self.steps.values():
            if run.observation is not None:
                total += run.observation.usage
        if self.final is not None and self.final.observation is not None:
            total += self.final.observation.usage
        return total

    @property
    def shown(self) -> ShownWorkers | None:
        """The workers that the orchestrator was shown, where that was not the whole pool."""
        turns = (done.turn for done in self.rounds)
        return next((turn.shown for turn in turns if turn is not None and turn.shown is not None), None)

    @property
    def recalled(self) -> RecalledLessons | None:
        """The lessons of earlier failures that the orchestrator was shown; None without a failure memory."""
        turns = (done.turn for done in self.rounds)
        return next((turn.recalled for turn in turns if turn is not None and turn.recalled is not None), None)

    @property
    def out_of_depth(self) -> OutOfDepth | None:
        """How far out of its depth the orchestrator is; None where it is not known what it learnt."""
        turns = (done.turn for done in self.rounds)
        return next((turn.out_of_depth for turn in turns if turn is not None and turn.out_of_depth is not None), None)

    @property
    def agreement(self) -> Agreement | None:
        """The agreement behind the last plan that was chosen among several; None where one was written at a time."""
        votes = [(done.number, done.turn.vote) for done in self.rounds if done.turn is not None and done.turn.vote]
        drawn = [(number, vote) for number, vote in votes if vote.sampled > 1]
        return measure_agreement(*drawn[-1]) if drawn else None

    @property
    def confidence(self) -> tuple[int, AnswerConfidence] | None:
        """The last round with the chance of its answer to be right, where a record says that."""
        last = self.rounds[-1] if self.rounds else None
        return (last.number, last.turn.confidence) if last and last.turn and last.turn.confidence else None

    def observations(self) -> dict[int, Observation]:
        """All observations so far by step id."""
        return {k: run.observation for k, run in self.steps.items() if run.observation is not None}

    def apply(self, event: Event) -> None:
        """Apply the next event of this episode's trace. Raises DamagedTrace when it does not fit the events before."""
        try:
            self._apply(event)
        except LookupError as error:
            sentence = (
                f"the trace of episode {self.id} is damaged: a {event.type} event does not fit the events before it"
            )
            raise DamagedTrace(sentence) from error

    def _apply(self, event: Event) -> None:
        self.last_at = event.at
        match event:
            case EpisodeStarted():
                self.started = event
            case TurnStarted():
                self.rounds.append(Round(event.round, event.at))
            case TurnTaken():
                self._take(event)
            case PlanHeld():
                self.rounds[-1].releases.append(event)
            case PlanEscalated() | PlanDecided():
                self.rounds[-1].releases.append(event)
                if event.turn is not None:
                    self._replace_plan(event.turn)
            case StepStarted():
                run = self.steps[event.step]
                run.started_at, run.arguments = event.at, event.arguments
            case StepEnded():
                run = self.steps[event.step]
                run.ended_at, run.observation = event.at, event.observation
            case FinalizerStarted():
                self.final = FinalAnswer(event.worker, event.sources, event.at)
            case FinalizerEnded():
                self.final = self.final or FinalAnswer(event.worker, event.sources)
                self.final.ended_at, self.final.observation = event.at, event.observation
            case AnswerPresented():
                self.presented = event.text
            case EpisodeEnded():
                self.ended = event
            case Graded():
                self.graded = event
            case NotJudged():
                self.not_judged = event
            case Retried():
                self.retried = event
            case CopiesCompared():
                self.compared = event

    def _take(self, event: TurnTaken) -> None:
        current = self.rounds[-1]
        current.turn_ended_at = event.at
        self._set_turn(current, event.turn)

    def _replace_plan(self, turn: Turn) -> None:
        """Another plan in the place of the last one, of which no step has run."""
        current = self.rounds[-1]
        for run in current.steps:
            del self.steps[run.step.id]
        current.steps = []
        self._set_turn(current, turn)

    def _set_turn(self, current: Round, turn: Turn) -> None:
        current.turn = turn
        for step in turn.steps:
            run = StepRun(step, current.number)
            current.steps.append(run)
            self.steps[step.id] = run

    def before_last_turn(self) -> Episode:
        """This episode as it was when its last turn was asked for."""
        last = self.rounds[-1]
        gone = {run.step.id for run in last.steps}
        steps = {k: run for k, run in self.steps.items() if k not in gone}
        rounds = [*self.rounds[:-1], Round(last.number, last.started_at)]
        return Episode(self.id, self.started, rounds, steps, last_at=self.last_at)

    def hide_outputs(self, hidden: Mapping[int, Observation]) -> Episode:
        """This episode with other observations in the place of some, for an orchestrator that may not read those."""
        steps = {k: replace(run, observation=hidden.get(k, run.observation)) for k, run in self.steps.items()}
        rounds = [replace(done, steps=[steps[run.step.id] for run in done.steps]) for done in self.rounds]
        return replace(self, rounds=rounds, steps=steps)


def hide_output(step: int, observation: Observation) -> Observation:
    """What an orchestrator reads of a step whose output it may not see: how it ended. A worker's error may quote what
    its peer wrote."""
    value = f"(hidden from you by the limits of this run; quote it as ${step})" if observation.ok else None
    error, instead_of = _hide_message(observation.error), _hide_message(observation.instead_of)
    return replace(observation, value=value, error=error, instead_of=instead_of, prompt=None)


def _hide_message(failure: Failure | None) -> Failure | None:
    return failure and replace(failure, message="(its message is hidden from you by the limits of this run)")


def fill_known(arguments: Mapping[str, JsonValue], episode: Episode) -> dict[str, JsonValue]:
    """Planned arguments with the outputs that there are already in the place of `$k`; other references stay."""
    values: dict[int, JsonValue] = {k: f"${k}" for k in references(arguments)}
    values |= {k: observed.value for k, observed in episode.observations().items() if observed.ok}
    return {name: substitute(value, values) for name, value in arguments.items()}


def replay(episode_id: str, events: Iterable[Event]) -> Episode:
    """The episode that these events add up to."""
    episode = Episode(episode_id)
    for event in events:
        episode.apply(event)
    return episode
