"""Kind `chat`: any OpenAI-compatible endpoint (`/chat/completions`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field

from pool_registry.actions import JsonValue, Usage, clean_text
from pool_registry.errors import WorkerFault
from pool_registry.language_models import endpoints
from pool_registry.language_models.agent import DEFAULT_ROLE, LISTED, OWN_TOOLS, Agent, AgentConfig
from pool_registry.language_models.completion import (
    DEFAULT_OPTIONS,
    Completion,
    CompletionOptions,
    Grammar,
    Message,
    prompt_text,
)
from pool_registry.language_models.skills import FOLDERS, MAX_SKILLS
from pool_registry.network import http_client, provider_errors
from pool_registry.network.address_policy import ALLOW_PRIVATE, AddressPolicy, is_own_host
from pool_registry.network.http_values import KeyReference, ServerUrl

MAX_TOKENS = 10**9  # per call; who counts more is lying
MAX_NOTE_CHARS = 500


class ChatConfig(AgentConfig):
    base_url: ServerUrl = Field(default="http://127.0.0.1:8000/v1", description="Up to and without /chat/completions.")
    model: str = Field(min_length=1, description="The model's name at that endpoint.")
    api_key: KeyReference = Field(default="", description="env:NAME or keyring:NAME; the key itself is never stored.")
    role: str = Field(default=DEFAULT_ROLE, description="System prompt.", max_length=20_000)
    temperature: float = Field(default=0.7, ge=0, le=2)
    max_tokens: int = Field(default=1024, ge=1, le=100_000)
    max_visible_chars: int = Field(
        default=20_000, ge=200, description="How much of the outputs it may see goes into its prompt."
    )
    token_limit: Literal["max_tokens", "max_completion_tokens"] = Field(
        default="max_tokens", description="What the endpoint calls the limit; OpenAI's newer models want the second."
    )
    grammars: Literal["json_schema", "vllm", "off"] = Field(
        default="json_schema",
        description="How a turn is held to the pool's grammar, where that is asked for: json_schema sends a "
        "response_format; vllm sends the grammar itself, for a vLLM server with backend guidance.",
    )
    tools: tuple[str, ...] = Field(default=(), max_length=64, description=OWN_TOOLS, json_schema_extra=LISTED)
    skills: tuple[str, ...] = Field(default=(), max_length=MAX_SKILLS, description=FOLDERS, json_schema_extra=LISTED)
    extra: dict[str, Any] = Field(
        default_factory=dict, description="More fields of the request body; null leaves one out, also temperature."
    )
    allow_private: bool = Field(default=False, description=ALLOW_PRIVATE)

    @property
    def reach(self) -> AddressPolicy:
        return AddressPolicy(private=self.allow_private, typed=True)


class Chat(Agent[ChatConfig]):
    label = "Chat model"
    summary = "Any OpenAI-compatible endpoint."
    icon = "M4 5h16v11H9l-5 4z M8 9h8 M8 12h5"
    Config = ChatConfig
    remote = True
    sample = {"instruction": "Say hello in one word."}

    @classmethod
    def may_charge(cls, config: ChatConfig) -> bool:
        return not is_own_host(urlsplit(config.base_url).hostname or "")

    async def complete(self, messages: Sequence[Message], options: CompletionOptions = DEFAULT_OPTIONS) -> Completion:
        """Ask the endpoint. A seed is not sent: some refuse a request that has one. Where the endpoint refuses the
        grammar, it is asked without, and the completion's note says so. Raises WorkerFault."""
        config = self.config
        body: dict[str, JsonValue] = {
            "model": config.model,
            "messages": [message.write_structured() for message in messages],
            "temperature": config.temperature if options.draw is None else options.draw.temperature,
            config.token_limit: options.max_tokens or config.max_tokens,
            **config.extra,
        }
        body = {name: value for name, value in body.items() if value is not None}
        if options.tools:
            body["tools"] = list(options.tools)
        if options.grammar is None:
            return _completion(await self._ask(body), prompt_text(messages))
        held = _write_grammar(options.grammar, config.grammars)
        if not held:
            note = f"{self.spec.name} takes no such grammar: this reply was not held to one"
            return replace(_completion(await self._ask(body), prompt_text(messages)), note=note)
        try:
            return _completion(await self._ask({**body, **held}), prompt_text(messages))
        except WorkerFault as fault:
            if fault.code != "bad_request":
                raise
            note = f"{self.spec.name} refused the grammar of this reply, which was not held to it: {fault}"
            return replace(_completion(await self._ask(body), prompt_text(messages)), note=note[:MAX_NOTE_CHARS])

    async def _ask(self, body: dict[str, JsonValue]) -> Any:
        """Send one request. Raises WorkerFault, also for a failure inside an answer."""
        url = f"{self.config.base_url}/chat/completions"
        headers = endpoints.key_header(self.config.api_key)
        answer = await http_client.ask_json("POST", url, headers, self.spec.timeout_s, body, self.config.reach)
        fault = provider_errors.fault_within(urlsplit(url).netloc, url, answer)
        if fault is not None:
            raise fault
        return answer

    async def check(self) -> str:
        models = await endpoints.models(self.config.base_url, self.config.api_key, self.config.reach)
        if models and self.config.model not in models:
            raise WorkerFault(
                "not_found", f"the endpoint has no model {self.config.model!r}; it has: {', '.join(models[:8])}"
            )
        return f"answers; {len(models)} models"


