"""Calls that are known to work: every worker without effects is called, twice, with arguments that it may take.

Arguments come from what a worker knows itself (`Worker.list_sample_calls`), from its recorded calls, from its schema
and description, and from what other workers returned. A call counts when it succeeds, says the same both times, and
returns something that a task can ask for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.errors import PoolError, WorkerFault
from pool_registry.worker import Call, SampleCall, Worker
from trainer.tasks.practice.guess_arguments import guess_arguments, list_occurring_values
from trainer.tasks.suite import make_random

PER_WORKER = 24  # calls that are tried of one worker, by default
AT_A_TIME = 8
MAX_ANSWER_CHARS = 120
MAX_ITEMS = 12  # of a list that a task asks for


@dataclass(frozen=True, slots=True)
class KnownCall:
    """A call that works, what it returns, and the words that ask for it where the worker knows them."""

    worker: str
    arguments: Mapping[str, JsonValue]
    value: JsonValue
    request: str = ""


@dataclass(slots=True)
class CallBook:
    """The known calls of a pool by worker, and why a worker has none."""

    calls: dict[str, list[KnownCall]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def values(self) -> list[JsonValue]:
        """The values that the calls returned."""
        return [call.value for calls in self.calls.values() for call in calls]


async def collect_calls(
    pool: LivePool,
    recorded: Mapping[str, Sequence[Mapping[str, JsonValue]]],
    allowed: frozenset[str] = frozenset(),
    per_worker: int = PER_WORKER,
    seed: int = 0,
) -> CallBook:
    """Call the tools of a pool that have no effects, and those in `allowed`. `recorded`: arguments by worker."""
    book = CallBook()
    tools: list[LiveWorker] = []
    for name, worker in pool.workers.items():
        reason = explain_exclusion(worker.worker, allowed)
        if reason:
            book.reasons[name] = reason
        else:
            tools.append(worker)
    first = [_list_first_calls(worker, recorded.get(worker.spec.name, ()), per_worker) for worker in tools]
    for worker, samples in zip(tools, await asyncio.gather(*first), strict=True):
        book.calls[worker.spec.name] = await try_calls(worker, samples[:per_worker])
    for worker in tools:  # what one worker returns, another may take
        calls = book.calls[worker.spec.name]
        if len(calls) < per_worker // 2:
            random = make_random(f"practice/{seed}/{worker.spec.name}")
            values = list_occurring_values(book.values, random)
            guesses = guess_arguments(worker, values, per_worker - len(calls), random)
            calls += await try_calls(worker, [SampleCall(arguments) for arguments in guesses])
    for name, calls in book.calls.items():
        book.calls[name] = drop_dull(calls)
        if not book.calls[name]:
            book.reasons[name] = (
                "no call of it gave an answer that a task could ask for; call it once in the page (Try it) or give its "
                "parameters `examples`"
            )
    book.calls = {name: calls for name, calls in book.calls.items() if calls}
    return book


def explain_exclusion(worker: Worker[Any], allowed: frozenset[str]) -> str:
    """Why a worker is not called for practice; "" where it is."""
    if worker.role != "tool":
        return "its answers are not exact"
    if not worker.cacheable and worker.spec.name not in allowed:
        return "a call of it may have effects; name it with --allow where it has none"
    return ""


async def _list_first_calls(
    worker: LiveWorker, recorded: Sequence[Mapping[str, JsonValue]], count: int
) -> list[SampleCall]:
    """List recorded calls, calls that the worker knows, and those that its schema spells out."""
    try:
        own = list(await worker.worker.list_sample_calls(count))
    except (WorkerFault, PoolError, OSError):
        own = []  # what it cannot read shows when it is called
    random = make_random(f"practice/{worker.spec.name}")
    guesses = [SampleCall(arguments) for arguments in guess_arguments(worker, (), count, random)]
    return _drop_equal([*(SampleCall(arguments) for arguments in recorded), *own, *guesses])


def _drop_equal(samples: Iterable[SampleCall]) -> list[SampleCall]:
    """Keep each call once: the first with its arguments."""
    kept: dict[str, SampleCall] = {}
    for sample in samples:
        kept.setdefault(json.dumps(dict(sample.arguments), sort_keys=True, default=str), sample)
    return list(kept.values())


async def try_calls(worker: LiveWorker, samples: Sequence[SampleCall]) -> list[KnownCall]:
    """Return the calls that work: each is made twice, and must return the same."""
    slots = asyncio.Semaphore(min(AT_A_TIME, worker.spec.max_concurrency))

    async def try_one(sample: SampleCall) -> KnownCall | None:
        async with slots:
            value = await call_twice(worker, sample.arguments)
        call = KnownCall(worker.spec.name, dict(sample.arguments), value, sample.request)
        return call if can_be_asked(value) else None

    return [call for call in await asyncio.gather(*map(try_one, samples)) if call is not None]


async def call_twice(worker: LiveWorker, arguments: Mapping[str, JsonValue]) -> JsonValue:
    """What a worker returns for these arguments; None where it fails, or answers otherwise the second time."""
    if worker.argument_problem(arguments) is not None:
        return None
    first = await worker.call(Call(arguments))
    if not first.ok:
        return None
    second = await worker.call(Call(arguments))
    return first.value if second.ok and second.value == first.value else None


def can_be_asked(value: JsonValue) -> bool:
    """Whether an answer can be graded: a number, a short text, or a short list of such."""
    if isinstance(value, list):
        return 0 < len(value) <= MAX_ITEMS and all(_is_scalar(item) for item in value)
    return _is_scalar(value)


def _is_scalar(value: JsonValue) -> bool:
    if isinstance(value, bool) or value is None or isinstance(value, list | dict):
        return isinstance(value, bool)
    text = as_text(value).strip()
    return 0 < len(text) <= MAX_ANSWER_CHARS and "\n" not in text


def drop_dull(calls: Sequence[KnownCall]) -> list[KnownCall]:
    """Drop calls whose answer can be guessed: where three or more of a worker's calls all return the same."""
    return [] if len(calls) > 2 and len({as_text(call.value) for call in calls}) == 1 else list(calls)
