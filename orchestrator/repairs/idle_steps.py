"""Find steps that do nothing for the answer.

A small model that does not know what a query needs repeats a step, or adds one whose output nobody reads: "which screen
is Low Tide on" became the price of a ticket twice, and the difference of the two. The workers answer all the same.
"""

from __future__ import annotations

from orchestrator.plan import Step, Turn, references
from pool_registry.actions import as_text


def has_idle_step(turn: Turn) -> bool:
    """Whether a step makes the call of another one, or gives an output that neither the answer nor another step has."""
    calls = {_identify_call(step) for step in turn.steps}
    used = references(turn.answer).union(*(step.references or step.access for step in turn.steps))
    return len(calls) < len(turn.steps) or not {step.id for step in turn.steps} <= used


def _identify_call(step: Step) -> tuple[object, ...]:
    """Equal for equal calls. A worker that reads texts gets what it may see, and no arguments but the instruction."""
    arguments = sorted((name, as_text(value)) for name, value in step.arguments.items())
    return step.worker, tuple(arguments), frozenset(step.access)
