"""An open pool: calls that never raise.

`LivePool.call` turns an action into an observation. Whatever an adapter does — raise, hang, return
50 MB or something that is not JSON — ends in one of the four statuses. Queueing, time-outs, retries,
prices and size limits live here, once, for every kind of worker.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import jsonschema_rs
import stamina

from pool_registry.actions import (
    Action,
    Failure,
    JsonValue,
    Observation,
    Status,
    Usage,
    as_json_value,
    as_text,
    clean_text,
)
from pool_registry.agents import Completion, LanguageModel, Message
from pool_registry.errors import BadCall, InvalidPool, WorkerFault
from pool_registry.kinds import kind_of, open_worker
from pool_registry.pool import Pool
from pool_registry.secrets import redact
from pool_registry.worker import Call, Reply, Scope, Visible, Worker, WorkerSpec

MAX_ERROR_CHARS = 1000
MAX_NESTING = 64  # traces, prompts and the page take some 150 levels; a quoted value adds to its argument's
OnStart = Callable[[], None]
T = TypeVar("T")


class LiveWorker:
    """One worker of an open pool: its adapter, its queue and its compiled argument schema."""

    def __init__(self, spec: WorkerSpec, worker: Worker[Any]) -> None:
        self.spec = spec
        self.worker = worker
        self.role = kind_of(spec).role
        self.parameters: Mapping[str, JsonValue] = worker.parameters
        # A recursive call holds its slot while the inner episode may need the same worker: no queue there.
        slots = spec.max_concurrency if self.role != "recursion" else 1_000_000
        self._slots = asyncio.Semaphore(slots)
        self._retries = spec.retries if worker.remote else 0
        self._schema = jsonschema_rs.validator_for(dict(self.parameters))
        self.instruction_parameter = _instruction_parameter(self.parameters)

    def argument_problem(self, arguments: Mapping[str, JsonValue]) -> str | None:
        """Why the schema refuses `arguments`, in a sentence for a model, or None."""
        try:
            if self._schema.is_valid(arguments):
                return None
            problems = [
                f"{'.'.join(map(str, error.instance_path)) or 'arguments'}: {error.message}"
                for error in self._schema.iter_errors(arguments)
            ]
        except ValueError as error:  # no JSON at all: a policy's bug, or NaN
            problems = [f"arguments: {error}"]
        return "; ".join(problems)[:MAX_ERROR_CHARS]

    async def call(self, call: Call, on_start: OnStart | None = None) -> Observation:
        """Wait for a free slot, then do the call within the worker's time-out."""
        await self._slots.acquire()
        try:
            if on_start is not None:
                on_start()
            return await self._guarded(call, time.perf_counter())
        finally:
            self._slots.release()

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, JsonValue]] | None = None,
        room: int = 0,
    ) -> Completion:
        """Ask the model behind this worker directly, as an orchestrator does: same queue, time-out,
        retries and prices as a call. The reply may have `room` tokens, or more where the worker is
        configured so. Raises WorkerFault."""
        model = self.worker
        if not isinstance(model, LanguageModel):
            raise WorkerFault("not_a_model", f"{self.spec.name} is no language model; choose an agent")
        limit = max(room, getattr(self.worker.config, "max_tokens", 0)) or None
        async with self._slots:
            try:
                async with asyncio.timeout(self.spec.timeout_s):
                    completion = await self._retrying(lambda: model.complete(messages, tools=tools, max_tokens=limit))
            except TimeoutError:
                sentence = f"{self.spec.name} did not answer within {self.spec.timeout_s:g} s"
                raise WorkerFault("timeout", sentence) from None
        return replace(completion, usage=self._priced(completion.usage))

    async def _guarded(self, call: Call, started: float) -> Observation:
        """The call and what became of it; `started` is when the worker got it."""
        worker, timeout = self.worker, self.spec.timeout_s
        status, episode = Status.EXEC_ERR, None
        clock = _Clock(timeout)
        try:
            try:
                reply = await (self._retrying(lambda: worker.call(call)) if self._retries else worker.call(call))
            finally:
                clock.stop()
            return self._accept(reply, time.perf_counter() - started)
        except BadCall as fault:
            status, failure = Status.PARSE_ERR, Failure(fault.code, _message(fault))
        except WorkerFault as fault:
            failure, episode = Failure(fault.code, _message(fault)), fault.episode
            if fault.code == "timeout":
                status = Status.TIMEOUT
        except (Exception, asyncio.CancelledError, SystemExit) as error:
            # An adapter's bug must not sink the round: it becomes the step's error.
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            if clock.expired:
                status = Status.TIMEOUT
                failure = Failure("timeout", f"{self.spec.name} did not answer within {timeout:g} s")
            else:
                failure = Failure("worker_raised", f"{type(error).__name__}: {_message(error)}")
        return Observation(status, None, time.perf_counter() - started, error=failure, episode=episode)

    async def _retrying(self, attempt: Callable[[], Awaitable[T]]) -> T:
        if not self._retries:
            return await attempt()
        async for trial in stamina.retry_context(
            on=_backoff, attempts=self._retries + 1, wait_initial=0.5, wait_max=20.0, timeout=None
        ):
            with trial:
                return await attempt()
        raise AssertionError("stamina re-raises the last fault")

    def _accept(self, reply: Reply, latency_s: float) -> Observation:
        allowed = self.spec.max_output_chars
        try:
            value = reply.value
            if not isinstance(value, str) or len(value) <= allowed:  # cleaning 50 MB would hold up the loop
                value = storable(value)
            size = len(value) if isinstance(value, str) else len(as_text(value))
        except (ValueError, RecursionError) as error:
            sentence = f"not a JSON value: {_message(error)}"
            return Observation.failed(Status.EXEC_ERR, "invalid_response", sentence, latency_s)
        if size > allowed:
            sentence = f"returned {size:,} characters; {allowed:,} are allowed. Ask for less."
            return Observation.failed(Status.EXEC_ERR, "output_too_large", sentence, latency_s)
        prompt = None if reply.prompt is None else clean_text(reply.prompt)
        return Observation(Status.OK, value, latency_s, self._priced(reply.usage), None, prompt, reply.episode)

    def _priced(self, usage: Usage) -> Usage:
        spec = self.spec
        if not (spec.price_in or spec.price_out or spec.price_call):
            return usage
        cost = (usage.tokens_in * spec.price_in + usage.tokens_out * spec.price_out) / 1e6 + spec.price_call
        return Usage(usage.tokens_in, usage.tokens_out, usage.cost + cost)


