"""How a simulated expert reads its messages: it answers from what they hold, and from nothing else.

A case is asked where the instruction names it and the key words of its question are in sight. The findings that it
hangs on must be in sight too, or be answerable themselves. Where a finding of the asked case is in sight already, the
expert takes the most frequent one: it merges, and does not think for itself.
What it says to a case hangs on the seed, its name and the case alone: not on the order or the number of calls.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from random import Random

from podium_lessons.agents.cases import Book, Case, read_words
from podium_lessons.agents.experts import WRONG_ANSWERS, Expert

UNCLEAR = "I cannot tell what is asked."
MISREAD = 0.2  # how far an expert's confidence is from its skill, at most

_OUTPUT = re.compile(r"<(output-[0-9a-f]+)[^>]*>\n(.*?)\n</\1>", re.DOTALL)


class Unanswerable(Exception):
    """What it read does not hold what the answer hangs on; the text is the expert's reply."""


class CallFails(Exception):
    """The expert's endpoint fails for this call."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A simulated expert at work on the cases of a book."""

    expert: Expert
    book: Book

    def reply(self, text: str) -> str:
        """What it writes after reading this. Raises CallFails."""
        case = self._find_asked(text)
        if case is None:
            return UNCLEAR
        seen = case.read_findings(text)
        random = self._draw(f"{case.number}/{'merge' if seen else 'call'}")
        if random.random() < self.expert.failure:
            raise CallFails(f"simulated: {self.expert.name} fails for {case.ref}")
        try:
            token = _take_most_frequent(seen, random) if seen else self._solve(case, text)
        except Unanswerable as problem:
            return str(problem)
        confidence = state_confidence(self.expert, self.book.list_topics(case), self.book.seed)
        stated = f"\nConfidence: {confidence}" if "Confidence: N" in text else ""
        return case.write_finding(token) + stated

    def _find_asked(self, text: str) -> Case | None:
        """The last case of the instruction whose question is in sight."""
        instruction, words = _OUTPUT.sub("", text), read_words(text)
        cases = (self.book.cases[number] for number in sorted(self.book.cases, reverse=True))
        return next((case for case in cases if case.key_words <= words and case.is_asked_in(instruction)), None)

    def _solve(self, case: Case, text: str) -> str:
        """Its own finding. Raises Unanswerable."""
        if not case.key_words <= read_words(text):
            raise Unanswerable(f"I do not see the finding of {case.ref}.")
        given = [self._find_given(self.book.cases[number], text) for number in case.given]
        random = self._draw(f"{case.number}/knows")
        right = random.random() < self.expert.skill(case.topic)
        return self.book.write_token(case, given, 0 if right else random.randint(1, WRONG_ANSWERS))

    def _find_given(self, case: Case, text: str) -> str:
        seen = case.read_findings(text)
        return _take_most_frequent(seen, self._draw(f"{case.number}/given")) if seen else self._solve(case, text)

    def _draw(self, what: str) -> Random:
        return Random(f"{self.book.seed}/{self.expert.name}/{what}")  # noqa: S311  a draw, no secret


def state_confidence(expert: Expert, topics: Sequence[int], seed: int) -> int:
    """How sure an expert says it is of a case that hangs on these topics, in per cent: its skills, more or less."""
    draws = [Random(f"{seed}/{expert.name}/belief/{topic}") for topic in topics]  # noqa: S311  no secret
    errors = [draw.uniform(-MISREAD, MISREAD) for draw in draws]
    beliefs = [min(1.0, max(0.0, expert.skill(topic) + error)) for topic, error in zip(topics, errors, strict=True)]
    return round(100 * prod(beliefs))


def _take_most_frequent(tokens: Sequence[str], random: Random) -> str:
    """The token that is there most often, by lot among equals."""
    counts = Counter(tokens)
    most = max(counts.values())
    return random.choice(sorted(token for token, count in counts.items() if count == most))
