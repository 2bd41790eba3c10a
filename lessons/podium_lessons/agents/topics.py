"""The hand-written topics of what agents are asked: data/tasks/agent_topics.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from random import Random
from typing import Literal, TypeAlias

from pydantic import Field, RootModel

from podium_lessons.lesson_data import load_lesson_data
from trainer.tasks.task_data import TaskData

# train: training may draw from it; held_out: it never does
LOGGED = 60  # questions of a topic that logs and lessons are drawn from
TopicSplit: TypeAlias = Literal["train", "held_out"]


class TopicData(TaskData):
    """A topic: how an agent's card names it, patterns of questions, and what stands at {a} and {b} in them."""

    labels: tuple[str, ...] = Field(min_length=1)
    patterns: tuple[str, ...] = Field(min_length=6)
    a: tuple[str, ...] = Field(min_length=6)
    b: tuple[str, ...] = Field(min_length=6)
    held_out: bool = False


class TopicFile(RootModel[dict[str, TopicData]]):
    """Topics by name."""


@dataclass(frozen=True, slots=True)
class Topic:
    """What agents are asked of one subject."""

    name: str
    labels: tuple[str, ...]
    questions: tuple[str, ...]
    split: TopicSplit


@cache
def load_topics() -> tuple[Topic, ...]:
    """All hand-written topics with all of their questions, each once. Raises UnusableTasks."""
    rows = load_lesson_data("agent_topics", TopicFile).root
    return tuple(
        Topic(name, row.labels, tuple(_write_questions(row)), "held_out" if row.held_out else "train")
        for name, row in rows.items()
    )


@cache
def split_questions(topic: Topic) -> tuple[list[str], list[str]]:
    """The questions of a topic that logs and lessons are drawn from, and those that judge: always the same ones."""
    shuffled = Random(topic.name).sample(topic.questions, len(topic.questions))  # noqa: S311  no secret
    return shuffled[:LOGGED], shuffled[LOGGED:]


def _write_questions(row: TopicData) -> list[str]:
    filled = (pattern.format(a=a, b=b) for pattern in row.patterns for a, b in product(row.a, row.b))
    return list(dict.fromkeys(filled))