class LivePool:
    """A pool whose enabled workers can be called. Bound to the event loop that opened it."""

    def __init__(self, pool: Pool, workers: Mapping[str, LiveWorker]) -> None:
        self.pool = pool
        self.workers = workers

    @cached_property
    def hash(self) -> str:
        """The pool's hash, computed once: every episode records it."""
        return self.pool.hash

    async def call(
        self,
        action: Action,
        visible: tuple[Visible, ...] = (),
        scope: Scope | None = None,
        on_start: OnStart | None = None,
    ) -> Observation:
        """Run one action. Never raises; unknown workers and bad arguments are PARSE_ERR."""
        worker = self.workers.get(action.worker)
        if worker is None:
            return Observation.failed(Status.PARSE_ERR, "unknown_worker", self.unknown_worker(action.worker))
        problem = worker.argument_problem(action.arguments)
        if problem is not None:
            return Observation.failed(Status.PARSE_ERR, "bad_arguments", problem)
        return await worker.call(Call(action.arguments, visible, scope), on_start)

    def unknown_worker(self, name: str) -> str:
        """The sentence that tells a model which workers there are."""
        return f"there is no worker {name[:80]!r}; use one of: {', '.join(self.workers)}"

    async def close(self) -> None:
        for worker in self.workers.values():
            await worker.worker.close()


def open_live_pool(pool: Pool) -> LivePool:
    """Open every enabled worker. Raises InvalidPool when one is configured wrongly."""
    workers: dict[str, LiveWorker] = {}
    for spec in pool.enabled:
        try:
            workers[spec.name] = LiveWorker(spec, open_worker(spec))
        except InvalidPool as error:
            raise InvalidPool([(f"{spec.name}.{where}", what) for where, what in error.problems]) from error
    return LivePool(pool, workers)


@asynccontextmanager
async def live_pool(pool: Pool) -> AsyncIterator[LivePool]:
    """`open_live_pool` that closes itself."""
    opened = open_live_pool(pool)
    try:
        yield opened
    finally:
        await opened.close()


def _backoff(error: Exception) -> bool | float:
    """Whether stamina may try again, or how many seconds the peer asked to wait."""
    if not (isinstance(error, WorkerFault) and error.retryable):
        return False
    return error.retry_after_s if error.retry_after_s is not None else True


def _message(error: BaseException) -> str:
    return clean_text(redact(str(error)))[:MAX_ERROR_CHARS]


class _Clock:
    """`asyncio.timeout` for the one way in which it is used here, at 40 % of its price per call."""

    __slots__ = ("_alarm", "_task", "expired")

    def __init__(self, seconds: float) -> None:
        self._task = asyncio.current_task()
        self._alarm = asyncio.get_running_loop().call_later(seconds, self._ring)
        self.expired = False

    def _ring(self) -> None:
        self.expired = True
        if self._task is not None:
            self._task.cancel()

    def stop(self) -> None:
        """Take back the alarm, and its cancellation if it has rung: others may have cancelled the task, too."""
        self._alarm.cancel()
        if self.expired and self._task is not None:
            self._task.uncancel()


def _is_cancelled() -> bool:
    """Whether somebody cancelled this call, and not the worker something of its own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _instruction_parameter(schema: Mapping[str, JsonValue]) -> str | None:
    """The one required string parameter, for which a plan may write `instruction`."""
    required = schema.get("required", [])
    properties = schema.get("properties", {})
    if not (isinstance(required, list) and len(required) == 1 and isinstance(properties, dict)):
        return None
    name = str(required[0])
    rule = properties.get(name)
    return name if isinstance(rule, dict) and rule.get("type") == "string" else None


def storable(value: object) -> JsonValue:
    """`as_json_value` for what may be nested: ValueError too when it is deeper than MAX_NESTING."""
    clean = as_json_value(value)
    if isinstance(clean, list | dict) and _deeper_than(clean, MAX_NESTING):
        raise ValueError(f"nested more than {MAX_NESTING} deep")
    return clean


def _deeper_than(value: JsonValue, levels: int) -> bool:
    if not isinstance(value, list | dict):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_deeper_than(item, levels - 1) for item in items)
