"""Parses and checks the requests of both APIs.

A parameter is never refused for being there: what cannot be honoured is accepted and reported (parameters.py). A value
of the wrong type is refused with the field's name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StrictBool, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from orchestrator.engine.events import FollowUp
from pool_registry.actions import JsonValue
from pool_registry.calls.run_limits import NO_RUN_LIMITS, RunLimits, build_run_limits
from pool_registry.deployment_mode import ModeName
from pool_registry.kinds import field_problems
from pool_registry.pool import Limits
from studio.access.body_limit import CONVERSATION, BodyTooLarge, read_limited
from studio.model_server.answer_form import ANY_OBJECT, AnswerForm
from studio.model_server.client_tools import ClientTool, read_client_tool
from studio.model_server.conversation import (
    ConversationMessage,
    Exchange,
    Question,
    check_count,
    explain_left_out,
    parse_input,
    parse_messages,
    read_outputs,
    read_question,
)
from studio.model_server.errors import TOO_LARGE, ApiError, invalid_value
from studio.model_server.parameters import SamplingFields, explain_ignored

MAX_STOPS = 16
MAX_NAMES = 1000  # of workers, in the limits of one request
MAX_TOOLS = 1000  # the schema of each is checked while other clients wait

RequestT = TypeVar("RequestT", bound="RequestBase")


class RequestLimits(BaseModel):
    """Limits for one episode (`podium` in the request, options of the server). They only ever tighten the pool's.

    `max_total_tokens` counts the tokens of all turns and workers together.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    max_total_tokens: int | None = Field(
        default=None, ge=1, validation_alias=AliasChoices("max_total_tokens", "max_tokens")
    )
    max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    deadline_s: float | None = Field(default=None, gt=0)
    max_steps: int | None = Field(default=None, ge=1)


class RunOptions(RequestLimits):
    """What a request says under `podium`: its limits, a deployment mode, which only ever tightens the server's, workers
    that are not called, who may see the outputs of which (RunLimits), and whether the pool's finalizer may write the
    answer, and whether the last message is read as a follow-up of those before it."""

    mode: ModeName | None = None
    finalizer: StrictBool = True
    follow_ups: StrictBool = True
    without_workers: tuple[str, ...] = Field(default=(), max_length=MAX_NAMES)
    seen_by: dict[str, tuple[str, ...]] = Field(default_factory=dict, max_length=MAX_NAMES)

    @property
    def limits(self) -> RequestLimits:
        return RequestLimits(**self.model_dump(include=set(RequestLimits.model_fields)))

    @property
    def run_limits(self) -> RunLimits:
        return build_run_limits(self.without_workers, self.max_cost, self.seen_by)


_LIMIT_NAMES = {"max_total_tokens": "max_tokens"}  # ours -> the pool's


