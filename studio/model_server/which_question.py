"""The answer to a message that may mean several questions: which of them is meant? The next message chooses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EarlierRun
from orchestrator.engine.release import Orchestrator
from orchestrator.follow_up.languages import find_language
from orchestrator.follow_up.words import resolve_references
from orchestrator.plan import Turn
from orchestrator.policies.base import write_turn
from orchestrator.quotes import escape

MAX_CHOICE_CHARS = 2000
HEAD = "I am not sure what you ask. Answer with the number of a question, or ask yours in full:"
_LINE = re.compile(r"^\d\. (.+)$", re.MULTILINE)
_NUMBER = re.compile(r"\W{0,2}(\d)\W{0,2}")


class WhichQuestionPolicy(Orchestrator):
    """Answers at once, by the questions to choose from; no worker is called."""

    def __init__(self, name: str, readings: Sequence[str]) -> None:
        self.name = name
        self._readings = readings

    async def turn(self, _episode: Episode) -> Turn:
        return write_turn([], escape(write_choices(self._readings)))


def write_choices(readings: Sequence[str]) -> str:
    """What a client reads in place of an answer."""
    return "\n".join([HEAD, *(f"{number}. {question}" for number, question in enumerate(readings, start=1))])


def read_choices(answer: str) -> list[str]:
    """The questions that an answer offered; none where it is another answer."""
    return _LINE.findall(answer) if answer.startswith(HEAD) and len(answer) <= MAX_CHOICE_CHARS * 4 else []


def choose(choices: Sequence[str], text: str) -> str:
    """The question that a reply means: by its number, its words, or "the second one"; "" where it means none."""
    text = text.strip()
    if not choices or len(text) > MAX_CHOICE_CHARS:
        return ""
    if number := _NUMBER.fullmatch(text):
        place = int(number[1])
        return choices[place - 1] if 1 <= place <= len(choices) else ""
    words = text
    if language := find_language((text,)):
        words = resolve_references(text, [EarlierRun("", "", "", list(choices))], language).text
    return next((choice for choice in choices if choice.casefold() == words.casefold()), "")
