"""Parses and checks the requests of both APIs.

No parameter is ignored silently. One that the pool cannot honour is refused with the reason, unless its value asks
for what happens anyway; an unknown parameter is refused, too.
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
from studio.model_server.conversation import build_query, parse_input, parse_messages
from studio.model_server.errors import ApiError, invalid_value, not_supported

MAX_BODY_BYTES = 4 * 2**20

_SAMPLING = "each worker of the pool has its own sampling settings; leave it out, or set it on the Pool page"
_TOOLS = "the pool's own workers are its tools, and the orchestrator chooses among them; leave it out"
_FORMAT = "the answer is free text; give a worker of the pool an output schema instead"
_STATELESS = "nothing is kept between requests; send the whole conversation"
# parameter -> (values that change nothing, why other values are refused)
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

RequestT = TypeVar("RequestT", bound="_RequestBase")


class RequestLimits(BaseModel):
    """Limits for one episode (`podium` in the request, options of the server). They only ever tighten the pool's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0)
    deadline_s: float | None = Field(default=None, gt=0)
    max_steps: int | None = Field(default=None, ge=1)


def tighten_limits(limits: Limits, *others: RequestLimits) -> Limits:
    """Take the smallest value of each limit."""
    smallest: dict[str, float] = {}
    for source in (limits, *others):
        for name in RequestLimits.model_fields:
            value = getattr(source, name)
            if value is not None:
                smallest[name] = min(value, smallest.get(name, value))
    return limits.model_copy(update=smallest)


@dataclass(frozen=True, slots=True)
class EpisodeRequest:
    """A checked request of either API: the query, its limits, and how to send the result."""

    query: str
    limits: RequestLimits
    stream: bool
    include_usage: bool = False


class _RequestBase(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    model: str
    stream: StrictBool | None = None
    podium: RequestLimits = RequestLimits()


class StreamOptions(BaseModel):
    include_usage: bool = False
    include_obfuscation: bool | None = None


class ChatRequest(_RequestBase):
    messages: Sequence[object] = Field(min_length=1)
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)

    def episode_request(self) -> EpisodeRequest:
        """Check the request's content. Raises ApiError naming what cannot be used."""
        tokens = [count for count in (self.max_tokens, self.max_completion_tokens) if count is not None]
        limits = _with_tokens(self.podium, min(tokens, default=None))
        usage = self.stream_options is not None and self.stream_options.include_usage
        query = build_query(parse_messages(self.messages), "messages")
        return EpisodeRequest(query, limits, bool(self.stream), usage)


class ResponsesRequest(_RequestBase):
    input: str | Sequence[object] = Field(min_length=1)
    instructions: str | None = None
    stream_options: StreamOptions | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    reasoning: dict[str, Any] | None = None

    def episode_request(self) -> EpisodeRequest:
        """Check the request's content. Raises ApiError naming what cannot be used."""
        if self.reasoning and self.reasoning.get("effort") is not None:
            raise not_supported("reasoning.effort", _SAMPLING)
        limits = _with_tokens(self.podium, self.max_output_tokens)
        return EpisodeRequest(
            build_query(parse_input(self.input, self.instructions), "input"), limits, bool(self.stream)
        )


async def read_request(http: Request, kind: type[RequestT], model: str) -> RequestT:
    """Read and check a request.

    Raises ApiError when it is too large or not JSON, has a wrong or unsupported parameter, or names another model.
    """
    request = _validate(kind, _parse_json(await _read_body(http)))
    for name, value in (request.model_extra or {}).items():
        _check_extra(name, value)
    if request.model != model:
        raise unknown_model(request.model, model)
    return request


def unknown_model(name: str, model: str) -> ApiError:
    return ApiError(404, f"there is no model {name[:80]!r} here; use {model!r}", "model_not_found", "model")


async def _read_body(request: Request) -> bytes:
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


def _parse_json(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"the body is not JSON: {error}", "invalid_json") from error


def _validate(kind: type[RequestT], document: object) -> RequestT:
    if not isinstance(document, dict):
        raise ApiError(400, "the body must be a JSON object", "invalid_json")
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        where, what = field_problems(error)[0]
        raise invalid_value(where, f"{where}: {what}") from error


def _check_extra(name: str, value: object) -> None:
    if value is None or name in LABELS:
        return
    if name not in NEUTRAL:
        raise ApiError(400, f"unknown parameter {name[:80]!r}", "unknown_parameter", name[:80])
    allowed, why = NEUTRAL[name]
    if not any(type(value) in (type(neutral), float) and value == neutral for neutral in allowed):
        raise not_supported(name, f"{name} is not supported: {why}")


def _with_tokens(limits: RequestLimits, tokens: int | None) -> RequestLimits:
    if tokens is None:
        return limits
    return limits.model_copy(update={"max_tokens": min(tokens, limits.max_tokens or tokens)})