def tighten_limits(limits: Limits, *others: RequestLimits) -> Limits:
    """Take the smallest value of each limit."""
    smallest: dict[str, float] = {}
    for name in RequestLimits.model_fields:
        own = _LIMIT_NAMES.get(name, name)
        values = [getattr(limits, own), *(getattr(other, name) for other in others)]
        given = [value for value in values if value is not None]
        if given:
            smallest[own] = min(given)
    return limits.model_copy(update=smallest)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The client's tools of one request. `demanded`: one of them must be called before the answer; `parallel`: several
    calls may be handed over together."""

    tools: tuple[ClientTool, ...] = ()
    demanded: bool = False
    parallel: bool = True


@dataclass(frozen=True, slots=True)
class EpisodeRequest:
    """A checked request of either API.

    `question` is the last message alone, `outputs` those of the client's tools that it brings, by the calls' ids.
    `settings` are for the pool's agents; `max_answer_tokens`, `stop` and `form` concern the answer alone. `ignored`
    says what had no effect, and why, `unread` what the question holds in place of text. `record` is off
    where nothing of it may be stored; `keep` and `background` belong to the Responses API. `before` are the
    exchanges before the question and `rules` the conversation's system messages; with `follow_ups` it is read as a
    follow-up (chat_follow_ups.py): `follow_up` says how it was, `readings` what it may mean where that has to be asked.
    """

    query: str
    limits: RequestLimits = field(default_factory=RequestLimits)
    stream: bool = False
    include_usage: bool = False
    question: str = ""
    messages: tuple[ConversationMessage, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, JsonValue] = field(default_factory=dict)
    stop: tuple[str, ...] = ()
    max_answer_tokens: int | None = None
    form: AnswerForm | None = None
    tools: ToolUse = field(default_factory=ToolUse)
    ignored: Mapping[str, str] = field(default_factory=dict)
    record: bool = True
    keep: bool = False
    background: bool = False
    mode: ModeName | None = None
    finalizer: bool = True
    for_person: bool = True  # the answer is put into words
    run_limits: RunLimits = NO_RUN_LIMITS
    unread: str = ""
    before: tuple[Exchange, ...] = ()
    rules: tuple[str, ...] = ()
    follow_ups: bool = False
    follow_up: FollowUp | None = None
    readings: tuple[str, ...] = ()


class RequestBase(SamplingFields):
    model_config = ConfigDict(extra="allow", frozen=True)

    model: str
    stream: StrictBool | None = None
    podium: RunOptions = RunOptions()
    max_total_tokens: int | None = Field(default=None, ge=1)
    tools: Sequence[object] | None = None
    tool_choice: object = None
    parallel_tool_calls: StrictBool | None = None
    metadata: dict[str, Any] | None = None
    user: str | None = None
    store: StrictBool | None = None

    @property
    def _record(self) -> bool:
        return self.store is not False

    def _limits(self) -> RequestLimits:
        total = [count for count in (self.max_total_tokens, self.podium.max_total_tokens) if count is not None]
        return self.podium.limits.model_copy(update={"max_total_tokens": min(total, default=None)})

    def _draft(self, question: Question, messages: Sequence[ConversationMessage]) -> EpisodeRequest:
        """What the requests of every API say alike."""
        return EpisodeRequest(
            query=question.query,
            limits=self._limits(),
            mode=self.podium.mode,
            finalizer=self.podium.finalizer,
            run_limits=self.podium.run_limits,
            stream=bool(self.stream),
            question=question.text,
            messages=tuple(messages),
            unread=question.unread,
            settings=self.list_settings(),
            record=self._record,
            before=question.before,
            rules=question.rules,
            follow_ups=self.podium.follow_ups and question.is_last and not question.unread,
        )


class StreamOptions(BaseModel):
    include_usage: bool = False
    include_obfuscation: bool | None = None


class ChatRequest(RequestBase):
    messages: Sequence[object] = Field(min_length=1)
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    stop: str | Sequence[str] | None = Field(default=None, max_length=1000)
    response_format: dict[str, Any] | None = None

    def episode_request(self) -> EpisodeRequest:
        """Check the request's content. Raises ApiError naming what cannot be used."""
        tokens = [count for count in (self.max_tokens, self.max_completion_tokens) if count is not None]
        messages = parse_messages(self.messages)
        question = read_question(messages, "messages")
        ignored = explain_ignored(self.model_extra or {}) | explain_left_out(messages)
        form = read_form(self.response_format, "response_format", ignored)
        return replace(
            self._draft(question, messages),
            include_usage=self.stream_options is not None and self.stream_options.include_usage,
            outputs=read_outputs(messages),
            stop=read_stops(self.stop),
            max_answer_tokens=min(tokens, default=None),
            form=form,
            tools=read_tool_use(self.tools, self.tool_choice, self.parallel_tool_calls, ignored),
            ignored=ignored,
        )


class ResponsesRequest(RequestBase):
    input: str | Sequence[object] = Field(default="", validate_default=False)
    instructions: str | None = None
    stream_options: StreamOptions | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    reasoning: dict[str, Any] | None = None
    text: dict[str, Any] | None = None
    background: StrictBool | None = None
    previous_response_id: str | None = None

    def episode_request(self, earlier: Sequence[ConversationMessage] = ()) -> EpisodeRequest:
        """Check the request's content; `earlier` is the conversation of the response before. Raises ApiError naming
        what cannot be used."""
        new = parse_input(self.input, None)
        instructions = parse_input([], self.instructions)
        messages = [*instructions, *earlier, *new]
        check_count(messages, "input")
        question = read_question(messages, "input")
        ignored = explain_ignored(self.model_extra or {}) | explain_left_out(new)
        effort = (self.reasoning or {}).get("effort")
        settings = {**self.list_settings(), **({"reasoning_effort": effort} if effort else {})}
        if verbosity := (self.text or {}).get("verbosity"):
            settings["verbosity"] = verbosity
        return replace(
            self._draft(question, [*earlier, *new]),
            outputs=read_outputs(new),
            settings=settings,
            max_answer_tokens=self.max_output_tokens,
            form=read_form((self.text or {}).get("format"), "text.format", ignored),
            tools=read_tool_use(self.tools, self.tool_choice, self.parallel_tool_calls, ignored),
            ignored=ignored,
            keep=self._record,
            background=bool(self.background),
        )


def read_form(wanted: object, where: str, ignored: dict[str, str]) -> AnswerForm | None:
    """The form of the answer that a request names; None for plain text. Raises ApiError for a schema that is none."""
    if wanted is None:
        return None
    kind = wanted.get("type") if isinstance(wanted, Mapping) else None
    if not isinstance(wanted, Mapping) or not isinstance(kind, str):
        raise invalid_value(where, f"{where} must be an object with a type")
    if kind == "json_object":
        return AnswerForm(ANY_OBJECT)
    if kind != "json_schema":
        if kind != "text":
            ignored[where] = f"the type {kind[:40]!r} is not known here; use text, json_object or json_schema"
        return None
    inner = wanted.get("json_schema", wanted)  # the Responses API has the schema one level higher
    schema = inner.get("schema") if isinstance(inner, Mapping) else None
    if not isinstance(schema, Mapping):
        raise invalid_value(where, f"{where} needs a schema, as an object")
    try:
        return AnswerForm(schema)
    except ValueError as error:
        raise invalid_value(where, f"{where}: {error}") from error


