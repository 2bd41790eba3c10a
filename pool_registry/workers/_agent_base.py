"""The base of the kinds of language models: `chat` and `local_model`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from pool_registry.actions import Usage
from pool_registry.errors import WorkerFault
from pool_registry.language_models.completion import (
    DEFAULT_OPTIONS,
    INSTRUCTION,
    Completion,
    CompletionOptions,
    Message,
    agent_messages,
    estimate_completion,
)
from pool_registry.language_models.context_budget import AgentLimits, describe_context, find_visible_room
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, Worker

DEFAULT_ROLE = "You are a careful worker. Do what the instruction says and reply with the result alone."


class AgentConfig(StrictModel):
    if TYPE_CHECKING:  # each kind has these fields, at the place in its form where they belong
        role: str
        max_visible_chars: int
        tools: tuple[str, ...]


OWN_TOOLS = "Names of workers of this pool that it may call itself, by its own tool calling; empty for none."

C = TypeVar("C", bound=AgentConfig)


class Agent(Worker[C]):
    """A language model under a role prompt."""

    role = "agent"
    parameters = INSTRUCTION

    async def call(self, call: Call) -> Reply:
        """Send the role, what the step may see and the instruction; return what the model wrote. With tools of its
        own the agent calls them in an episode one level deeper, until it answers."""
        role, instruction, limits = self.config.role, call.text("instruction"), self.limits
        if self.config.tools:
            if call.scope is None:
                raise WorkerFault("no_episode", f"{self.spec.name} has tools, which it calls inside a run only")
            return await call.scope.use_tools(self.spec.name, self.config.tools, instruction, call.visible)
        room = find_visible_room(self.spec.name, role, instruction, call.visible, limits)
        completion = await self.complete(agent_messages(role, instruction, call.visible, room))
        context = describe_context(role, instruction, call.visible, room, limits)
        return Reply(completion.text, completion.usage, completion.prompt, context=context)

    @property
    def limits(self) -> AgentLimits:
        """What bounds its prompts."""
        config = self.config
        return AgentLimits(self.spec.context_tokens, getattr(config, "max_tokens", 0), config.max_visible_chars)

    def check_call(self, call: Call) -> None:
        find_visible_room(self.spec.name, self.config.role, call.text("instruction"), call.visible, self.limits)

    def estimate_usage(self, call: Call) -> Usage:
        """The prompt, and as long a reply as the configuration allows."""
        config = self.config
        messages = agent_messages(config.role, call.text("instruction"), call.visible, config.max_visible_chars)
        return estimate_completion(messages, None, getattr(config, "max_tokens", 0))

    @abstractmethod
    async def complete(self, messages: Sequence[Message], options: CompletionOptions = DEFAULT_OPTIONS) -> Completion:
        """Ask the model. Raises WorkerFault."""
