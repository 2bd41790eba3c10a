"""One worker of an open pool: every call ends in one of the four statuses, whatever the adapter does.

Whatever it does — raise, hang, return 50 MB or something that is not JSON — becomes an observation.
Queueing, rates, time-outs, retries, the circuit breaker, prices, size limits and the check of the output
live here, once, for every kind of worker.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import stamina

from pool_registry.actions import (
    NO_USAGE,
    Failure,
    JsonValue,
    Observation,
    Status,
    Usage,
    as_text,
    clean_text,
    storable,
)
from pool_registry.calls.circuit_breaker import FAILURES, Admission, Breaker, breaker_of
from pool_registry.calls.limit_share import count_slots, make_pace
from pool_registry.calls.spending import Bill, current_spending
from pool_registry.calls.time_limit import TimeLimit
from pool_registry.errors import BadCall, InvalidPool, WorkerFault
from pool_registry.language_models.completion import (
    Completion,
    CompletionOptions,
    Draw,
    Grammar,
    LanguageModel,
    Message,
    estimate_completion,
)
from pool_registry.language_models.context_budget import TOO_LONG
from pool_registry.schemas.output_check import BadOutput, OutputChecker
from pool_registry.schemas.schema_check import SchemaCheck
from pool_registry.schemas.schema_size import SchemaTooLarge
from pool_registry.secrets import list_references, redact, redact_value
from pool_registry.worker import Call, Reply, Worker, WorkerSpec

MAX_ERROR_CHARS = 1000
MAX_ERRORS = 10  # of the arguments of one call
NO_PRICE = (
    "{0} was not called: the cost of this run has a limit, and what a call of {0} costs is not known. "
    "Give it a price on the Pool page, or say there that it is free"
)
OnStart = Callable[[], None]
T = TypeVar("T")


class LiveWorker:
    """One worker of an open pool: its adapter, its queue and its compiled schemas.

    Raises InvalidPool when its argument schema is none.
    """

    def __init__(self, spec: WorkerSpec, worker: Worker[Any]) -> None:
        self.spec = spec
        self.worker = worker
        self.role = worker.role
        self.parameters: Mapping[str, JsonValue] = worker.parameters
        # A recursive call holds its slot while the inner episode may need the same worker: no queue there.
        slots = count_slots(spec, worker.remote) if self.role != "recursion" else 1_000_000
        self._slots = asyncio.Semaphore(slots)
        self._pace = make_pace(spec)
        self._time_limit = TimeLimit(spec.timeout_s)
        self._retries = spec.retries if worker.remote else 0
        self._breaker = breaker_of(spec) if worker.remote else None  # what runs here fails by what it is asked
        self._has_tools = bool(getattr(worker.config, "tools", ()))
        self._output_checker: OutputChecker | None = None
        self._schema: SchemaCheck | None = None
        self._refusal = self._compile_schemas()
        # With a key, somebody's account is charged, if anything is.
        may_charge = worker.may_charge(worker.config) or (worker.remote and bool(list_references(spec.config)))
        self._charges = may_charge and not (spec.has_price or spec.free)
        self.instruction_parameter = _instruction_parameter(self.parameters)

    @cached_property
    def identity(self) -> str:
        """The hash of what the worker does: changed by any edit but of its description and limits."""
        what = self.spec.model_dump(mode="json", include={"name", "kind", "config", "output", "max_output_chars"})
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()

    @property
    def has_effects(self) -> bool:
        """Whether a call may change something outside: as its configuration says, or else every tool whose kind does
        not promise that it only reads."""
        if self.spec.effects != "auto":
            return self.spec.effects == "some"
        return self.role == "tool" and not self.worker.only_reads

    def _compile_schemas(self) -> str:
        """Compile both schemas; return why every call is refused where a stored one asks for too much, else ""."""
        try:
            self._schema = SchemaCheck(self.parameters)
            self._output_checker = OutputChecker(self.spec.output) if self.spec.output else None
        except SchemaTooLarge as error:
            return f"{self.spec.name} cannot be called: {error}"
        except ValueError as error:
            raise InvalidPool([("parameters", str(error))]) from error
        return ""

    def argument_problem(self, arguments: Mapping[str, JsonValue]) -> str | None:
        """Explain to a model why the schema refuses `arguments`; None when it accepts them."""
        if self._schema is None or self._refusal:
            return self._refusal
        try:
            if self._schema.accepts(arguments):
                return None
            problem = self._schema.explain(arguments, "arguments", MAX_ERRORS, MAX_ERROR_CHARS)
        except ValueError as error:  # no JSON at all: a policy's bug, or NaN
            problem = f"arguments: {error}"
        return problem[:MAX_ERROR_CHARS]

    async def close(self) -> None:
        self._time_limit.close()
        await self.worker.close()

    async def call(self, call: Call, on_start: OnStart | None = None) -> Observation:
        """Wait for a free slot, for the rate and for room under the caps, then do the call within the worker's
        time-out."""
        if self._has_tools:  # what it asks its model and what it calls wait and are paid for themselves
            if on_start is not None:
                on_start()
            return (await self._call_safely(call, Bill(None, NO_USAGE, 0.0)))[0]
        await self._slots.acquire()
        try:
            await self._pace.admit()
            try:
                self.worker.check_call(call)
                bill = await self._open_bill(lambda: self.worker.estimate_usage(call))
            except WorkerFault as fault:
                return Observation.failure(Status.EXEC_ERR, fault.code, str(fault))
            try:
                if self._breaker is None:
                    if on_start is not None:
                        on_start()
                    return (await self._call_safely(call, bill))[0]
                return await self._call_through_breaker(call, on_start, self._breaker, bill)
            finally:
                bill.close()
        finally:
            self._slots.release()

    async def _open_bill(self, estimate: Callable[[], Usage]) -> Bill:
        """Reserve the first attempt of a call. Raises WorkerFault when a cap is reached, or asks for a price."""
        spending = current_spending()
        if spending is None:
            return Bill(None, NO_USAGE, self.spec.price_call)
        if self._charges and spending.limits_cost:
            raise WorkerFault("no_price", NO_PRICE.format(self.spec.name))
        if self.role == "recursion":  # the episode inside is charged itself, and must not wait for this call to end
            spending.charge(Usage(cost=self.spec.price_call))
            return Bill(None, NO_USAGE, 0.0)
        bill = Bill(spending, self._add_price(estimate()), self.spec.price_call)
        await bill.reserve()
        return bill

    async def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, JsonValue]] | None = None,
        room: int = 0,
        draw: Draw | None = None,
        grammar: Grammar | None = None,
    ) -> Completion:
        """Ask the model behind this worker directly, as an orchestrator does: same queue, rate, time-out,
        retries and prices as a call. The reply may have `room` tokens, or more where the worker is
        configured so, is drawn as `draw` says, where that is given, and held to `grammar`. Raises WorkerFault."""
        model = self.worker
        if not isinstance(model, LanguageModel):
            raise WorkerFault("not_a_model", f"{self.spec.name} is no language model; choose an agent")
        limit = max(room, getattr(self.worker.config, "max_tokens", 0))
        self._check_prompt(messages, tools, limit)
        options = CompletionOptions(tools, limit or None, draw, grammar)
        async with self._slots:
            await self._pace.admit()
            bill = await self._open_bill(lambda: estimate_completion(messages, tools, limit))
            try:
                async with asyncio.timeout(self.spec.timeout_s):
                    completion = await self._retrying(
                        lambda: bill.pay_attempt(lambda: model.complete(messages, options))
                    )
            except TimeoutError:
                sentence = f"{self.spec.name} did not answer within {self.spec.timeout_s:g} s"
                raise WorkerFault("timeout", sentence) from None
            else:
                usage = self._add_price(completion.usage)
                bill.settle(usage)
            finally:
                bill.close()
        return replace(completion, text=redact(completion.text), usage=usage)

    def _check_prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, JsonValue]] | None, reply_tokens: int
    ) -> None:
        """Raise WorkerFault when a prompt does not fit into the model's context, before anything is paid for it."""
        allowed = self.spec.context_tokens
        sent = estimate_completion(messages, tools, reply_tokens).tokens_in if allowed is not None else 0
        if allowed is not None and sent + reply_tokens > allowed:
            sentence = (
                f"{self.spec.name} takes {allowed:,} tokens; this prompt has about {sent:,} and the reply may have "
                f"{reply_tokens:,}. Show fewer workers (the pool's limit max_shown), or choose a larger model"
            )
            raise WorkerFault(TOO_LONG, sentence)

    async def _call_through_breaker(
        self, call: Call, on_start: OnStart | None, breaker: Breaker, bill: Bill
    ) -> Observation:
        """Make the call if the breaker admits it."""
        admission = breaker.admit()
        if admission is Admission.NO:
            return Observation.failure(Status.EXEC_ERR, "circuit_open", self._when_tried(breaker))
        if on_start is not None:
            on_start()
        try:
            observation, failed = await self._call_safely(call, bill)
        except BaseException:
            breaker.abandon(admission)
            raise
        breaker.settle(admission, failed)
        return observation

    def _when_tried(self, breaker: Breaker) -> str:
        left = breaker.circuit.seconds
        when = f"is tried again in {left:.0f} s" if left > 0 else "is being tried again right now"
        return f"{self.spec.name} failed {FAILURES} times in a row and {when}; use another worker, or try later"

    async def _call_safely(self, call: Call, bill: Bill) -> tuple[Observation, bool]:
        """Make the call; return its observation, and whether it counts as a failure for the breaker."""
        worker, timeout = self.worker, self.spec.timeout_s
        status, episode, failed = Status.EXEC_ERR, None, False
        clock = self._time_limit.start()
        try:
            try:
                if self._retries:
                    reply = await self._retrying(lambda: bill.pay_attempt(lambda: worker.call(call)))
                else:
                    reply = await bill.pay_attempt(lambda: worker.call(call))
            finally:
                clock.stop()
            observation = self._accept(reply, clock.elapsed_s)
            bill.settle(observation.usage)
            return observation, False
        except BadCall as fault:
            status, failure = Status.PARSE_ERR, Failure(fault.code, _message(fault))
        except WorkerFault as fault:
            self._keep_waiting_time(fault)
            failure, episode = Failure(fault.code, _message(fault)), fault.episode
            failed = fault.retryable
            if fault.code == "timeout":
                status, failed = Status.TIMEOUT, True
        except (Exception, asyncio.CancelledError, SystemExit) as error:
            # An adapter's bug must not sink the round: it becomes the step's error.
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            if clock.expired:
                status, failed = Status.TIMEOUT, True
                failure = Failure("timeout", f"{self.spec.name} did not answer within {timeout:g} s")
            else:
                failure = Failure("worker_raised", f"{type(error).__name__}: {_message(error)}")
        return Observation(status, None, clock.elapsed_s, error=failure, episode=episode), failed

    async def _retrying(self, attempt: Callable[[], Awaitable[T]]) -> T:
        async for trial in stamina.retry_context(
            on=self._backoff, attempts=self._retries + 1, wait_initial=0.5, wait_max=20.0, timeout=None
        ):
            with trial:
                if trial.num > 1:
                    await self._pace.admit()
                try:
                    return await attempt()
                except WorkerFault as fault:
                    self._keep_waiting_time(fault)
                    fault.args = (_message(fault),)  # stamina logs what it catches
                    raise
        raise AssertionError("stamina re-raises the last fault")

    def _keep_waiting_time(self, fault: WorkerFault) -> None:
        """Hold back every call of this worker for as long as its peer has asked, where that is less than a time-out."""
        if fault.retry_after_s is not None and fault.retry_after_s < self.spec.timeout_s:
            self._pace.pause(fault.retry_after_s)

    def _backoff(self, error: Exception) -> bool | float:
        """Tell stamina whether to retry, or how many seconds the peer asked to wait."""
        if not (isinstance(error, WorkerFault) and error.retryable):
            return False
        if error.retry_after_s is None:
            return True
        return error.retry_after_s if error.retry_after_s < self.spec.timeout_s else False

    def _accept(self, reply: Reply, latency_s: float) -> Observation:
        """Check, clean and price a reply; its cost counts even when the value is refused."""
        allowed = self.spec.max_output_chars
        status, code, value = Status.EXEC_ERR, "invalid_response", None
        try:
            value = reply.value
            if not isinstance(value, str) or len(value) <= allowed:  # cleaning 50 MB would hold up the loop
                value = redact_value(storable(value))
                if self._output_checker is not None:
                    value = self._output_checker.check(value)
            size = len(value) if isinstance(value, str) else len(as_text(value))
            if size <= allowed:
                failure = None
            else:
                code, sentence = "output_too_large", f"returned {size:,} characters; {allowed:,} are allowed."
                failure = Failure(code, f"{sentence} Ask for less.")
        except BadOutput as error:
            status = Status.PARSE_ERR
            failure = Failure("bad_output", f"not what {self.spec.name} must return: {error}"[:MAX_ERROR_CHARS])
        except (ValueError, RecursionError) as error:
            failure = Failure(code, f"not a JSON value: {_message(error)}")
        prompt = None if reply.prompt is None else redact(clean_text(reply.prompt))
        usage = reply.usage if self._has_tools else self._add_price(reply.usage)  # priced within its own episode
        if failure is not None:
            return Observation(status, None, latency_s, usage, failure, prompt, reply.episode, context=reply.context)
        return Observation(Status.OK, value, latency_s, usage, None, prompt, reply.episode, context=reply.context)

    def _add_price(self, usage: Usage) -> Usage:
        spec = self.spec
        if not spec.has_price:
            return usage
        cost = (usage.tokens_in * spec.price_in + usage.tokens_out * spec.price_out) / 1e6 + spec.price_call
        return Usage(usage.tokens_in, usage.tokens_out, usage.cost + cost)


def _message(error: BaseException) -> str:
    return clean_text(redact(str(error)))[:MAX_ERROR_CHARS]


def _is_cancelled() -> bool:
    """Whether this call was cancelled from outside, and not a task of the worker's own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _instruction_parameter(schema: Mapping[str, JsonValue]) -> str | None:
    """Return the only required parameter if it is a string: a plan may write `instruction` for it."""
    required = schema.get("required", [])
    properties = schema.get("properties", {})
    if not (isinstance(required, list) and len(required) == 1 and isinstance(properties, dict)):
        return None
    name = str(required[0])
    rule = properties.get(name)
    return name if isinstance(rule, dict) and rule.get("type") == "string" else None
