"""Chooses the workers of a large pool that an orchestrator is shown for a query: at most `Limits.max_shown`.

A pool that fits is shown whole, and nothing here runs. Otherwise every worker is scored by meaning (cosine of
sentence vectors, sentence_vectors.py), and reranked by the words it shares with the query (BM25, also over the names of
its arguments); a worker whose full name stands in the query comes first. The scores are added, not the ranks:
where wording differs, BM25's ranks are noise, and equal rank fusion lost a third of Recall@8 (bench/retrieval.py).
Where the sentence model is not installed BM25 ranks alone.

The choice is recorded in the episode's first turn, for the trace, the page and demonstrations. Agents are not ranked
against tools: their descriptions say how they work, not what a query is about. They get up to half of all places; if
there are more agents, the best of them. A worker that is not shown can still be called: it is in the pool.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from orchestrator.engine.episode import Episode
from orchestrator.plan import ShownWorkers
from orchestrator.retrieval import sentence_vectors
from pool_registry.actions import JsonValue
from pool_registry.calls.live_pool import LivePool, LiveWorker

WORDS_WEIGHT = 0.01  # a cosine is at most 1, and BM25 about 10 when most words agree
NAMED = 1000.0  # above every other score
MAX_QUERY_CHARS = 4000  # the first pages say what a query is about
BY_WORDS, BY_BOTH = "words", "meaning and words"

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class WorkerProfile:
    """The texts by which a worker is found."""

    name: str
    description: str
    arguments: tuple[str, ...] = ()

    @property
    def meaning(self) -> str:
        return f"{' '.join(_WORD.findall(self.name))}: {self.description}"

    @property
    def words(self) -> str:
        return " ".join((self.name, self.description, *self.arguments))


async def choose_shown(episode: Episode, pool: LivePool) -> ShownWorkers | None:
    """The workers that an episode's orchestrator is shown; None for the whole pool. Chosen once per episode."""
    if len(pool.workers) <= pool.pool.limits.max_shown:
        return None
    return episode.shown or await asyncio.to_thread(select_workers, episode.query, pool)


def narrow_pool(pool: LivePool, shown: ShownWorkers | None) -> LivePool:
    """The pool with the shown workers only, for prompt and dialect. Workers that it no longer has are left out."""
    if shown is None:
        return pool
    return pool.narrow(shown.workers)


def select_workers(query: str, pool: LivePool, needed: Collection[str] = ()) -> ShownWorkers | None:
    """The workers to show for a query, in pool order; None when all fit. `needed` ones are always among them: a
    demonstration must not call workers that its prompt does not show. Blocks: call it from a thread."""
    limit, workers = pool.pool.limits.max_shown, list(pool.workers.values())
    if len(workers) <= limit:
        return None
    scores, by = score_workers(query, [describe_worker(worker) for worker in workers])
    tools = [worker.role == "tool" for worker in workers]
    first = [place for place, worker in enumerate(workers) if worker.spec.name in needed]
    places = pick_places(scores, tools, limit, first)
    return ShownWorkers({workers[place].spec.name: round(scores[place], 4) for place in places}, len(workers), by)


def pick_places(scores: Sequence[float], tools: Sequence[bool], limit: int, first: Sequence[int] = ()) -> list[int]:
    """The indices of the workers to show, ascending: all of `first`, agents in up to half of the remaining places,
    then tools by score, then agents again if there are too few tools. Equal scores: the lower index first."""
    order = sorted(set(range(len(scores))) - set(first), key=lambda place: (-scores[place], place))
    agents = [place for place in order if not tools[place]]
    room = max(0, limit - len(first))
    kept = agents[: room // 2]
    chosen_tools = [place for place in order if tools[place]][: room - len(kept)]
    spare = agents[len(kept) : room - len(chosen_tools)]
    return sorted({*first, *kept, *chosen_tools, *spare})


def score_workers(query: str, cards: Sequence[WorkerProfile]) -> tuple[list[float], str]:
    """A score for each worker (higher is better), and the ranking method."""
    query = query[:MAX_QUERY_CHARS]
    words = score_words(query, cards)
    if sentence_vectors.find_weights() is None:
        scores, by = words, BY_WORDS
    else:
        scores, by = combine_scores(score_meaning(query, cards), words), BY_BOTH
    lowered = query.lower()
    return [score + NAMED * _is_named(card, lowered) for score, card in zip(scores, cards, strict=True)], by


def combine_scores(meaning: Sequence[float], words: Sequence[float]) -> list[float]:
    """The combined score: a convex combination up to scale (Bruch et al., 2023), with a small weight on words."""
    return [one + WORDS_WEIGHT * other for one, other in zip(meaning, words, strict=True)]


def score_words(query: str, cards: Sequence[WorkerProfile]) -> list[float]:
    """Compute BM25 of the query on each card."""
    words = content_words(query)
    if not words:
        return [0.0] * len(cards)
    return [float(score) for score in _index(tuple(card.words for card in cards)).get_scores(words)]


def score_meaning(query: str, cards: Sequence[WorkerProfile]) -> list[float]:
    """Compute the cosine of the query's sentence vector and each card's."""
    vectors = sentence_vectors.embed([query, *(card.meaning for card in cards)])
    return [float(score) for score in vectors[1:] @ vectors[0]]


def describe_worker(worker: LiveWorker) -> WorkerProfile:
    spec = worker.spec
    return WorkerProfile(spec.name, spec.description, tuple(_argument_names(worker.parameters)))


def _argument_names(schema: Mapping[str, JsonValue]) -> list[str]:
    properties = schema.get("properties")
    return list(properties) if isinstance(properties, Mapping) else []


def _is_named(card: WorkerProfile, query: str) -> bool:
    """Whether a query names a worker. A name of a single word does not count: it may be just a word."""
    together = "_" in card.name or "-" in card.name
    if not together or card.name not in query:  # compiling a pattern for each of a thousand names takes 0.1 s
        return False
    return re.search(rf"(?<![\w-]){re.escape(card.name)}(?![\w-])", query) is not None


@lru_cache(maxsize=16)
def _index(texts: tuple[str, ...]) -> Any:
    import bm25s

    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it logs every index that it builds
    retriever = bm25s.BM25(method="lucene")
    retriever.index([content_words(text) or [""] for text in texts], show_progress=False)
    return retriever


def content_words(text: str) -> list[str]:
    """The words that are no stop words, roughly in the singular: "rates" finds "rate"."""
    from bm25s.stopwords import STOPWORDS_EN

    return [_singular(word) for word in _WORD.findall(text.lower()) if word not in STOPWORDS_EN]


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
