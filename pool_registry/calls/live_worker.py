"""One worker of an open pool: every call ends in one of the four statuses, whatever the adapter does.

Whatever it does — raise, hang, return 50 MB or something that is not JSON — becomes an observation. What waits, refuses
and tries again on the way to the adapter is listed in layers.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pool_registry.actions import Failure, JsonValue, Observation, Status, Usage, as_text, clean_text, storable
from pool_registry.calls.layers import Work, stack_work_layers
from pool_registry.calls.worker_state import MAX_ERROR_CHARS, OnStart, WorkerState, clean_message, ends_the_task
from pool_registry.errors import BadCall, WorkerFault
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
from pool_registry.schemas.output_check import BadOutput
from pool_registry.secrets import redact, redact_value
from pool_registry.worker import Call, Reply, Worker, WorkerSpec

__all__ = ["LiveWorker", "OnStart"]


class LiveWorker(WorkerState):
    """One worker of an open pool, with the layers around its adapter."""

    def __init__(self, spec: WorkerSpec, worker: Worker[Any]) -> None:
        super().__init__(spec, worker)
        self._make_call = stack_work_layers(self)
        self._make_completion = stack_work_layers(self, completions=True)

    async def call(self, call: Call, on_start: OnStart | None = None) -> Observation:
        """Make the call by way of its layers; whatever comes of it is an observation."""
        work = CallWork(self, call, on_start)
        try:
            return self._accept(await self._make_call(work), work.elapsed_s)
        except BaseException as error:
            if ends_the_task(error):
                raise
            return _observe_error(error, work.elapsed_s)  # an adapter's bug must not sink the round

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
        work = CompletionWork(self, model, messages, CompletionOptions(tools, limit or None, draw, grammar))
        try:
            completion: Completion = await self._make_completion(work)
        except TimeoutError:
            raise WorkerFault("timeout", f"{self.spec.name} did not answer in time") from None
        return replace(completion, text=redact(completion.text), usage=self.add_price(completion.usage))

    def _accept(self, reply: Reply, latency_s: float) -> Observation:
        """Check, clean and price a reply; its cost counts even when the value is refused."""
        allowed = self.spec.max_output_chars
        status, code, value = Status.EXEC_ERR, "invalid_response", None
        try:
            value = reply.value
            if not isinstance(value, str) or len(value) <= allowed:  # cleaning 50 MB would hold up the loop
                value = redact_value(storable(value))
                if self.output_checker is not None:
                    value = self.output_checker.check(value)
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
            failure = Failure(code, f"not a JSON value: {clean_message(error)}")
        prompt = None if reply.prompt is None else redact(clean_text(reply.prompt))
        usage = reply.usage if self.has_tools else self.add_price(reply.usage)  # priced within its own episode
        if failure is not None:
            return Observation(status, None, latency_s, usage, failure, prompt, reply.episode, context=reply.context)
        return Observation(Status.OK, value, latency_s, usage, None, prompt, reply.episode, context=reply.context)


class CallWork(Work):
    """A call, as the adapter takes it."""

    __slots__ = ("adapter", "call")

    def __init__(self, worker: LiveWorker, call: Call, on_start: OnStart | None) -> None:
        super().__init__(worker, on_start)
        self.adapter = worker.worker
        self.call = call

    def check(self) -> None:
        self.adapter.check_call(self.call)

    def estimate(self) -> Usage:
        return self.adapter.estimate_usage(self.call)

    def attempt(self) -> Awaitable[Reply]:
        return self.adapter.call(self.call)


class CompletionWork(Work):
    """A text of the model behind a worker, as an orchestrator asks for it."""

    __slots__ = ("messages", "model", "options")

    def __init__(
        self, worker: LiveWorker, model: LanguageModel, messages: Sequence[Message], options: CompletionOptions
    ) -> None:
        super().__init__(worker)
        self.model, self.messages, self.options = model, messages, options

    def check(self) -> None:
        """Raise WorkerFault when a prompt does not fit into the model's context."""
        spec, reply_tokens = self.worker.spec, self.options.max_tokens or 0
        allowed = spec.context_tokens
        sent = self.estimate().tokens_in if allowed is not None else 0
        if allowed is not None and sent + reply_tokens > allowed:
            sentence = (
                f"{spec.name} takes {allowed:,} tokens; this prompt has about {sent:,} and the reply may have "
                f"{reply_tokens:,}. Show fewer workers (the pool's limit max_shown), or choose a larger model"
            )
            raise WorkerFault(TOO_LONG, sentence)

    def estimate(self) -> Usage:
        return estimate_completion(self.messages, self.options.tools, self.options.max_tokens or 0)

    def attempt(self) -> Awaitable[Completion]:
        return self.model.complete(self.messages, self.options)


def _observe_error(error: BaseException, latency_s: float) -> Observation:
    """What an adapter or a layer raised, as the end of the call."""
    if not isinstance(error, WorkerFault):
        failure = Failure("worker_raised", f"{type(error).__name__}: {clean_message(error)}")
        return Observation(Status.EXEC_ERR, None, latency_s, error=failure)
    is_timeout = error.code == "timeout"
    status = Status.TIMEOUT if is_timeout else Status.EXEC_ERR
    if isinstance(error, BadCall):
        status = Status.PARSE_ERR
    return Observation(status, None, latency_s, error=Failure(error.code, clean_message(error)), episode=error.episode)
