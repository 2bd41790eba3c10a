"""Whether answers to a question agree with the one that its author wrote: numbers as numbers, texts without case, white
space and what frames them.

What an author wrote is an answer, so agents that agree on not knowing keep nothing, whatever the language. Where
another answer has as many votes, nobody knows which one is right.
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

MIN_CHARS = 3  # of a text that is looked for inside a longer reply: "no" would stand in too many
_FRAME = re.compile(r"^[\s\"'“”‘’`*]+|[\s\"'“”‘’`*.!]+$")


@dataclass(frozen=True, slots=True)
class Agreement:
    """The answer of a question and how many voters gave it; `kind` is the rule that grades others, and `right` are the
    voters whose replies it accepts."""

    answer: JsonValue
    kind: str
    votes: int
    right: frozenset[str]


def find_agreement(written: str, replies: Mapping[str, str], needed: int) -> Agreement | None:
    """The answer that the author wrote, where at least `needed` voters gave it, and none other as often; else None.

    `replies` are texts by voter."""
    answer, answers = clean_answer(written), [clean_answer(reply) for reply in replies.values()]
    votes = sum(is_same(answer, other) for other in answers)
    rivals = [other for other in answers if not is_same(answer, other) and not is_empty(other)]
    most = max((sum(is_same(rival, other) for other in rivals) for rival in rivals), default=0)
    if not is_short(answer) or votes < needed or most >= votes:
        return None
    rule = make_rule(answer)
    right = frozenset(name for name, reply in replies.items() if rule.accepts(extract_answer(reply).strip()))
    return Agreement(write_expected(answer, rule.kind), rule.kind, votes, right)


def join_judged(answer: str, replies: Mapping[str, str], same: Collection[str], needed: int) -> Agreement | None:
    """The agreement of voters whose replies a judge takes for the same as `answer`; None for fewer than `needed`."""
    if len(same) < needed:
        return None
    texts = [clean_answer(answer)]
    for name in same:
        texts += [extract_answer(replies[name]).strip(), clean_answer(replies[name])]
    return Agreement(list(dict.fromkeys(texts)), "one_of", len(same), frozenset(same))


def is_same_reply(answer: str, reply: str) -> bool:
    """Whether a reply is the same as an answer."""
    return is_same(clean_answer(answer), clean_answer(reply))


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
    return StatesAll((answer,)) if len(answer) >= MIN_CHARS else ExactText(answer)


def write_expected(answer: str, kind: str) -> JsonValue:
    """The answer as a line of a task file holds it for this kind of rule."""
    return [answer] if kind == "states_all" else read_answer(answer) if kind == "number" else answer


def is_empty(reply: str) -> bool:
    """Whether a reply is no answer: nothing, or that no worker can do this."""
    text = extract_answer(reply).strip()
    return not text or is_refusal(text)


def clean_answer(reply: str) -> str:
    """A reply without what frames its answer: a tag, quotes, a full stop."""
    text, before = extract_answer(reply), None
    while text != before:
        text, before = _FRAME.sub("", text), text
    return text
