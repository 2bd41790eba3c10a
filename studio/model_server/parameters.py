"""What of a request changes its episode, and what is accepted and reported instead.

No parameter is refused for being there, and none is ignored silently: what cannot be honoured is named with the reason
in the header `x-podium-ignored` and in the field `podium.ignored` of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from pool_registry.actions import JsonValue

_NO_TOKENS = "an episode has no token probabilities"
_TEXT = "the answer is text"
# parameter -> (values that change nothing, why others have no effect)
WITHOUT_EFFECT: Mapping[str, tuple[tuple[object, ...], str]] = {
    "n": ((1,), "one episode gives one answer; send the request several times for several"),
    "best_of": ((1,), "one episode gives one answer"),
    "suffix": (("",), "the prompt is a question, which is answered; text is not filled in"),
    "functions": (([],), "an old form; send tools"),
    "function_call": (("none", "auto"), "an old form; send tool_choice"),
    "max_tool_calls": ((), "podium.max_steps limits the calls of an episode"),
    "web_search_options": ((), "the pool's own workers search"),
    "modalities": ((["text"],), _TEXT),
    "audio": ((), _TEXT),
    "prediction": ((), "the answer of an episode cannot be predicted"),
    "logprobs": ((False,), _NO_TOKENS),
    "top_logprobs": ((0,), _NO_TOKENS),
    "conversation": ((), "conversations are not kept here; use previous_response_id, or send the whole conversation"),
    "prompt": ((), "prompt templates are not kept here; send the text"),
    "include": (([], ["reasoning.encrypted_content"]), "there is nothing more to include"),
    "truncation": (("disabled",), "long conversations are not cut"),
    "context_management": ((), "long conversations are not cut"),
    "service_tier": (("auto", "default"), "there is one tier"),
}
# Labels for the client's own bookkeeping: they never change an answer.
LABELS = {
    "user",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "stream_options",
}
UNKNOWN = "this parameter is not known here"


class SamplingFields(BaseModel):
    """The parameters that the agents of the pool are called with, where their endpoints take them."""

    model_config = ConfigDict(frozen=True)

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    seed: int | None = None
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    logit_bias: dict[str, float] | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None

    def list_settings(self) -> dict[str, JsonValue]:
        """The parameters that are set to something that is not what everybody has anyway."""
        neutral: dict[str, object] = {"presence_penalty": 0, "frequency_penalty": 0, "logit_bias": {}}
        values = SamplingFields.model_fields.keys()
        settings = {name: getattr(self, name) for name in values}
        return {
            name: value
            for name, value in settings.items()
            if value is not None and not (name in neutral and value == neutral[name])
        }


def explain_ignored(extra: Mapping[str, Any]) -> dict[str, str]:
    """The parameters that have no effect, with the reason."""
    ignored: dict[str, str] = {}
    for name, value in extra.items():
        if value is None or name in LABELS:
            continue
        allowed, why = WITHOUT_EFFECT.get(name, ((), UNKNOWN))
        if not any(type(value) in (type(neutral), float) and value == neutral for neutral in allowed):
            ignored[name[:80]] = why
    return ignored
