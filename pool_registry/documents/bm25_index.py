"""BM25 indexes on disk, through bm25s: built once per content, then loaded. Used by `search` and `documents`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pool_registry.errors import WorkerFault

TITLE_WEIGHT = 3  # a passage's title counts as often as this


@dataclass(frozen=True, slots=True)
class Index:
    """A searchable corpus: bm25s's retriever and the passages as a search returns them."""

    retriever: Any
    shown: Sequence[str]

    def search(self, query: str, top_k: int) -> list[str]:
        """Return the best passages, best first, without those that share no word with the query."""
        return [self.shown[place] for place in self.places(query, top_k)]

    def places(self, query: str, top_k: int) -> list[int]:
        """Return the indices in `shown` of the best passages."""
        tokens = library().tokenize([query], stopwords=None, show_progress=False, return_ids=False)
        if not tokens[0]:
            return []
        k = min(top_k, len(self.shown))
        matches, scores = self.retriever.retrieve(tokens, k=k, show_progress=False)
        pairs = zip(matches[0].tolist(), scores[0].tolist(), strict=True)
        return [place for place, score in pairs if score > 0]


def library() -> Any:
    """Import bm25s late (it imports numpy and more) and without its debug messages."""
    import bm25s

    logging.getLogger("bm25s").setLevel(logging.WARNING)
    return bm25s


def build(titled: Sequence[tuple[str, str]], folder: Path) -> None:
    """Index (title, text) pairs into `folder`, which must be empty or new. Raises WorkerFault without a word."""
    bm25s = library()
    texts = [" ".join([title] * TITLE_WEIGHT + [text]) for title, text in titled]
    tokens = bm25s.tokenize(texts, stopwords=None, show_progress=False, return_ids=False)
    if not any(tokens):
        raise WorkerFault("no_words", "the texts hold no word of two letters or more; add files with words to search")
    retriever = bm25s.BM25(method="lucene")
    retriever.index(tokens, show_progress=False)
    retriever.save(str(folder))


def load(folder: Path) -> Any:
    """Load the retriever in `folder`, mapped into memory."""
    return library().BM25.load(str(folder), mmap=True)
