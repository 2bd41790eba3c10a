"""An episode's events as lines of text, which a client shows as the model's reasoning while it waits."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.engine.events import (
    EpisodeStarted,
    Event,
    FinalizerEnded,
    FinalizerStarted,
    StepEnded,
    StepStarted,
    TurnTaken,
)
from orchestrator.plan import Step, Turn
from orchestrator.repairs.table import OWN_TURNS
from pool_registry.actions import Observation, as_text
from pool_registry.text import one_line, shorten
from studio.episode_documents.follow_up import describe_reader

MAX_CHARS = 100  # of a step's arguments or error


class EpisodeProgress:
    """Follows one episode. Its lines say what runs and how it ended, never what a worker returned."""

    def __init__(self) -> None:
        self._steps: dict[int, Step] = {}
        self._trials: set[int] = set()  # steps that try other words for a rejected call
        self._votes = False  # every turn is voted on
        self.done = 0

    @property
    def total(self) -> int:
        """How many steps are planned so far."""
        return len(self._steps)

    def take_turns(self, turns: Iterable[Turn]) -> None:
        """Know the steps of turns that were taken before."""
        for turn in turns:
            self._steps |= {step.id: step for step in turn.steps}

    def describe(self, event: Event) -> str | None:
        """Describe an event in a line that ends with a line break; None for events without a line."""
        match event:
            case EpisodeStarted():
                read = event.follow_up
                return f"{describe_reader(read).capitalize()}: {shorten(read.question, MAX_CHARS)}\n" if read else None
            case TurnTaken():
                return self._describe_turn(event.round, event.turn)
            case StepStarted():
                step = self._steps[event.step]
                arguments = one_line("; ".join(as_text(value) for value in event.arguments.values()))
                return f"Step {event.step} {step.worker}: {shorten(arguments, MAX_CHARS)}\n"
            case StepEnded():
                self.done += 1
                step = self._steps[event.step]
                if event.step in self._trials and not event.observation.ok:
                    return f"Step {event.step} {step.worker}: not these words\n"
                return f"Step {event.step} {step.worker} {_describe_outcome(event.observation)}\n"
            case FinalizerStarted():
                return f"{event.worker} writes the final answer\n"
            case FinalizerEnded():
                return f"Final answer of {event.worker}: {_describe_outcome(event.observation)}\n"
        return None

    def _describe_turn(self, number: int, turn: Turn) -> str:
        self._steps |= {step.id: step for step in turn.steps}
        if turn.error is not None:
            return f"Round {number} could not be used: {turn.error}\n"
        if not turn.steps:
            return f"Round {number}: the answer\n"
        steps = ", ".join(_describe_step(step) for step in turn.steps)
        if OWN_TURNS.intersection(turn.repairs):
            return f"Round {number} is planned again: {steps}\n"
        if turn.trial:
            self._trials |= {step.id for step in turn.steps}
            return f"Round {number} tries other words: {steps}\n"
        self._votes |= turn.vote is not None and number == 1
        if turn.vote is not None and not self._votes:
            return f"Round {number} takes another plan: {steps}\n"
        return f"Round {number}: {steps}\n"


def _describe_step(step: Step) -> str:
    sees = f" (sees {', '.join(map(str, step.access))})" if step.access else ""
    return f"{step.id} {step.worker}{sees}"


def _describe_outcome(observation: Observation) -> str:
    ended = f"{observation.status} in {observation.latency_s:.2f} s"
    return ended if observation.error is None else f"{ended}: {shorten(observation.error.message, MAX_CHARS)}"
