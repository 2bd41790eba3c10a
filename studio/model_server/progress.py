"""An episode's events as lines of text: what a client shows as the model's reasoning while it waits."""

from __future__ import annotations

from orchestrator.engine.events import Event, StepEnded, StepStarted, TurnTaken
from orchestrator.plan import Step, Turn
from pool_registry.actions import Observation, as_text
from pool_registry.text import one_line, shorten

MAX_WHAT = 100  # characters of what a step was asked


class Progress:
    """Follows one episode. Says what runs and how it ended, never what a worker returned."""

    def __init__(self) -> None:
        self._steps: dict[int, Step] = {}
        self.done = 0

    @property
    def known(self) -> int:
        """How many steps there are so far."""
        return len(self._steps)

    def line(self, event: Event) -> str | None:
        """The event as a line that ends with a line break, or None when there is nothing to say."""
        match event:
            case TurnTaken():
                return self._turn(event.round, event.turn)
            case StepStarted():
                step = self._steps[event.step]
                asked = one_line("; ".join(as_text(value) for value in event.arguments.values()))
                return f"Step {event.step} {step.worker}: {shorten(asked, MAX_WHAT)}\n"
            case StepEnded():
                self.done += 1
                return f"Step {event.step} {self._steps[event.step].worker} {_outcome(event.observation)}\n"
        return None

    def _turn(self, number: int, turn: Turn) -> str:
        self._steps |= {step.id: step for step in turn.steps}
        if turn.error is not None:
            return f"Round {number} could not be used: {turn.error}\n"
        if not turn.steps:
            return f"Round {number}: the answer\n"
        return f"Round {number}: {', '.join(_planned(step) for step in turn.steps)}\n"


def _planned(step: Step) -> str:
    sees = f" (sees {', '.join(map(str, step.access))})" if step.access else ""
    return f"{step.id} {step.worker}{sees}"


def _outcome(observation: Observation) -> str:
    took = f"{observation.status} in {observation.latency_s:.2f} s"
    return took if observation.error is None else f"{took}: {shorten(observation.error.message, MAX_WHAT)}"
