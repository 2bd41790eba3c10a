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
)
from pool_registry.agents import Completion, LanguageModel, Message
from pool_registry.errors import BadCall, InvalidPool, WorkerFault
from pool_registry.kinds import kind_of, open_worker
from pool_registry.pool import Pool
from pool_registry.secrets import redact
from pool_registry.worker import Call, Reply, Scope, Visible, Worker, WorkerSpec

MAX_ERROR_CHARS = 1000
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
        self._schema = jsonschema_rs.validator_for(dict(self.parameters))

    def argument_problem(self, arguments: Mapping[str, JsonValue]) -> str | None:
        """Why the schema refuses `arguments`, in a sentence for a model, or None."""
        if self._schema.is_valid(arguments):
            return None
        problems = [
            f"{'.'.join(map(str, error.instance_path)) or 'arguments'}: {error.message}"
            for error in self._schema.iter_errors(arguments)
        ]
        return "; ".join(problems)[:MAX_ERROR_CHARS]

    @property
    def instruction_parameter(self) -> str | None:
        """The one required string parameter, for which a plan may write `instruction`."""
        required = self.parameters.get("required", [])
        properties = self.parameters.get("properties", {})
        if not (isinstance(required, list) and len(required) == 1 and isinstance(properties, dict)):
            return None
        name = str(required[0])
        return name if properties.get(name, {}).get("type") == "string" else None

    async def call(self, call: Call, on_start: OnStart | None = None) -> Observation:
        """Wait for a free slot, then do the call within the worker's time-out."""
        async with self._slots:
            if on_start is not None:
                on_start()
            started = time.perf_counter()
            observation = await self._guarded(call)
            return _with_latency(observation, time.perf_counter() - started)

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, JsonValue]] | None = None
    ) -> Completion:
        """Ask the model behind this worker directly, as an orchestrator does: same queue, time-out,
        retries and prices as a call. Raises WorkerFault."""
        model = self.worker
        if not isinstance(model, LanguageModel):
            raise WorkerFault("not_a_model", f"{self.spec.name} is no language model; choose an agent")
        async with self._slots:
            try:
                async with asyncio.timeout(self.spec.timeout_s):
                    completion = await self._retrying(lambda: model.complete(messages, tools=tools))
            except TimeoutError:
                sentence = f"{self.spec.name} did not answer within {self.spec.timeout_s:g} s"
                raise WorkerFault("timeout", sentence) from None
        return replace(completion, usage=self._priced(completion.usage))

    async def _guarded(self, call: Call) -> Observation:
        timeout = self.spec.timeout_s
        try:
            async with asyncio.timeout(timeout):
                reply = await self._retrying(lambda: self.worker.call(call))
            return self._accept(reply)
        except BadCall as fault:
            return Observation.failed(Status.PARSE_ERR, fault.code, _message(fault))
        except WorkerFault as fault:
            failure = Failure(fault.code, _message(fault))
            return Observation(Status.EXEC_ERR, error=failure, episode=fault.episode)
        except TimeoutError:
            return Observation.failed(
                Status.TIMEOUT, "timeout", f"{self.spec.name} did not answer within {timeout:g} s"
            )
        except Exception as error:  # an adapter's bug must not sink the round: it becomes the step's error
            return Observation.failed(
                Status.EXEC_ERR, "worker_raised", f"{type(error).__name__}: {_message(error)}"
            )

    async def _retrying(self, attempt: Callable[[], Awaitable[T]]) -> T:
        if not (self.worker.remote and self.spec.retries):
            return await attempt()
        async for trial in stamina.retry_context(
            on=_backoff, attempts=self.spec.retries + 1, wait_initial=0.5, wait_max=20.0, timeout=None
        ):
            with trial:
                return await attempt()
        raise AssertionError("stamina re-raises the last fault")

    def _accept(self, reply: Reply) -> Observation:
        try:
            value = as_json_value(reply.value)
        except (ValueError, RecursionError) as error:
            return Observation.failed(Status.EXEC_ERR, "invalid_response", f"not a JSON value: {error}")
        size = len(as_text(value))
        if size > self.spec.max_output_chars:
            return Observation.failed(
                Status.EXEC_ERR,
                "output_too_large",
                f"returned {size:,} characters; {self.spec.max_output_chars:,} are allowed. Ask for less.",
            )
        return Observation(
            Status.OK, value, usage=self._priced(reply.usage), prompt=reply.prompt, episode=reply.episode
        )

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
    return redact(str(error))[:MAX_ERROR_CHARS]


def _with_latency(observation: Observation, latency_s: float) -> Observation:
    return Observation(
        observation.status,
        observation.value,
        latency_s,
        observation.usage,
        observation.error,
        observation.prompt,
        observation.episode,
    )
