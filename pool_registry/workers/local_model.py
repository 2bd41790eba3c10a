"""Kind `local_model`: a transformers checkpoint on this machine, CPU or GPU."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from pool_registry.language_models.batched_model import LoadedModel, Sampling, open_model
from pool_registry.language_models.completion import (
    DEFAULT_OPTIONS,
    Completion,
    CompletionOptions,
    Message,
    prompt_text,
)
from pool_registry.language_models.model_files import STARTER, is_available, model_path
from pool_registry.workers._agent_base import DEFAULT_ROLE, Agent, AgentConfig


class LocalModelConfig(AgentConfig):
    model: str = Field(default=STARTER, min_length=1, description="starter:smollm2, a folder, or hub:owner/name.")
    adapter: str = Field(
        default="",
        description="Folder of a LoRA adapter for it; empty for none. Adapters of one model share it in memory.",
    )
    role: str = Field(default=DEFAULT_ROLE, description="System prompt.", max_length=20_000)
    max_tokens: int = Field(default=128, ge=1, le=32_768)
    temperature: float = Field(default=0.0, ge=0, le=2, description="0 is greedy.")
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
            return ""
        if config.model.startswith("starter:"):
            return "its model is converted from a package on this machine; use a model of the hub (hub:owner/name)"
        return "its model lies in a folder of this machine; publish it first and use hub:owner/name"

    async def complete(self, messages: Sequence[Message], options: CompletionOptions = DEFAULT_OPTIONS) -> Completion:
        """Generate a reply. Raises WorkerFault when the model is missing or the prompt too long."""
        model = await asyncio.to_thread(self._load)
        draw = options.draw
        sampling = Sampling(self.config.temperature) if draw is None else Sampling(draw.temperature, draw.seed)
        chat = [message.write_plain() for message in messages]
        limit = options.max_tokens or self.config.max_tokens
        text, usage = await model.generate(chat, limit, sampling, options.tools, self._adapter, options.grammar)
        return Completion(text, usage, prompt_text(messages))

    async def check(self) -> str:
        return await asyncio.to_thread(is_available, self.config.model)

    def _load(self) -> LoadedModel:
        return open_model(model_path(self.config.model), self.config.device)

    @property
    def _adapter(self) -> Path | None:
        return Path(self.config.adapter).expanduser() if self.config.adapter else None
