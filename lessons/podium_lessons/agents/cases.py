"""Cases: questions with a number, whose right findings only the seed knows. A task is made of them.

What an agent says to a case can be graded exactly, without any language model: its finding is a token that follows from
the seed, the case and the findings that the case hangs on.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from podium_lessons.agents.experts import EVERYBODY
from trainer.tasks.verifier import ExactText

KEY_WORD_CHARS = 4  # shorter words say little: "the", "my"


@dataclass(frozen=True, slots=True)
class Wording:
    """How a query words its cases. `label` is what a case is called, "" where cases have no number; `layout` has the
    gaps {question}, {ref} ("case 2") and {given}, which is `given` with the cases at {refs}."""

    label: str = "case"
    layout: str = "{question} ({ref}{given})"
    given: str = ", given the finding of {refs}"


PLAIN = Wording(label="", layout="{question}", given="")


@dataclass(frozen=True, slots=True)
class Case:
    """A question with its number. `given` are the cases whose findings it hangs on."""

    number: int
    question: str
    topic: int
    given: tuple[int, ...] = ()
    wording: Wording = Wording()

    @property
    def text(self) -> str:
        """The case as a query or an instruction words it."""
        refs = " and ".join(f"{self.wording.label} {number}" for number in self.given)
        given = self.wording.given.format(refs=refs) if refs else ""
        return self.wording.layout.format(question=self.question, ref=self.ref, given=given)

    @property
    def ref(self) -> str:
        """What it is called: by its number, or by its question."""
        return f"{self.wording.label} {self.number}" if self.wording.label else f"'{self.question}'"

    @property
    def key_words(self) -> frozenset[str]:
        """What must be read to know the question."""
        return read_words(self.question)

    def is_asked_in(self, instruction: str) -> bool:
        """Whether an instruction names the case."""
        if not self.wording.label:
            return self.key_words <= read_words(instruction)
        return re.search(rf"(?<!\w){re.escape(self.ref)}\b", instruction, re.IGNORECASE) is not None

    def write_finding(self, token: str) -> str:
        """How an expert says what it has found."""
        return f"The finding of {self.ref}: {token}"

    def read_findings(self, text: str) -> list[str]:
        """The tokens that stand in a text as findings of this case."""
        return re.findall(rf"finding of {re.escape(self.ref)}: ([0-9a-f]{{8}})\b", text)


def read_words(text: str) -> frozenset[str]:
    """The words of a text that say something."""
    return frozenset(word for word in re.findall(r"\w+", text.lower()) if len(word) >= KEY_WORD_CHARS)


@dataclass
class Book:
    """The cases by number, and their right findings, which only the seed knows."""

    seed: int
    cases: dict[int, Case] = field(default_factory=dict)

    def add(self, question: str, topic: int, given: Sequence[int] = (), wording: Wording = Wording()) -> Case:
        """A new case with the next number."""
        case = Case(len(self.cases) + 1, question, topic, tuple(given), wording)
        self.cases[case.number] = case
        return case

    def write_token(self, case: Case, given: Sequence[str], error: int = 0) -> str:
        """The finding of a case after these findings: the right one, or one of the errors that can be made."""
        return hashlib.sha256(f"{self.seed}/{case.number}/{','.join(given)}/{error}".encode()).hexdigest()[:8]

    def find_right_token(self, case: Case) -> str:
        """The right finding, after right ones."""
        return self.write_token(case, [self.find_right_token(self.cases[number]) for number in case.given])

    def make_verifier(self, case: Case) -> ExactText:
        """What grades an answer to a case."""
        return ExactText(case.write_finding(self.find_right_token(case)))

    def list_topics(self, case: Case) -> list[int]:
        """The topics that the finding of a case hangs on."""
        before = [topic for number in case.given for topic in self.list_topics(self.cases[number])]
        return before + ([] if case.topic == EVERYBODY else [case.topic])
