"""Find the workers that a query names: words of theirs stand in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from orchestrator.reader.bind_needs import score_need
from orchestrator.reader.cards import describe_whole
from orchestrator.retrieval.choose_workers import content_words
from pool_registry.calls.live_pool import LiveWorker

MAX_CARDS = 2  # a word that more cards have than these says nothing about a worker
# Words of questions that name nothing; others that only join words are no content words.
_ASKING = re.compile(
    r"how|what|which|who|whose|when|where|why|much|many|do|does|did|have|has|had|can|could|would|should|give|tell|show|"
    r"find|please|me|i|my|we|our|you|your|from|before|after",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class NamedWorker:
    """A worker with words of the query on its card, and how much it is like the query (1 is the same)."""

    worker: LiveWorker
    likeness: float


def list_named(query: str, workers: Mapping[str, LiveWorker], covered: Collection[str] = ()) -> list[NamedWorker]:
    """The workers that a query names by other words than those that are `covered`, the likeliest first. Blocks: call it
    from a thread."""
    cards = {name: set(content_words(describe_whole(worker))) for name, worker in workers.items()}
    counts = Counter(word for card in cards.values() for word in card)
    words = {word for word in content_words(query) if has_content(word) and not word.isdigit()}
    telling = {word for word in words.difference(covered) if counts[word] <= MAX_CARDS}
    named = [workers[name] for name, card in cards.items() if card & telling]
    scores = score_need(query, named) if named else []
    pairs = [NamedWorker(worker, score) for worker, score in zip(named, scores, strict=True)]
    return sorted(pairs, key=lambda item: -item.likeness)


def has_content(word: str) -> bool:
    """Whether a word of a question may name something."""
    return not _ASKING.fullmatch(word) and bool(content_words(word))
