"""How a simulated expert reads its messages: it answers from what they hold, and from nothing else.

A case is asked where its number stands in the instruction and the key words of its question are in sight. The findings
that it hangs on must be in sight too, or be answerable themselves. Where a finding of the asked case is in sight
already, the expert takes the most frequent one: it merges, and does not think for itself.
What it says to a case hangs on the seed, its name and the case alone: not on the order or the number of calls.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from random import Random

from bench.agents.cases import Book, Case, read_words, write_finding
from bench.agents.ground import EVERYBODY, WRONG_ANSWERS, Expert

UNCLEAR = "I cannot tell what is asked."
MISREAD = 0.2  # how far an expert's confidence is from its skill, at most

_OUTPUT = re.compile(r"<(output-[0-9a-f]+)[^>]*>\n(.*?)\n</\1>", re.DOTALL)
_NUMBER = re.compile(r"case ([0-9]{1,9})\b")
_FINDING = re.compile(r"finding of case ([0-9]{1,9}): ([0-9a-f]{8})\b")


class Unanswerable(Exception):
    """What it read does not hold what the answer hangs on; the text is the expert's reply."""


class CallFails(Exception):
    """The expert's endpoint fails for this call."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What a message holds: its words, the numbers of cases in its instruction, and findings by case."""

    words: frozenset[str]
    numbers: frozenset[int]
    findings: dict[int, list[str]]
    wants_confidence: bool


def look_at(text: str) -> Sight:
    """Read what stands in the messages to an expert."""
    instruction = _OUTPUT.sub("", text)
    findings: dict[int, list[str]] = {}
    for number, token in _FINDING.findall(text):
        findings.setdefault(int(number), []).append(token)
    numbers = frozenset(int(number) for number in _NUMBER.findall(instruction))
    return Sight(read_words(text), numbers, findings, "Confidence: N" in instruction)


@dataclass(frozen=True, slots=True)
class Reader:
    """A simulated expert at work on the cases of a book."""

    expert: Expert
    book: Book

    def reply(self, text: str) -> str:
        """What it writes after reading this. Raises CallFails."""
        sight = look_at(text)
        case = self._find_asked(sight)
        if case is None:
            return UNCLEAR
        seen = sight.findings.get(case.number, [])
        random = self._draw(f"{case.number}/{'merge' if seen else 'call'}")
        if random.random() < self.expert.failure:
            raise CallFails(f"simulated: {self.expert.name} fails for case {case.number}")
        try:
            token = _take_most_frequent(seen, random) if seen else self._solve(case, sight)
        except Unanswerable as problem:
            return str(problem)
        confidence = state_confidence(self.expert, list_topics(self.book, case), self.book.seed)
        stated = f"\nConfidence: {confidence}" if sight.wants_confidence else ""
        return write_finding(case.number, token) + stated

    def _find_asked(self, sight: Sight) -> Case | None:
        """The last case of the instruction whose question is in sight."""
        cases = (self.book.cases[number] for number in sorted(sight.numbers, reverse=True) if number in self.book.cases)
        return next((case for case in cases if case.key_words <= sight.words), None)

    def _solve(self, case: Case, sight: Sight) -> str:
        """Its own finding. Raises Unanswerable."""
        if not case.key_words <= sight.words:
            raise Unanswerable(f"I do not see the finding of case {case.number}.")
        given = [self._find_given(self.book.cases[number], sight) for number in case.given]
        random = self._draw(f"{case.number}/knows")
        right = random.random() < self.expert.skill(case.topic)
        return self.book.write_token(case, given, 0 if right else random.randint(1, WRONG_ANSWERS))

    def _find_given(self, case: Case, sight: Sight) -> str:
        seen = sight.findings.get(case.number)
        return _take_most_frequent(seen, self._draw(f"{case.number}/given")) if seen else self._solve(case, sight)

    def _draw(self, what: str) -> Random:
        return Random(f"{self.book.seed}/{self.expert.name}/{what}")


def state_confidence(expert: Expert, topics: Sequence[int], seed: int) -> int:
    """How sure an expert says it is of a case that hangs on these topics, in per cent: its skills, more or less."""
    errors = [Random(f"{seed}/{expert.name}/belief/{topic}").uniform(-MISREAD, MISREAD) for topic in topics]
    beliefs = [min(1.0, max(0.0, expert.skill(topic) + error)) for topic, error in zip(topics, errors, strict=True)]
    return round(100 * prod(beliefs))


def list_topics(book: Book, case: Case) -> list[int]:
    """The topics that the finding of a case hangs on."""
    before = [topic for number in case.given for topic in list_topics(book, book.cases[number])]
    return before + ([] if case.topic == EVERYBODY else [case.topic])


def _take_most_frequent(tokens: Sequence[str], random: Random) -> str:
    """The token that is there most often, by lot among equals."""
    counts = Counter(tokens)
    most = max(counts.values())
    return random.choice(sorted(token for token, count in counts.items() if count == most))
