"""The wordings that all worlds share: podium_lessons/data/tasks/worlds.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from pydantic import Field

from podium_lessons.lesson_data import load_lesson_data
from trainer.tasks.task_data import TaskData

HELD_OUT_TEXTS = 2  # the last of every bank are kept for the test split


class RuleTexts(TaskData):
    """The texts of one rule of the query grammar. A rule that is held out stands in the test split alone."""

    name: str
    texts: tuple[str, ...] = Field(min_length=12)
    held_out: bool = False


class PhysicalUnit(TaskData):
    """A unit that a field's `unit` may be one of `words` for, and another one that the `units` tool converts it to.
    `name` is what people call that one."""

    words: tuple[str, ...]
    unit: str
    to: str
    name: str


class WorldWords(TaskData):
    """Descriptions of tools by shape, queries by rule, and the words that names are made of."""

    descriptions: dict[str, tuple[str, ...]]
    rules: tuple[RuleTexts, ...]
    openings: tuple[str, ...]
    endings: tuple[str, ...]
    test_openings: tuple[str, ...]
    test_endings: tuple[str, ...]
    noun_phrases: tuple[str, ...]
    terse_phrases: tuple[str, ...]
    totals: tuple[str, ...]
    averages: tuple[str, ...]
    counts: tuple[str, ...]
    count_asks: tuple[str, ...]
    tops: tuple[str, ...]
    top_asks: tuple[str, ...]
    held_out_verbs: tuple[str, ...]  # no text of training holds one
    needs: dict[str, str]
    parameters: dict[str, tuple[str, ...]]
    operations: dict[str, tuple[str, ...]]
    names: dict[str, tuple[str, ...]]
    adjectives: tuple[str, ...]
    nouns: tuple[str, ...]
    verbs: tuple[str, ...]
    syllables: tuple[str, ...]
    agents: tuple[str, ...]
    test_agents: tuple[str, ...]
    physical: tuple[PhysicalUnit, ...]

    def rule(self, name: str) -> RuleTexts:
        """The texts of a rule."""
        return next(rule for rule in self.rules if rule.name == name)


@cache
def load_words() -> WorldWords:
    """The content of podium_lessons/data/tasks/worlds.yaml. Raises UnusableTasks."""
    return load_lesson_data("worlds", WorldWords)


def list_learnt_texts(bank: Sequence[str]) -> Sequence[str]:
    """The texts of a bank that training may show."""
    return bank[:-HELD_OUT_TEXTS]


def list_held_out_texts(bank: Sequence[str]) -> Sequence[str]:
    """The texts of a bank that only the test split shows."""
    return bank[-HELD_OUT_TEXTS:]
