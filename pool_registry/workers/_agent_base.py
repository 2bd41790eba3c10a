"""The base of the kinds of language models: `chat` and `local_model`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from pool_registry.language_models.completion import (
    DEFAULT_OPTIONS,
    INSTRUCTION,
    Completion,
    CompletionOptions,
    Message,
    agent_messages,
)
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, Worker

DEFAULT_ROLE = "You are a careful worker. Do what the instruction says and reply with the result alone."


class AgentConfig(StrictModel):
    if TYPE_CHECKING:  # each kind has these fields, at the place in its form where they belong
        role: str
        max_visible_chars: int


C = TypeVar("C", bound=AgentConfig)


class Agent(Worker[C]):
    """A language model under a role prompt."""

    role = "agent"
    parameters = INSTRUCTION

    async def call(self, call: Call) -> Reply:
        """Send the role, what the step may see and the instruction; return what the model wrote."""
        config = self.config
        messages = agent_messages(config.role, call.text("instruction"), call.visible, config.max_visible_chars)
        completion = await self.complete(messages)
        return Reply(completion.text, completion.usage, completion.prompt)

    @abstractmethod
    async def complete(self, messages: Sequence[Message], options: CompletionOptions = DEFAULT_OPTIONS) -> Completion:
        """Ask the model. Raises WorkerFault."""
