"""What a client may ask of the served model: the requests of both APIs, checked.

Nothing is ignored in silence. A parameter that the pool cannot honour is refused with the reason, unless it
stands at the value that means what happens anyway; a parameter that nobody knows is refused, too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError
from starlette.requests import Request

from pool_registry.kinds import field_problems
from pool_registry.pool import Limits
from studio.model_server.conversation import as_query, chat_messages, response_items
from studio.model_server.errors import ApiError, unsupported, wrong

MAX_BODY_BYTES = 4 * 2**20

_SAMPLING = "each worker of the pool has its own sampling settings; leave it out, or set it on the Pool page"
_TOOLS = "the pool's own workers are its tools, and the orchestrator chooses among them; leave it out"
_FORMAT = "the answer is free text; give a worker of the pool an output schema instead"
_STATELESS = "nothing is kept between requests; send the whole conversation"
# parameter -> (the values at which it changes nothing, why others are refused)
NEUTRAL: dict[str, tuple[tuple[object, ...], str]] = {
    "n": ((1,), "one episode gives one answer; send the request several times for several"),
    "temperature": ((1,), _SAMPLING),
    "top_p": ((1,), _SAMPLING),
    "seed": ((), _SAMPLING),
    "presence_penalty": ((0,), _SAMPLING),
    "frequency_penalty": ((0,), _SAMPLING),
    "logit_bias": (({},), _SAMPLING),
    "stop": (([],), _SAMPLING),
    "reasoning_effort": ((), _SAMPLING),
    "verbosity": ((), _SAMPLING),
    "tools": (([],), _TOOLS),
    "tool_choice": (("none", "auto"), _TOOLS),
    "functions": (([],), _TOOLS),
    "function_call": (("none", "auto"), _TOOLS),
    "parallel_tool_calls": ((True, False), _TOOLS),
    "max_tool_calls": ((), _TOOLS),
    "web_search_options": ((), _TOOLS),
    "response_format": (({"type": "text"},), _FORMAT),
    "text": (({}, {"format": {"type": "text"}}), _FORMAT),
    "modalities": ((["text"],), "the answer is text"),
    "audio": ((), "the answer is text"),
    "prediction": ((), "the answer of an episode cannot be predicted"),
    "logprobs": ((False,), "an episode has no token probabilities"),
    "top_logprobs": ((0,), "an episode has no token probabilities"),
    "store": ((False,), "use the trace in the header x-podium-trace, which the studio keeps"),
    "previous_response_id": ((), _STATELESS),
    "conversation": ((), _STATELESS),
    "prompt": ((), "prompt templates are not kept here; send the text"),
    "background": ((False,), "requests are answered while the client waits"),
    "include": (([], ["reasoning.encrypted_content"]), "there is nothing more to include"),
    "truncation": (("disabled",), "long conversations are not cut; send less"),
    "service_tier": (("auto", "default"), "there is one tier"),
}
# Labels for the provider's own bookkeeping: they never change an answer.
LABELS = {"user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"}

Asked = TypeVar("Asked", bound="_Common")


class RequestLimits(BaseModel):
    """Limits for one episode (`podium` in the request, options of the server). They only ever tighten the pool's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0)
    deadline_s: float | None = Field(default=None, gt=0)
    max_steps: int | None = Field(default=None, ge=1)


def tightened(limits: Limits, *asked: RequestLimits) -> Limits:
    """The smallest of each limit."""
    smallest: dict[str, float] = {}
    for one in (limits, *asked):
        for name in RequestLimits.model_fields:
            value = getattr(one, name)
            if value is not None:
                smallest[name] = min(value, smallest.get(name, value))
    return limits.model_copy(update=smallest)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A checked request: what to run, within which limits, and how to send it back."""

    query: str
    limits: RequestLimits
    stream: bool
    include_usage: bool = False


class _Common(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    model: str
    stream: StrictBool | None = None
    podium: RequestLimits = RequestLimits()


class StreamOptions(BaseModel):
    include_usage: bool = False
    include_obfuscation: bool | None = None


class ChatRequest(_Common):
    messages: Sequence[object] = Field(min_length=1)
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)

    def wanted(self) -> Wanted:
        """Raises ApiError naming what cannot be used."""
        tokens = [each for each in (self.max_tokens, self.max_completion_tokens) if each is not None]
        limits = _with_tokens(self.podium, min(tokens, default=None))
        usage = self.stream_options is not None and self.stream_options.include_usage
        query = as_query(chat_messages(self.messages), "messages")
        return Wanted(query, limits, bool(self.stream), usage)


class ResponsesRequest(_Common):
    input: str | Sequence[object] = Field(min_length=1)
    instructions: str | None = None
    stream_options: StreamOptions | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    reasoning: dict[str, Any] | None = None

    def wanted(self) -> Wanted:
        """Raises ApiError naming what cannot be used."""
        if self.reasoning and self.reasoning.get("effort") is not None:
            raise unsupported("reasoning.effort", _SAMPLING)
        limits = _with_tokens(self.podium, self.max_output_tokens)
        return Wanted(as_query(response_items(self.input, self.instructions), "input"), limits, bool(self.stream))


async def read(request: Request, kind: type[Asked], model: str) -> Asked:
    """The checked request. Raises ApiError: too large, no JSON, a wrong or unsupported parameter, another model."""
    asked = _valid(kind, _parsed(await _body(request)))
    for name, value in (asked.model_extra or {}).items():
        _check_extra(name, value)
    if asked.model != model:
        raise unknown_model(asked.model, model)
    return asked


def unknown_model(asked: str, model: str) -> ApiError:
    return ApiError(404, f"there is no model {asked[:80]!r} here; use {model!r}", "model_not_found", "model")


async def _body(request: Request) -> bytes:
    too_large = ApiError(413, f"the request is larger than {MAX_BODY_BYTES:,} bytes", "request_too_large")
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > MAX_BODY_BYTES:
        raise too_large
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise too_large
    return bytes(body)


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"the body is not JSON: {error}", "invalid_json") from error


def _valid(kind: type[Asked], document: object) -> Asked:
    if not isinstance(document, dict):
        raise ApiError(400, "the body must be a JSON object", "invalid_json")
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        where, what = field_problems(error)[0]
        raise wrong(where, f"{where}: {what}") from error


def _check_extra(name: str, value: object) -> None:
    if value is None or name in LABELS:
        return
    if name not in NEUTRAL:
        raise ApiError(400, f"unknown parameter {name[:80]!r}", "unknown_parameter", name[:80])
    allowed, why = NEUTRAL[name]
    if not any(type(value) in (type(each), float) and value == each for each in allowed):
        raise unsupported(name, f"{name} is not supported: {why}")


def _with_tokens(limits: RequestLimits, tokens: int | None) -> RequestLimits:
    if tokens is None:
        return limits
    return limits.model_copy(update={"max_tokens": min(tokens, limits.max_tokens or tokens)})
