"""Workers that take over where another one fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace

from pool_registry.actions import Failure, JsonValue, Observation, Status
from pool_registry.calls.worker_state import MAX_ERROR_CHARS, OnStart, WorkerState
from pool_registry.worker import Call


async def ask_in_turn(
    ask_first: Callable[[Call, OnStart | None], Awaitable[Observation]],
    call: Call,
    on_start: OnStart | None,
    worker: WorkerState,
    workers: Mapping[str, WorkerState],
    hidden: Collection[str] = (),
) -> Observation:
    """Call the worker and, while one fails, its fallbacks in turn; return the first success or the first failure.

    Time and usage of all of them are added up. When none succeeds, the first one's failure stands. The sentences of
    those whose outputs are `hidden` from some are left out: they may quote what a peer wrote.
    """
    start = on_start and _Once(on_start)
    first = latest = await ask_first(call, start)
    latency_s, usage, attempts = first.latency_s, first.usage, ""
    while _needs_fallback(latest) and worker.spec.fallback in workers:  # a pool made for training may lack it
        other = workers[worker.spec.fallback]
        arguments = _adapt_arguments(call.arguments, worker, other)
        problem = other.argument_problem(arguments)
        if problem is not None:
            attempts += f"; {other.spec.name} cannot take over: {problem}"
            break
        latest = await other.call(replace(call, arguments=arguments), start)
        worker, latency_s, usage = other, latency_s + latest.latency_s, usage + latest.usage
        if latest.error is not None:
            why = "" if other.spec.name in hidden else f": {latest.error.message}"
            attempts += f"; {other.spec.name} in its place: {latest.error.code}{why}"
    if latest is first and not attempts:
        return first
    if latest.ok:
        name = worker.spec.name
        return replace(latest, latency_s=latency_s, usage=usage, answered_by=name, instead_of=first.error)
    assert first.error is not None, "what failed says why"
    failure = Failure(first.error.code, f"{first.error.message}{attempts}"[:MAX_ERROR_CHARS])
    return replace(first, latency_s=latency_s, usage=usage, error=failure)


class _Once:
    """Calls `on_start` once, whichever worker answers in the end."""

    def __init__(self, on_start: OnStart) -> None:
        self._on_start: OnStart | None = on_start

    def __call__(self) -> None:
        if self._on_start is not None:
            self._on_start()
            self._on_start = None


def _needs_fallback(observation: Observation) -> bool:
    """Whether a fallback might succeed: not when the call itself was malformed."""
    if observation.status is Status.PARSE_ERR:
        return observation.error is not None and observation.error.code == "bad_output"
    return not observation.ok


def _adapt_arguments(
    arguments: Mapping[str, JsonValue], worker: WorkerState, other: WorkerState
) -> Mapping[str, JsonValue]:
    """Rename the instruction for another worker: one calls `instruction` what the other calls `query`."""
    mine, theirs = worker.instruction_parameter, other.instruction_parameter
    if mine is None or theirs is None or set(arguments) != {mine}:
        return arguments
    return {theirs: arguments[mine]}
