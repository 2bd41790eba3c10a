"""The records of a plan's release: estimates and reasons. Plain data, so that the events of a trace can hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["approve", "reject"]
ReasonCode = Literal["review", "effects", "doubt", "cost", "time", "escalation"]


@dataclass(frozen=True, slots=True)
class AskReason:
    """Why a plan does not run by itself, as a code and in a sentence for people."""

    code: ReasonCode
    sentence: str


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """What a step's call will take, by the recorded calls of its worker. `calls` is how many these are: with none,
    `seconds` is None and `cost` is the worker's price per call."""

    step: int
    worker: str
    cost: float
    seconds: float | None
    calls: int
    effects: bool


@dataclass(frozen=True, slots=True)
class PlanEstimate:
    """What a plan will take: its cost in US dollars, and the seconds of its slowest chain of steps. `unknown` are the
    steps whose worker has no recorded call."""

    cost: float
    seconds: float
    steps: tuple[StepEstimate, ...]
    unknown: tuple[int, ...] = ()
