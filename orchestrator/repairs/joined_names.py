"""Find names that a query joins with the argument of a call, and that no call has.

A small model that has found the first of two names goes on as if there were no other: "how much do Hannah and Oscar
pay" became what Hannah pays, and "a scoop of strawberry and one of hazelnut" a scoop of strawberry. The worker answers
all the same. This is a doubt alone: the second may be none of the pool's things.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from orchestrator.plan import Step
from orchestrator.reader.cards import describe_whole
from orchestrator.repairs.named_workers import has_content
from orchestrator.retrieval.choose_workers import content_words
from pool_registry.actions import as_text
from pool_registry.calls.live_pool import LiveWorker

MAX_STEPS = 2  # of a plan that may be too short: the queries of longer ones join clauses, too
MAX_GAP = 80  # characters of the query beside a value: a query may be as long as a page, without a space
MAX_MENTIONS = 1000  # of a value in a query
MAX_VALUE_WORDS = 4  # an argument of more words is a request, and no name
_FILLER = r"(?:(?:a|an|the|one|for|of|in|at|on|to|from|with|by|that|those|my|our)\s+)*"
_NAME = r"[^\W_](?:[\w.:/@-]*[^\W_])?"
_JOINT = r"(?:and|or|plus|versus|vs\.?|&|\+)"
_AFTER = re.compile(rf"\s*,?\s+(?:{_JOINT}|than)\s+{_FILLER}({_NAME})", re.IGNORECASE)
_BEFORE = re.compile(rf"({_NAME})\s*,?\s+{_JOINT}\s+{_FILLER}$", re.IGNORECASE)


def list_card_words(workers: Iterable[LiveWorker]) -> frozenset[str]:
    """The content words on the cards of a pool."""
    return frozenset(word for worker in workers for word in content_words(describe_whole(worker)))


def list_left_out_names(query: str, steps: Sequence[Step], card_words: Collection[str]) -> list[str]:
    """The words that the query joins with a name in a call of a short plan, and that stand in none. Words of the cards
    and of needs are no names, nor are those without content and numbers."""
    if len(steps) > MAX_STEPS:
        return []
    values = [as_text(value) for step in steps for value in step.arguments.values()]
    common = {*card_words, *(word for step in steps for word in content_words(step.need))}
    joined = dict.fromkeys(word for value in values for word in _list_joined(query, value))
    return [
        word
        for word in joined
        if has_content(word)
        and not word.isdigit()
        and not any(word.casefold() in value.casefold() for value in values)
        and not common.issuperset(content_words(word))
    ]


def _list_joined(query: str, value: str) -> Iterator[str]:
    """The words that a query joins with a value, the one before it and the one after it."""
    if not 0 < len(value.split()) <= MAX_VALUE_WORDS:
        return
    mentions = re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", query, re.IGNORECASE)
    for match in islice(mentions, MAX_MENTIONS):
        start, end = match.span()
        joined = _BEFORE.search(query, max(0, start - MAX_GAP), start), _AFTER.match(query, end, end + MAX_GAP)
        yield from (name[1] for name in joined if name is not None)
