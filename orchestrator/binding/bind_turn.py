"""Put a binding between a checkpoint and its pool: a turn's steps call the bound workers, and the turn records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from orchestrator.binding.bind_workers import BY_PERSON, NONE, Binding, BoundWorker
from orchestrator.plan import BoundStep, Step, Turn
from pool_registry.actions import JsonValue


def bind_turn(turn: Turn, binding: Binding) -> Turn:
    """`turn` with each step on the worker that its learnt one is bound to. A step whose worker is unbound is
    malformed; a name that was never learnt stays."""
    changed = {step.id: bound for step in turn.steps if (bound := _find_change(step, binding)) is not None}
    if not changed:
        return turn
    steps = tuple(_bind_step(step, changed[step.id]) if step.id in changed else step for step in turn.steps)
    return replace(turn, steps=steps, bindings=tuple(_record(step, bound) for step, bound in changed.items()))


def _find_change(step: Step, binding: Binding) -> BoundWorker | None:
    bound = binding.workers.get(step.worker)
    return None if bound is None or bound.keeps_its_words else bound


def _bind_step(step: Step, bound: BoundWorker) -> Step:
    if bound.worker == NONE:
        return step.with_problem(explain_unbound(bound))
    return replace(step, worker=bound.worker, arguments=_rename(step.arguments, bound.parameters))


def _rename(arguments: Mapping[str, JsonValue], names: Mapping[str, str]) -> Mapping[str, JsonValue]:
    return {names.get(name, name): value for name, value in arguments.items()} if names else arguments


def _record(step: int, bound: BoundWorker) -> BoundStep:
    return BoundStep(step, bound.learnt, bound.worker, bound.likeness, bound.by, bound.parameters)


def explain_unbound(bound: BoundWorker) -> str:
    """Why no worker at hand stands for a learnt one."""
    if bound.by == BY_PERSON:
        return f"{bound.learnt!r} is bound to no worker of this pool: a person chose so"
    learnt = f"{bound.learnt!r} was learnt on another pool"
    if bound.nearest == NONE:
        return f"{learnt}; no worker here that is still free takes the same arguments"
    if bound.likeness >= bound.least:
        return f"{learnt}; {bound.nearest}, the likest here, stands for another worker"
    return (
        f"{learnt}, and no worker here is like it: the nearest is {bound.nearest} ({bound.likeness:.2f}; at least "
        f"{bound.least:.2f} is needed)"
    )
