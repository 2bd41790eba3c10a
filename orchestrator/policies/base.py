"""Helpers of the fixed policies, whose turns are written by code."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.dialects.plan_json import PlanDialect
from orchestrator.engine.episode import Episode, StepRun
from orchestrator.plan import Step, Turn
from pool_registry.actions import as_text

ASK = "Answer this question. Write the answer alone, in as few words as it needs.\n"  # for replies to be compared
_DIALECT = PlanDialect()


def agent_step(step_id: int, worker: str, instruction: str, access: Sequence[int] = ()) -> Step:
    """A step that calls an agent."""
    return Step(step_id, worker, {"instruction": instruction}, tuple(access))


def write_turn(steps: Sequence[Step], answer: str | None = None) -> Turn:
    """A turn with its text in dialect `plan`, as a model would have written it."""
    turn = Turn(tuple(steps), answer)
    return Turn(turn.steps, turn.answer, text=_DIALECT.format(turn, ()))


def read_limit(episode: Episode, name: str) -> int:
    """A limit of this episode: `max_rounds`, `max_steps`."""
    assert episode.started is not None, "turns are taken in a running episode"
    value = episode.started.limits[name]
    assert isinstance(value, int), f"{name} is counted"
    return value


def read_reply(run: StepRun) -> str:
    """What an agent answered; "" where its call failed."""
    return as_text(run.observation.value).strip() if run.observation is not None and run.observation.ok else ""


def only_turn(episode: Episode, turn: Turn) -> Turn:
    """`turn` in the first round, and an error afterwards: a fixed policy has no second plan."""
    if len(episode.rounds) <= 1:
        return turn
    return Turn(error="this orchestrator has one plan, and its answer step failed", failed=True)
