"""Whether answers to a question agree: numbers as numbers, texts without case, white space and what frames them.

Refusals have no vote. Where two different answers have equally many votes, nobody knows which one is right.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from orchestrator.reader.refusal import is_refusal
from pool_registry.actions import JsonValue
from trainer.tasks.practice.agents.propose import is_short
from trainer.tasks.sources.files.cells import read_answer
from trainer.tasks.sources.jsonl import TOLERANCE
from trainer.tasks.verifier import ExactText, NumberWithin, StatesAll, extract_answer, parse_whole_number

MIN_STATED_CHARS = 3  # of a text that is looked for inside a longer reply: "no" would be found in too many
_FRAME = re.compile(r"^(?:the|an?)\s+|^[\s\"'“”‘’`*]+|[\s\"'“”‘’`*.!]+$", re.IGNORECASE)
_REFUSES = re.compile(
    r"\b(?:(?:do|does|did)(?: not|n['’]t) know|can(?:not|['’]t| not)|unable to|not (?:sure|certain|able)|"
    r"no (?:information|idea|answer)|unknown|n/a|sorry|insufficient|as an ai)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Agreement:
    """The answer that most votes gave and how many did; `kind` is the rule that grades others, and `right` are the
    voters whose replies it accepts."""

    answer: JsonValue
    kind: str
    votes: int
    right: frozenset[str]


def find_agreement(replies: Mapping[str, str], needed: int) -> Agreement | None:
    """The answer that at least `needed` voters gave and more than any other; None where there is none.

    `replies` are texts by voter. Of equal answers the first is taken as it is written."""
    given = {name: reply for name, reply in replies.items() if not refuses(reply)}
    answers = [answer for answer in dict.fromkeys(map(clean_answer, given.values())) if is_short(answer)]
    counts: dict[str, int] = {}
    for answer in answers:
        if not any(is_same(answer, counted) for counted in counts):
            counts[answer] = sum(is_same(answer, clean_answer(reply)) for reply in given.values())
    most = max(counts.values(), default=0)
    leading = [answer for answer, count in counts.items() if count == most]
    if most < needed or len(leading) > 1:
        return None
    rule = make_rule(leading[0])
    right = frozenset(name for name, reply in given.items() if rule.accepts(extract_answer(reply).strip()))
    return Agreement(write_expected(leading[0], rule.kind), rule.kind, most, right)


def join_judged(answer: str, replies: Mapping[str, str], same: Collection[str], needed: int) -> Agreement | None:
    """The agreement of voters whose replies a judge takes for the same as `answer`; None for fewer than `needed`."""
    if len(same) < needed:
        return None
    texts = [clean_answer(answer)]
    for name in same:
        texts += [extract_answer(replies[name]).strip(), clean_answer(replies[name])]
    return Agreement(list(dict.fromkeys(texts)), "one_of", len(same), frozenset(same))


def is_same_reply(answer: str, reply: str) -> bool:
    """Whether a reply is an answer, and the same as another."""
    return not refuses(reply) and is_same(clean_answer(answer), clean_answer(reply))


def is_same(answer: str, other: str) -> bool:
    """Whether two cleaned answers are the same number or the same text."""
    number, other_number = parse_whole_number(answer), parse_whole_number(other)
    if number is None or other_number is None:
        return ExactText(answer).accepts(other)
    return NumberWithin(number, TOLERANCE).accepts(other)


def make_rule(answer: str) -> NumberWithin | StatesAll | ExactText:
    """The rule that grades answers to the task: a text may stand in a short sentence."""
    number = parse_whole_number(answer)
    if number is not None:
        return NumberWithin(number, TOLERANCE)
    return StatesAll((answer,)) if len(answer) >= MIN_STATED_CHARS else ExactText(answer)


def write_expected(answer: str, kind: str) -> JsonValue:
    """The answer as a line of a task file holds it for this kind of rule."""
    return [answer] if kind == "states_all" else read_answer(answer) if kind == "number" else answer


def refuses(reply: str) -> bool:
    """Whether a reply is no answer: empty, or words for not knowing."""
    text = extract_answer(reply).strip()
    return not text or is_refusal(text) or _REFUSES.search(text) is not None


def clean_answer(reply: str) -> str:
    """A reply without what frames its answer: a tag, quotes, an article, a full stop."""
    text, before = extract_answer(reply), None
    while text != before:
        text, before = _FRAME.sub("", text), text
    return text
