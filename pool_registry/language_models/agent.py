"""The base of the kinds of language models: `chat` and `local_model`."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self, TypeVar

from pydantic import model_validator
from pydantic.config import JsonDict

from pool_registry.actions import Usage
from pool_registry.errors import WorkerFault
from pool_registry.language_models.completion import (
    DEFAULT_OPTIONS,
    INSTRUCTION,
    Completion,
    CompletionOptions,
    Grammar,
    Message,
    agent_messages,
    estimate_completion,
)
from pool_registry.language_models.context_budget import AgentLimits, describe_context, find_visible_room
from pool_registry.language_models.skills import (
    InvalidSkill,
    Skill,
    find_longest,
    find_named,
    find_requested,
    give_on_request,
    give_with_task,
    load_skills,
    write_offer,
)
from pool_registry.strict_model import StrictModel
from pool_registry.worker import Call, Reply, Worker

DEFAULT_ROLE = "You are a careful worker. Do what the instruction says and reply with the result alone."


class AgentConfig(StrictModel):
    if TYPE_CHECKING:  # each kind has these fields, at the place in its form where they belong
        role: str
        max_visible_chars: int
        tools: tuple[str, ...]
        skills: tuple[str, ...]

    @model_validator(mode="after")
    def _tools_or_skills(self) -> Self:
        if _list_skills(self) and self.tools:
            raise ValueError("an agent with tools of its own reads no skills; leave tools or skills empty")
        return self


OWN_TOOLS = "Names of workers of this pool that it may call itself, by its own tool calling; empty for none."
LISTED: JsonDict = {"x-control": "list"}  # one line in the form, with commas

C = TypeVar("C", bound=AgentConfig)


class Agent(Worker[C]):
    """A language model under a role prompt, with the skills that it may read."""

    role = "agent"
    parameters = INSTRUCTION
    grammar: Grammar | None = None  # that the replies to its calls are held to

    def hold_to(self, grammar: Grammar) -> Self:
        """This agent with replies that follow a grammar, as far as its model can be held to one; it uses no tools."""
        held = copy.copy(self)
        held.grammar = grammar
        return held

    async def call(self, call: Call) -> Reply:
        """Send the role, what the step may see and the instruction; return what the model wrote. A skill that the
        instruction names goes along; one that the model asks for is sent in a second request. With tools of its own
        the agent calls them in an episode one level deeper, until it answers."""
        role, instruction, limits = self.config.role, call.text("instruction"), self.limits
        if self.config.tools and self.grammar is None:
            if call.scope is None:
                raise WorkerFault("no_episode", f"{self.spec.name} has tools, which it calls inside a run only")
            return await call.scope.use_tools(self.spec.name, self.config.tools, instruction, call.visible)
        skills, room = self._load_skills(), self.find_room(call)
        options = CompletionOptions(grammar=self.grammar)
        read = find_named(skills, instruction)
        messages = self._write_messages(call, skills, room)
        completion = await self.complete(give_with_task(messages, read) if read else messages, options)
        usage = completion.usage
        if read is None and (read := find_requested(skills, completion.text)) is not None:
            completion = await self.complete(give_on_request(messages, completion.text, read), options)
            usage = usage + completion.usage
        context = describe_context(role, instruction, call.visible, room, limits, skills, read)
        return Reply(completion.text, usage, completion.prompt, context=context)

    @property
    def is_repeatable(self) -> bool:
        """A greedy reply stands for another one. An agent with tools of its own is called anew: what they return may
        differ."""
        return getattr(self.config, "temperature", 1.0) == 0 and not self.config.tools

    @property
    def limits(self) -> AgentLimits:
        """What bounds its prompts."""
        config = self.config
        return AgentLimits(self.spec.context_tokens, getattr(config, "max_tokens", 0), config.max_visible_chars)

    def find_room(self, call: Call) -> int:
        """How many characters the outputs may have in the prompt of a call. Raises WorkerFault when it cannot fit."""
        instruction, skills = call.text("instruction"), self._load_skills()
        return find_visible_room(self.spec.name, self.config.role, instruction, call.visible, self.limits, skills)

    def check_call(self, call: Call) -> None:
        self.find_room(call)

    def estimate_usage(self, call: Call) -> Usage:
        """The prompt, and as long a reply as the configuration allows; both once more where a skill may be read."""
        config, skills = self.config, self._load_skills()
        messages = self._write_messages(call, skills, config.max_visible_chars)
        reply_tokens = getattr(config, "max_tokens", 0)
        first = estimate_completion(messages, None, reply_tokens)
        if not skills:
            return first
        return first + estimate_completion([*messages, Message("user", find_longest(skills))], None, reply_tokens)

    @classmethod
    def reads(cls, config: C) -> tuple[str, ...]:
        return tuple(f"the skill folder {folder}" for folder in _list_skills(config))

    @classmethod
    def stays_because(cls, config: C) -> str:
        return "its skills lie in folders of this machine" if _list_skills(config) else ""

    @classmethod
    def list_missing(cls, config: C) -> tuple[tuple[str, str], ...]:
        try:
            load_skills(_list_skills(config))
        except InvalidSkill as error:
            return (("skills", str(error)),)
        return ()

    def _load_skills(self) -> tuple[Skill, ...]:
        try:
            return load_skills(_list_skills(self.config))
        except InvalidSkill as error:
            raise WorkerFault("skill_missing", str(error)) from error

    def _write_messages(self, call: Call, skills: Sequence[Skill], room: int) -> list[Message]:
        role = "\n\n".join(filter(None, (self.config.role, write_offer(skills))))
        return agent_messages(role, call.text("instruction"), call.visible, room)

    @abstractmethod
    async def complete(self, messages: Sequence[Message], options: CompletionOptions = DEFAULT_OPTIONS) -> Completion:
        """Ask the model. Raises WorkerFault."""


def _list_skills(config: AgentConfig) -> tuple[str, ...]:
    """The folders of an agent's skills; a kind of another package may have none."""
    return getattr(config, "skills", ())
