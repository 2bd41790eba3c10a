"""Questions from an agent: it is shown the card of one worker, or a passage, and writes questions as JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pool_registry.actions import as_text
from pool_registry.text import one_line, shorten
from trainer.tasks.task import normalize_query
from trainer.tasks.verifier import parse_whole_number

MAX_QUESTION_CHARS = 600
MAX_ANSWER_CHARS = 80
MAX_CARD_CHARS = 600
MAX_PASSAGE_CHARS = 1500
MAX_EARLIER = 12  # questions that the author is shown, so that it writes others
PROMPT = """\
Write {count} different questions that a person might ask, {about}.
Each must make sense alone, have exactly one correct answer that does not change with time, and be short to answer: a \
number, a name or a few words. Do not state the answer in the question, and do not name any assistant or tool.
{earlier}Write one JSON object per line and nothing else, such as:
{{"question": "...", "answer": "..."}}"""
FIELD = "each of which needs an expert in the field that this text describes: {text}"
PASSAGE = "each of which is answered by this passage: {text}"
EARLIER = "Do not ask these again: {questions}\n"
# Asked for in the query itself, so that whoever answers it can be graded.
FORMS = {"number": "Reply with the number alone.", "text": "Reply with the answer alone."}
_FENCE = re.compile(r"\s*```\w*\s*")


@dataclass(frozen=True, slots=True)
class Subject:
    """What questions are asked about: the field of an agent, by its card, or a passage that `worker` finds."""

    worker: str
    text: str
    is_passage: bool = False


class Question(BaseModel):
    """One line of what an author writes."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    question: str = Field(min_length=8, max_length=MAX_QUESTION_CHARS)
    answer: str | int | float = Field(union_mode="left_to_right")

    @property
    def key(self) -> str:
        """What makes two questions the same."""
        return normalize_query(self.question).casefold()

    @property
    def query(self) -> str:
        """The question with the form of its answer, as it is asked and learnt."""
        is_number = parse_whole_number(as_text(self.answer).strip()) is not None
        return f"{one_line(self.question)} {FORMS['number' if is_number else 'text']}"


def write_prompt(subject: Subject, count: int, earlier: Sequence[str]) -> str:
    """The request for so many questions. Texts of the pool go in as JSON strings: none can be closed from within."""
    form, most = (PASSAGE, MAX_PASSAGE_CHARS) if subject.is_passage else (FIELD, MAX_CARD_CHARS)
    about = form.format(text=json.dumps(shorten(one_line(subject.text), most), ensure_ascii=False))
    shown = json.dumps(list(earlier[-MAX_EARLIER:]), ensure_ascii=False)
    return PROMPT.format(count=count, about=about, earlier=EARLIER.format(questions=shown) if earlier else "")


def parse_questions(text: str) -> tuple[list[Question], int]:
    """The questions in an author's reply, and how many of its other lines are none. Never raises."""
    questions: list[Question] = []
    problems = 0
    for line in text.splitlines():
        if not line.strip() or _FENCE.fullmatch(line):
            continue
        try:
            question = Question.model_validate_json(line.strip().rstrip(","))
        except ValidationError:
            problems += 1
            continue
        if is_short(as_text(question.answer)):
            questions.append(question)
        else:
            problems += 1
    return questions, problems


def is_short(answer: str) -> bool:
    """Whether an answer can be compared: one line of a few words."""
    return 0 < len(answer.strip()) <= MAX_ANSWER_CHARS and "\n" not in answer.strip()


def states_answer(question: str, answer: str) -> bool:
    """Whether a question holds its answer as whole words."""
    words = re.escape(one_line(answer).casefold())
    return re.search(rf"(?<!\w){words}(?!\w)", one_line(question).casefold()) is not None


def names_worker(question: str, workers: Collection[str]) -> bool:
    """Whether a question names a worker by a name that is no word of a language."""
    return any(("_" in name or "-" in name) and name in question.casefold() for name in workers)
