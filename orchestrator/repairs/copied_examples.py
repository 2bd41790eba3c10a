"""Find calls that repeat the example of a worker's card and have nothing to do with the query.

A small model that is shown a card which does not fit tends to copy its example: "is my train on time" became the
distance from LIS to GRU, a true answer to another question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from orchestrator.plan import Step
from orchestrator.reader.cards import quote_example
from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.live_pool import LiveWorker

MIN_LETTERS = 3  # of a word that says what a call is about

_WORD = re.compile(r"[^\W_]+")


def find_copied_example(steps: Sequence[Step], workers: Mapping[str, LiveWorker], query: str) -> int | None:
    """The place, from 0 on, of the first step that sees no other and whose arguments hold words of the example on the
    worker's card alone, and none of the query; None where there is none."""
    topics = _list_words(query)
    for place, step in enumerate(steps):
        worker = workers.get(step.worker)
        if worker is None or step.access or _takes_choice(step.arguments, worker.parameters):
            continue
        words = _list_words(" ".join(map(as_text, step.arguments.values())))
        from_example = any(word.isalpha() for word in words) and words <= _list_words(quote_example(worker))
        from_query = any(topic.startswith(word) for word in words for topic in topics)  # "LIS" is about Lisbon
        if from_example and not from_query:
            return place
    return None


def _list_words(text: str) -> set[str]:
    """The numbers and the longer words of a text."""
    words = _WORD.findall(text.casefold())
    return {word for word in words if len(word) >= MIN_LETTERS or word.isdigit()}


def _takes_choice(arguments: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> bool:
    """Whether an argument is one of the choices of its parameter, which the query may name in other words."""
    properties = schema.get("properties")
    rules = properties if isinstance(properties, Mapping) else {}
    return any(isinstance(rule := rules.get(name), Mapping) and rule.get("enum") for name in arguments)
