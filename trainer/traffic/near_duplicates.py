"""Which questions are nearly the same: they mean the same by their sentence vectors, and name the same numbers.

Near-duplicates share a split, so that nothing that is measured was learnt in other words.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import product

from orchestrator.retrieval import sentence_vectors
from orchestrator.retrieval.choose_workers import content_words
from trainer.errors import UnusableTasks
from trainer.tasks.suite import assign_split
from trainer.tasks.task import normalize_query

# "What is the weather in Paris" is 0.93 like "How is the weather in Paris today?", and 0.70 like the one of Rome.
LIKE_BY_MEANING = 0.8
# Of two that name the same numbers less will do to share a split: "Compute 6*7 for me" is 0.72 like "What is 6 * 7?".
LIKE_WITH_NUMBERS = 0.65
LIKE_BY_WORDS = 0.7  # share of common words, where the sentence model is not installed
MAX_CHARS = 2000  # of a question that is compared
_NUMBER = re.compile(r"[\w./-]*\d[\w./-]*")

SplitText = tuple[str, str]  # a question and its split


def find_near(texts: Sequence[str], others: Sequence[str], *, same: bool = False) -> Iterator[tuple[int, int]]:
    """The places of each text and each other that are near-duplicates; with `same` only of those that mean the same.
    Blocks for some 10 ms a new text."""
    by_numbers: defaultdict[frozenset[str], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((texts, others)):
        for place, text in enumerate(rows):
            by_numbers[_list_numbers(text)][side].append(place)
    for numbers, (left, right) in by_numbers.items():
        if left and right:
            least = LIKE_WITH_NUMBERS if numbers and not same else LIKE_BY_MEANING
            pairs = _compare([texts[k][:MAX_CHARS] for k in left], [others[k][:MAX_CHARS] for k in right], least)
            yield from ((left[i], right[j]) for i, j in pairs)


def _compare(texts: Sequence[str], others: Sequence[str], least: float) -> Iterator[tuple[int, int]]:
    if sentence_vectors.find_weights() is None:
        mine, theirs = _count_words(texts), _count_words(others)
        pairs = product(range(len(texts)), range(len(others)))
        yield from ((i, j) for i, j in pairs if measure_overlap(mine[i], theirs[j]) >= LIKE_BY_WORDS)
        return
    near = sentence_vectors.embed(texts) @ sentence_vectors.embed(others).T >= least
    yield from ((int(i), int(j)) for i, j in zip(*near.nonzero(), strict=True))


def _count_words(texts: Sequence[str]) -> list[Counter[str]]:
    return [Counter(content_words(text) or text.casefold().split()) for text in texts]


def measure_overlap(one: Counter[str], other: Counter[str]) -> float:
    """Dice's coefficient (1945): twice the words in common over the words of both."""
    return 2 * (one & other).total() / max(1, one.total() + other.total())


def group_near(texts: Sequence[str], *, same: bool = False) -> list[int]:
    """A number for each text: those that near-duplicates lead to, one after the other, have the same. `same` as in
    `find_near`."""
    groups = list(range(len(texts)))

    def find(place: int) -> int:
        while groups[place] != place:
            groups[place] = groups[groups[place]]
            place = groups[place]
        return place

    for one, other in find_near(texts, texts, same=same):
        first, second = sorted((find(one), find(other)))
        groups[second] = first
    return [find(place) for place in range(len(texts))]


def choose_split(queries: Sequence[str], tasks: Sequence[SplitText], chosen: str = "") -> str:
    """The split of new tasks that stay together: that of their near-duplicates among the tasks, else the `chosen` one,
    else by their words.

    Raises UnusableTasks where their near-duplicates are in several splits, or in another one than the chosen.
    """
    near = {tasks[place] for _, place in find_near(queries, [text for text, _ in tasks])}
    splits = {split for _, split in near}
    if len(splits) > 1:
        shown = " and ".join(f"{text[:80]!r} ({split})" for text, split in sorted(near)[:2])
        raise UnusableTasks(f"it is nearly the same as tasks of several splits, {shown}: in either it would leak")
    if near and chosen not in ("", *splits):
        text, split = min(near)
        raise UnusableTasks(f"it is nearly the same as {text[:80]!r}, which is in {split}: in {chosen} it would leak")
    return next(iter(splits), chosen or assign_split(min(map(normalize_query, queries))))


def _list_numbers(text: str) -> frozenset[str]:
    return frozenset(match.strip("./-").casefold() for match in _NUMBER.findall(text[:MAX_CHARS]))
