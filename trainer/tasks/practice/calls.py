"""Calls that are known to work: every worker without effects is called, twice, with arguments that it may take.

Arguments come from what a worker knows itself (`Worker.list_sample_calls`), from its recorded calls, from its schema
and description, and from what other workers returned. A call counts when it succeeds, says the same both times, and
returns something that a task can ask for: a value, or an object with fields that are values.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.live_pool import LivePool, LiveWorker
from pool_registry.errors import PoolError, WorkerFault
from pool_registry.worker import Call, SampleCall
from trainer.tasks.practice.guess_arguments import guess_arguments, list_occurring_values
from trainer.tasks.practice.phrase import changes_with_time, list_offered_paths
from trainer.tasks.suite import make_random

PER_WORKER = 24  # calls that are tried of one worker, by default
AT_A_TIME = 8
MAX_ANSWER_CHARS = 120
MAX_PASSAGE_CHARS = 400
MAX_ITEMS = 12  # of a list that a task asks for
MAX_FIELDS = 8  # of an object that tasks ask for
MAX_DEPTH = 3
NOT_EXACT = "its answers are not exact; name an agent that writes questions (--author), and others check them"
PASSAGES = ("documents", "search")  # kinds of workers that return a list of passages, the best first
_PATH_NAME = re.compile(r"\.(\w+)")
_HEADING = re.compile(r"\s*#[^\n]*\s*")
_FIELD_NAME = re.compile(r"[A-Za-z_]\w{0,99}")


@dataclass(frozen=True, slots=True)
class KnownCall:
    """A call that works, the value that a task asks for, and the words that ask for it where the worker knows them.

    `path` leads to the value in what the call returned, as plans quote it (".rates.EUR"); "" is the whole."""

    worker: str
    arguments: Mapping[str, JsonValue]
    value: JsonValue
    request: str = ""
    path: str = ""
    returned: JsonValue = None

    @property
    def key(self) -> str:
        """What makes two calls of a worker the same call."""
        return json.dumps(dict(self.arguments), sort_keys=True, default=str)


@dataclass(slots=True)
class CallBook:
    """The known calls of a pool by worker, and why a worker has none."""

    calls: dict[str, list[KnownCall]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def values(self) -> list[JsonValue]:
        """The values that the calls returned."""
        return [call.value for calls in self.calls.values() for call in calls]

    def list_values_by_name(self) -> dict[str, list[JsonValue]]:
        """The values of fields by the name of the field, which a parameter of that name may take."""
        named: defaultdict[str, list[JsonValue]] = defaultdict(list)
        for call in (call for calls in self.calls.values() for call in calls):
            items = call.value if isinstance(call.value, list) else [call.value]
            for name in _PATH_NAME.findall(call.path)[-2:]:
                named[name.casefold()] += items
        return named


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
        reason = explain_exclusion(worker, allowed)
        if reason:
            book.reasons[name] = reason
        else:
            tools.append(worker)
    first = [_list_first_calls(worker, recorded.get(worker.spec.name, ()), per_worker) for worker in tools]
    for worker, samples in zip(tools, await asyncio.gather(*first), strict=True):
        book.calls[worker.spec.name] = await try_calls(worker, samples[:per_worker])
    for worker in tools:  # what one worker returns, another may take
        calls = book.calls[worker.spec.name]
        if len({call.key for call in calls}) < per_worker // 2:
            random = make_random(f"practice/{seed}/{worker.spec.name}")
            values = list_occurring_values(book.values, random)
            guesses = guess_arguments(worker, values, per_worker - len(calls), random, book.list_values_by_name())
            calls += await try_calls(worker, [SampleCall(arguments) for arguments in guesses])
    for name, calls in book.calls.items():
        book.calls[name] = choose_fields(pool.workers[name].spec.description, drop_dull(calls))
        if not book.calls[name]:
            book.reasons[name] = (
                "no call of it gave an answer that a task could ask for; call it once in the page (Try it) or give its "
                "parameters `examples`"
            )
    book.calls = {name: calls for name, calls in book.calls.items() if calls}
    return book


def explain_exclusion(worker: LiveWorker, allowed: frozenset[str]) -> str:
    """Why a worker is not called for practice; "" where it is."""
    if worker.role != "tool":
        return NOT_EXACT if worker.role == "agent" else "it runs an orchestrator, whose answers are not exact"
    if worker.spec.name in allowed:
        return ""
    if worker.has_effects:
        return "a call of it may have effects; name it with --allow where it has none"
    if changes_with_time(worker.spec.description):
        return "its answers are those of the moment and would be wrong tomorrow; name it with --allow where they stay"
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

    async def try_one(sample: SampleCall) -> list[KnownCall]:
        async with slots:
            returned = await call_twice(worker, sample.arguments)
        arguments = dict(sample.arguments)
        return [
            KnownCall(worker.spec.name, arguments, value, sample.request, path, returned)
            for path, value in list_fields(worker.spec.kind, arguments, returned)
        ]

    return [call for calls in await asyncio.gather(*map(try_one, samples)) for call in calls]


def list_fields(kind: str, arguments: Mapping[str, JsonValue], returned: JsonValue) -> list[tuple[str, JsonValue]]:
    """List what a task can ask for in what a call of a worker of this kind returned, with the path to it.

    Fields that repeat an argument are left out, and links, which nobody asks for."""
    if can_be_asked(returned):
        return [("", returned)]
    if isinstance(returned, list) and returned and isinstance(returned[0], Mapping):
        if kind in PASSAGES:
            text = returned[0].get("text")
            is_passage = isinstance(text, str) and len(text) <= MAX_PASSAGE_CHARS and not _HEADING.fullmatch(text)
            return [("[0].text", text)] if is_passage else []
        fields = list(_walk(returned[0], "[0]")) if len(returned) == 1 else []
    else:
        fields = list(_walk(returned, ""))
    given = {as_text(value).casefold() for value in arguments.values()}
    new_fields = [(path, value) for path, value in fields if _write_alone(value) not in given]
    return [(path, value) for path, value in new_fields if "://" not in as_text(value)][:MAX_FIELDS]


def _write_alone(value: JsonValue) -> str:
    """The text of a value, or of the only item of a list, to be compared."""
    return as_text(value[0] if isinstance(value, list) and len(value) == 1 else value).casefold()


def _walk(value: JsonValue, path: str, depth: int = 0) -> Iterator[tuple[str, JsonValue]]:
    """Yield the values inside an object with their paths."""
    if isinstance(value, Mapping):
        for name, item in value.items() if depth < MAX_DEPTH else ():
            if _FIELD_NAME.fullmatch(name):
                yield from _walk(item, f"{path}.{name}", depth + 1)
    elif path and can_be_asked(value):
        yield path, value


async def call_twice(worker: LiveWorker, arguments: Mapping[str, JsonValue]) -> JsonValue:
    """What a worker returns for these arguments both times, of an object the fields that stay; None where it fails or
    nothing stays."""
    if worker.argument_problem(arguments) is not None:
        return None
    first = await worker.call(Call(arguments))
    if not first.ok:
        return None
    second = await worker.call(Call(arguments))
    return _keep_stable(first.value, second.value) if second.ok else None


def _keep_stable(first: JsonValue, second: JsonValue) -> JsonValue:
    """A value that is the same in both replies; of objects the fields that are."""
    if first == second:
        return first
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        items = [_keep_stable(item, other) for item, other in zip(first, second, strict=True)]
        return items if None not in items else None
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        fields = {name: _keep_stable(item, second[name]) for name, item in first.items() if name in second}
        return {name: item for name, item in fields.items() if item is not None} or None
    return None


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
    """Drop calls whose answer can be guessed: where three or more of a worker's calls all return the same there."""
    values: defaultdict[str, list[str]] = defaultdict(list)
    for call in calls:
        values[call.path].append(as_text(call.value))
    return [call for call in calls if len(values[call.path]) < 3 or len(set(values[call.path])) > 1]


def choose_fields(description: str, calls: Sequence[KnownCall]) -> list[KnownCall]:
    """Keep the calls for fields that a person asks for and that at least half of the worker's calls return: others are
    keys of a table, such as the code of a region."""
    values: defaultdict[str, list[JsonValue]] = defaultdict(list)
    for call in calls:
        values[call.path].append(call.value)
    total = len({call.key for call in calls})
    usual = {path: returned for path, returned in values.items() if 2 * len(returned) >= total}
    paths = list_offered_paths(description, usual)
    return [call for call in calls if call.path in paths]
