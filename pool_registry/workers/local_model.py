"""Kind `local_model`: a transformers checkpoint on this machine, CPU or GPU."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from pydantic import Field

from pool_registry.language_models.adapter_fit import check_fit, describe_base
from pool_registry.language_models.adapter_folder import check_adapter
from pool_registry.language_models.agent import DEFAULT_ROLE, LISTED, OWN_TOOLS, Agent, AgentConfig
from pool_registry.language_models.batched_model import LoadedModel, Sampling, open_model
from pool_registry.language_models.completion import (
    DEFAULT_OPTIONS,
    Completion,
    CompletionOptions,
    Message,
    prompt_text,
)
from pool_registry.language_models.model_files import HUB, STARTER, is_available, model_path, starter_folder
from pool_registry.language_models.skills import FOLDERS, MAX_SKILLS

_loader = ThreadPoolExecutor(1, "load-model")
_loads: dict[tuple[str, str], Future[LoadedModel]] = {}  # under way: what is loaded, `open_model` keeps
_loaded: set[tuple[str, str]] = set()


def _start_load(model: str, device: str) -> Future[LoadedModel]:
    """Load a model in the background, or join the load that is under way."""
    key = (model, device)
    loading = _loads.get(key)
    if loading is None or loading.done():
        loading = _loads[key] = _loader.submit(_load, model, device)
    return loading


def _load(model: str, device: str) -> LoadedModel:
    try:
        opened = open_model(model_path(model), device)
        _loaded.add((model, device))
        return opened
    finally:
        _loads.pop((model, device), None)


class LocalModelConfig(AgentConfig):
    model: str = Field(default=STARTER, min_length=1, description="starter:smollm2, a folder, or hub:owner/name.")
    adapter: str = Field(
        default="",
        description="Folder of a LoRA adapter for it; empty for none. Adapters of one model share it in memory.",
    )
    role: str = Field(default=DEFAULT_ROLE, description="System prompt.", max_length=20_000)
    max_tokens: int = Field(default=128, ge=1, le=32_768)
    temperature: float = Field(default=0.0, ge=0, le=2, description="0 is greedy.")
    tools: tuple[str, ...] = Field(default=(), max_length=64, description=OWN_TOOLS, json_schema_extra=LISTED)
    skills: tuple[str, ...] = Field(default=(), max_length=MAX_SKILLS, description=FOLDERS, json_schema_extra=LISTED)
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    max_visible_chars: int = Field(
        default=6000, ge=200, description="How much of the outputs it may see goes into its prompt."
    )


class LocalModel(Agent[LocalModelConfig]):
    label = "Local model"
    summary = "A transformers checkpoint on this machine."
    icon = "M7 7h10v10H7z M10 3v4 M14 3v4 M10 17v4 M14 17v4 M3 10h4 M3 14h4 M17 10h4 M17 14h4"
    Config = LocalModelConfig
    sample = {"instruction": "What is the capital of France?"}

    @classmethod
    def stays_because(cls, config: LocalModelConfig) -> str:
        if config.model.startswith("hub:") and not config.adapter:
            return super().stays_because(config)
        if config.model.startswith("starter:"):
            return "its model is converted from a package on this machine; use a model of the hub (hub:owner/name)"
        return "its model lies in a folder of this machine; publish it first and use hub:owner/name"

    @classmethod
    def reads(cls, config: LocalModelConfig) -> tuple[str, ...]:
        folders = (
            path for path in (config.model, config.adapter) if path and not path.startswith(("starter:", "hub:"))
        )
        return (*(f"the model {folder}" for folder in folders), *super().reads(config))

    async def complete(self, messages: Sequence[Message], options: CompletionOptions = DEFAULT_OPTIONS) -> Completion:
        """Generate a reply. Raises WorkerFault when the model is missing or the prompt too long."""
        model = await self._wait_for_model()
        draw = options.draw
        sampling = Sampling(self.config.temperature) if draw is None else Sampling(draw.temperature, draw.seed)
        chat = [message.write_plain() for message in messages]
        limit = options.max_tokens or self.config.max_tokens
        text, usage = await model.generate(chat, limit, sampling, options.tools, self._adapter, options.grammar)
        return Completion(text, usage, prompt_text(messages))

    async def check(self) -> str:
        return await asyncio.to_thread(self._check)

    def _check(self) -> str:
        state, adapter, model = is_available(self.config.model), self._adapter, self.config.model
        if adapter is None:
            return state
        check_adapter(adapter)
        if not model.startswith(HUB) and (model != STARTER or starter_folder().exists()):
            check_fit(adapter, model_path(model))
        return "; ".join(filter(None, (state, describe_base(adapter, model))))

    def is_ready(self) -> bool:
        return (self.config.model, self.config.device) in _loaded

    async def prepare(self) -> None:
        await self._wait_for_model()

    async def _wait_for_model(self) -> LoadedModel:
        """The model, loaded once for all that wait: they hold no thread of the event loop's, which others need."""
        return await asyncio.shield(asyncio.wrap_future(_start_load(self.config.model, self.config.device)))

    @property
    def _adapter(self) -> Path | None:
        return Path(self.config.adapter).expanduser() if self.config.adapter else None
