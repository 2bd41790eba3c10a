"""Candidates: questions of recorded runs that may become tasks, with what is said about their answers.

Wordings that mean the same and have the same answer are one candidate; near-duplicates with other answers are
candidates of one group, and of one split. A wrong answer without a correction teaches nothing: its candidate needs the
right one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from orchestrator.traces.store import EpisodeRow, Store
from pool_registry.text import shorten
from trainer.errors import UnusableTasks
from trainer.tasks.practice.stored import open_task_book
from trainer.tasks.practice.traffic_record import digest_query, read_traffic
from trainer.tasks.sources.jsonl import FileLine
from trainer.traffic.evidence import Evidence, list_judged_runs
from trainer.traffic.near_duplicates import SplitText, choose_split, group_near
from trainer.traffic.personal_data import PersonalMark, find_personal_data

Concern = Literal["personal", "answer", "disputed", "leak", ""]
NEEDS_ANSWER = "needs the right answer: nobody has said which one that is"
ANSWER_CHARS = 80  # of an answer in a sentence


@dataclass(frozen=True, slots=True)
class Candidate:
    """One question. `answer` is the right one, "" where nobody knows it or people disagree; `choices` are those that
    may be right then: what people call so, and what a corrected plan answered. `also` are other wordings. Candidates
    with one `group` are near-duplicates. `concern` says why a person has to look at it before it is accepted, `reason`
    in a sentence; both are "" where nothing is against it."""

    id: str
    query: str
    answer: str
    choices: tuple[str, ...]
    also: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    group: str
    split: str
    marks: tuple[PersonalMark, ...]
    concern: Concern
    reason: str


@dataclass(frozen=True, slots=True)
class Question:
    """The runs that asked one question in the same words, the newest first."""

    query: str
    evidence: tuple[Evidence, ...]

    @property
    def answers(self) -> dict[str, str]:
        """The answers that are called right, by their text in small letters, the one that was said last first."""
        newest_first = sorted(self.evidence, key=lambda row: row.at, reverse=True)
        return {_fold(row.answer): row.answer for row in newest_first if row.answer}

    @property
    def answer(self) -> str:
        """The answer that was called right last, "" where none was."""
        return next(iter(self.answers.values()), "")

    @property
    def is_disputed(self) -> bool:
        """Whether two answers are called right, or one is called right and wrong."""
        wrong = {_fold(row.answered) for row in self.evidence if row.verdict is False}
        return len(self.answers) > 1 or not wrong.isdisjoint(self.answers)

    @property
    def unjudged_answer(self) -> str:
        """What a corrected plan answered that nobody has judged."""
        return next((row.answered for row in self.evidence if row.verdict is None), "")


def list_candidates(store: Store, pool: str) -> list[Candidate]:
    """What may become a task of a pool, the newest first, near-duplicates beside each other. Blocks for some 10 ms a
    new question. Raises UnusableTasks where what is remembered about the pool is damaged."""
    store.traces.flush()
    traffic, book = read_traffic(pool), open_task_book(pool)
    lines = book.read()
    taken = {digest_query(row.task.query) for row in (*lines, *book.list_struck()) if row.task}
    settled = taken | traffic.struck | traffic.accepted
    questions = _gather(list_judged_runs(store, pool, traffic.clients))
    return group_candidates(
        [question for digest, question in questions.items() if digest not in settled], list_split_texts(lines)
    )


def list_split_texts(lines: Sequence[FileLine]) -> list[SplitText]:
    """The questions of tasks with their splits."""
    return [(row.task.query, row.task.ref.split) for row in lines if row.task is not None]


def _gather(runs: Sequence[tuple[EpisodeRow, Evidence]]) -> dict[str, Question]:
    """The questions by what they are remembered by."""
    by_query: defaultdict[str, list[tuple[EpisodeRow, Evidence]]] = defaultdict(list)
    for row, evidence in runs:
        by_query[digest_query(row.query)].append((row, evidence))
    return {
        digest: Question(rows[0][0].query, tuple(evidence for _, evidence in rows)) for digest, rows in by_query.items()
    }


def group_candidates(questions: Sequence[Question], tasks: Sequence[SplitText]) -> list[Candidate]:
    """The candidates of these questions; near-duplicates get one split, that of the tasks which they are like."""
    groups: defaultdict[int, list[Question]] = defaultdict(list)
    for question, group in zip(questions, group_near([question.query for question in questions]), strict=True):
        groups[group].append(question)
    candidates: list[Candidate] = []
    for members in groups.values():
        merged = _merge_same(members)
        try:
            split, problem = choose_split([question.query for question in members], tasks), ""
        except UnusableTasks as error:
            split, problem = "", str(error)
        name = digest_query(members[0].query)
        candidates += [_make_candidate(question, also, name, split, problem) for question, also in merged]
    return candidates


def _merge_same(members: Sequence[Question]) -> list[tuple[Question, tuple[str, ...]]]:
    """Near-duplicates with the same answer as one question, with its other wordings; others as they are."""
    by_answer: defaultdict[tuple[int, str], list[Question]] = defaultdict(list)
    meanings = group_near([question.query for question in members], same=True)
    for place, (question, meaning) in enumerate(zip(members, meanings, strict=True)):
        is_clear = len(question.answers) == 1 and not question.is_disputed
        by_answer[(meaning, _fold(question.answer)) if is_clear else (-1 - place, "")].append(question)
    return [
        (
            replace(same[0], evidence=tuple(row for question in same for row in question.evidence)),
            tuple(question.query for question in same[1:]),
        )
        for same in by_answer.values()
    ]


def _make_candidate(question: Question, also: tuple[str, ...], group: str, split: str, leak: str) -> Candidate:
    answer = "" if question.is_disputed else question.answer
    choices = tuple(filter(None, (*question.answers.values(), question.unjudged_answer)))
    marks = find_personal_data((question.query, answer))
    concern, reason = _find_concern(question, marks, leak)
    return Candidate(
        id=digest_query(question.query),
        query=question.query,
        answer=answer,
        choices=() if answer else tuple(dict.fromkeys(choices)),
        also=also,
        evidence=question.evidence,
        group=group,
        split=split,
        marks=marks,
        concern=concern,
        reason=reason,
    )


def _find_concern(question: Question, marks: Sequence[PersonalMark], leak: str) -> tuple[Concern, str]:
    if leak:
        return "leak", leak
    if not question.answer:
        return "answer", NEEDS_ANSWER
    if question.is_disputed:
        shown = " or ".join(shorten(text, ANSWER_CHARS) for text in question.answers.values())
        return "disputed", f"people disagree whether {shown} is right: say which answer is"
    if marks:
        listed = ", ".join(f"{mark.kind} ({shorten(mark.text, ANSWER_CHARS)})" for mark in marks)
        return "personal", f"it may hold {listed}: take it out, or confirm that it may stay"
    return "", ""


def _fold(answer: str) -> str:
    return " ".join(answer.split()).casefold()


def find_by_id(candidates: Sequence[Candidate]) -> Mapping[str, Candidate]:
    """The candidates by their ids."""
    return {candidate.id: candidate for candidate in candidates}