def _write_grammar(grammar: Grammar, how: str) -> dict[str, JsonValue]:
    """The fields of a request that hold its reply to a grammar; none where there is no way."""
    if how == "vllm":
        return {"structured_outputs": {"grammar": grammar.lark}}
    if how == "off" or grammar.json_schema is None:
        return {}
    schema: dict[str, JsonValue] = {"name": "turn", "strict": True, "schema": dict(grammar.json_schema)}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _completion(answer: Any, prompt: str) -> Completion:
    """Read the first choice of an answer, with its tool calls as text. Raises WorkerFault."""
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        content = _text(message.get("content"))
        text = "\n".join([content, *map(_call_text, message.get("tool_calls") or [])]).strip()
        finish = str(choice.get("finish_reason") or "stop")[:40]
        refusal = _text(message.get("refusal"))
    except (TypeError, KeyError, IndexError, AttributeError) as error:
        sentence = "the answer is no chat completion: it has no choices with a message"
        raise WorkerFault("invalid_response", sentence) from error
    if refusal or finish == "content_filter":
        raise WorkerFault("content_filtered", f"the model does not answer: {refusal[:300] or 'its filter stopped it'}")
    if not text:
        hint = "; its token limit went into thinking, raise it" if finish == "length" else ""
        raise WorkerFault("invalid_response", f"the model returned no text (finish reason: {finish}){hint}")
    text = clean_text(text)
    return Completion(text, _usage(answer.get("usage"), prompt, text), prompt, finish)


def _text(content: Any) -> str:
    """Return a message's text: a string, or the text parts of a list (without reasoning, images and the like)."""
    if not isinstance(content, list):
        return str(content or "")
    parts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text")
    return "".join(part for part in parts if isinstance(part, str))


def _call_text(call: Any) -> str:
    """Write an API's structured call as open models do; its arguments stay as they came, valid JSON or not."""
    function = call["function"]
    arguments = function.get("arguments")
    written = (arguments if isinstance(arguments, str) else json.dumps(arguments)) or "{}"
    name = json.dumps(function["name"])
    return f'<tool_call>\n{{"name": {name}, "arguments": {written}}}\n</tool_call>'


def _usage(usage: Any, prompt: str, text: str) -> Usage:
    """Return the endpoint's token counts, or about one token per four characters where it gives none."""
    if isinstance(usage, dict):
        sent, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if type(sent) is int and type(written) is int and 0 <= min(sent, written) <= max(sent, written) <= MAX_TOKENS:
            return Usage(sent, written)
    return Usage(len(prompt) // 4, len(text) // 4)
