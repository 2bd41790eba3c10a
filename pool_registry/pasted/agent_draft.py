"""An agent as another tool's file describes it, and the chat worker that becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pool_registry.actions import JsonValue
from pool_registry.gallery.providers import PROVIDERS, Provider, provider_of
from pool_registry.gallery.templates import SHIPPED_MODEL
from pool_registry.gallery.worker_from_template import put_on_model
from pool_registry.imports import FreeNames, Offer
from pool_registry.language_models.agent import DEFAULT_ROLE
from pool_registry.pasted.base import ImportSettings
from pool_registry.pasted.keys import is_key
from pool_registry.worker import WorkerSpec

MAX_REPLY_TOKENS = 512  # of the model that ships; every other keeps its own
TIMEOUT_S = 120.0
MASK = "*"  # what libraries write in place of a key


@dataclass(frozen=True, slots=True)
class Model:
    """What an agent runs on: a model of a provider of ours, or of the endpoint `base_url`. `key` as it stood there."""

    name: str
    provider: str = "openai"
    base_url: str = ""
    key: str = ""
    temperature: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class AgentDraft:
    """An agent of a team. Without a model it runs on one of the pool's. `tools` are names of the team's functions."""

    name: str
    description: str = ""
    role: str = ""
    model: Model | None = None
    tools: tuple[str, ...] = field(default=())


def make_agents(drafts: Sequence[AgentDraft], settings: ImportSettings, tools: Sequence[str] = ()) -> list[Offer]:
    """A chat worker for each draft, under names that no other one and none of `tools` has; of its own tools it keeps
    those among `tools`."""
    names = FreeNames(tools)
    return [Offer(_make_agent(draft, names.choose(draft.name), settings, tools)) for draft in drafts]


def _make_agent(draft: AgentDraft, name: str, settings: ImportSettings, tools: Sequence[str]) -> WorkerSpec:
    role = draft.role or DEFAULT_ROLE
    config: dict[str, JsonValue] = {"role": role}
    description = draft.description or f"{draft.name}: {' '.join(draft.role.split())}"[:300].rstrip(": ")
    if draft.model is not None:
        config |= _write_model(draft.model, settings)
    if own := [tool for tool in draft.tools if tool in tools]:
        config["tools"] = own
    if draft.model is not None:
        return WorkerSpec(name=name, kind="chat", description=description, config=config, timeout_s=TIMEOUT_S)
    preset = WorkerSpec(
        name=name, kind="chat", description=description, config={**config, "max_tokens": MAX_REPLY_TOKENS}
    )
    spec = put_on_model(preset, settings.model or SHIPPED_MODEL)
    return spec.model_copy(update={"config": {**spec.config, "tools": own}}) if own else spec


def _write_model(model: Model, settings: ImportSettings) -> dict[str, JsonValue]:
    """The settings of a chat worker; a key becomes a reference."""
    provider = _find_provider(model)
    reference = _refer_key(model, provider, settings)
    config: dict[str, JsonValue] = {"base_url": model.base_url, "model": model.name, "api_key": reference}
    if provider is not None:
        config = {**provider.config(model.name, reference), **({"base_url": model.base_url} if model.base_url else {})}
    if model.max_tokens is not None:
        config["max_tokens"] = model.max_tokens
    if model.temperature is not None:
        config["temperature"] = model.temperature
        config.pop("extra", None)  # a provider's own, which leaves the temperature out
    return {**config, "allow_private": True} if settings.private else config


def _find_provider(model: Model) -> Provider | None:
    if model.base_url:
        return provider_of(model.base_url)
    return next((provider for provider in PROVIDERS if provider.name == model.provider), None)


def _refer_key(model: Model, provider: Provider | None, settings: ImportSettings) -> str:
    """The key that a person gave, or the reference to that of the file; the provider's usual one where it has none."""
    if settings.key:
        return settings.key
    usual = provider.key if provider is not None else ""
    if is_key("api_key", model.key) and not model.key.startswith(MASK) and len(model.key) > len("none"):
        return settings.keys.refer_setting(usual or f"{model.name} key", "api_key", model.key)
    return f"env:{usual}" if usual else ""
