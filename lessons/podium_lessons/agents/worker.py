"""Kind `lesson_agent`: a simulated agent of a lesson. It says that it is simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from podium_lessons.agents.lesson import draw_lesson
from podium_lessons.agents.reading import Reader
from pool_registry.actions import JsonValue
from pool_registry.language_models.agent import DEFAULT_ROLE, Agent, AgentConfig
from pool_registry.language_models.completion import DEFAULT_OPTIONS, Completion, CompletionOptions, Message


class LessonAgentConfig(AgentConfig):
    split: Literal["train", "validation", "test"] = Field(description="Split of the lesson.")
    number: int = Field(ge=0, description="Number of the lesson.")
    levels: tuple[Literal[1, 2, 3], ...] = Field(min_length=1, description="Levels of its tasks.")
    place: int = Field(ge=0, description="Which agent of the lesson.")
    example: str = Field(default="", description="An instruction, on its card.")
    role: str = Field(default=DEFAULT_ROLE, description="System prompt, which it does not read.")
    max_visible_chars: int = Field(default=20_000, ge=200, description="How much of the outputs it may see it reads.")
    tools: tuple[str, ...] = Field(default=(), max_length=0)
    skills: tuple[str, ...] = Field(default=(), max_length=0)

    @model_validator(mode="after")
    def _is_there(self) -> Self:
        if self.place >= len(draw_lesson(self.split, self.number, self.levels).experts):
            raise ValueError(f"lesson {self.number} has no agent {self.place}")
        return self


class LessonAgent(Agent[LessonAgentConfig]):
    label = "Agent of a lesson"
    summary = "A simulated agent that answers what its lesson says it knows."
    template = None  # training needs it; a person would not add it
    cacheable = True
    wording = ("number",)
    Config = LessonAgentConfig

    @property
    def sample(self) -> Mapping[str, JsonValue]:  # type: ignore[override]
        return {"instruction": self.config.example} if self.config.example else {}

    async def complete(
        self,
        messages: Sequence[Message],
        options: CompletionOptions = DEFAULT_OPTIONS,  # noqa: ARG002  nothing of them concerns it
    ) -> Completion:
        """What it says to a case that it was told enough of. It never fails."""
        config = self.config
        lesson = draw_lesson(config.split, config.number, config.levels)
        text = "\n\n".join(message.content for message in messages if message.role != "system")
        return Completion(Reader(lesson.experts[config.place], lesson.book).reply(text))