def read_tool_use(
    tools: Sequence[object] | None, choice: object, parallel: bool | None, ignored: dict[str, str]
) -> ToolUse:
    """The client's tools, and how they may be used. Raises ApiError where one is chosen that is not among them."""
    if tools is not None and len(tools) > MAX_TOOLS:
        raise ApiError(413, f"there are {len(tools):,} tools; {MAX_TOOLS:,} can be offered", TOO_LARGE, "tools")
    functions = [tool for index, item in enumerate(tools or ()) if (tool := _read_tool(item, index, ignored))]
    names, demanded = _read_choice(choice, ignored)
    if names is not None:
        offered = {tool.name for tool in functions}
        unknown = next((name for name in names if name not in offered), None)
        if unknown is not None:
            raise invalid_value("tool_choice", f"tool_choice names {unknown[:80]!r}, which is not among the tools")
        chosen = set(names)
        functions = [tool for tool in functions if tool.name in chosen]
    return ToolUse(tuple(functions), demanded and bool(functions), parallel is not False)


def _read_tool(item: object, index: int, ignored: dict[str, str]) -> ClientTool | None:
    """A tool that can be offered, or None; what was changed or left out is noted: one odd tool costs no request."""
    where = f"tools[{index}]"
    kind = item.get("type", "function") if isinstance(item, Mapping) else None
    if isinstance(item, Mapping) and kind != "function":
        ignored[where] = f"{str(kind)[:40]} is not served here; the pool's own workers do such things"
        return None
    function = item.get("function", item) if isinstance(item, Mapping) else None  # one level higher in Responses
    try:
        tool, notes = read_client_tool(function if isinstance(function, Mapping) else {})
        AnswerForm(tool.parameters)
    except ValueError as error:
        ignored[where] = f"this tool is left out: {error}"
        return None
    if notes:
        ignored[f"{where}.parameters"] = "; ".join(notes)
    return tool


def _read_choice(choice: object, ignored: dict[str, str]) -> tuple[list[str] | None, bool]:
    """The names of the tools that may be called (None for all), and whether one must be."""
    if choice is None or choice == "auto":
        return None, False
    if choice == "none":
        return [], False
    if choice in ("required", "any"):
        return None, True
    kind = choice.get("type") if isinstance(choice, Mapping) else None
    if isinstance(choice, Mapping) and kind == "function":
        function = choice.get("function", choice)
        return [str(function.get("name") if isinstance(function, Mapping) else function)], True
    if isinstance(choice, Mapping) and kind == "allowed_tools":
        allowed = choice.get("allowed_tools", choice)
        listed = allowed.get("tools", []) if isinstance(allowed, Mapping) else []
        names = [item.get("function", item).get("name") for item in listed if isinstance(item, Mapping)]
        mode = allowed.get("mode") if isinstance(allowed, Mapping) else None
        return [str(name) for name in names if name], mode == "required"
    ignored["tool_choice"] = "not known here; use none, auto, required or the name of a function"
    return None, False


def read_stops(stop: str | Sequence[str] | None) -> tuple[str, ...]:
    stops = [stop] if isinstance(stop, str) else list(stop or ())
    return tuple(text for text in stops[:MAX_STOPS] if text)


async def read_request(http: Request, kind: type[RequestT], model: str) -> RequestT:
    """Read and check a request, in a thread: others go on while a large one is parsed.

    Raises ApiError when it is too large or not JSON, has a value of the wrong type, or names another model.
    """
    try:
        body = await read_limited(http, CONVERSATION)
    except BodyTooLarge as error:
        raise ApiError(413, str(error), TOO_LARGE) from error
    request = await run_in_threadpool(_parse, kind, body)
    if request.model != model:
        raise unknown_model(request.model, model)
    return request


def unknown_model(name: str, model: str) -> ApiError:
    return ApiError(404, f"there is no model {name[:80]!r} here; use {model!r}", "model_not_found", "model")


def _parse(kind: type[RequestT], body: bytes) -> RequestT:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"the body is not JSON: {error}", "invalid_json") from error
    return check_document(kind, document)


def check_document(kind: type[RequestT], document: object) -> RequestT:
    """A request from its JSON. Raises ApiError naming the field that cannot be used."""
    if not isinstance(document, dict):
        raise ApiError(400, "the body must be a JSON object", "invalid_json")
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        where, what = field_problems(error)[0]
        raise invalid_value(where, f"{where}: {what}") from error
