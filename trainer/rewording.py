"""Rewordings: copies of a demonstration whose query says the same in damaged words.

A small model that has seen two wordings of a question learns them by heart. In a copy some of the words that
the plan does not quote are dropped, replaced by words of other queries or change places, so that it must find
what matters by what stands around it. Words that the plan quotes, and numbers, are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random

from trainer.trajectories import Demonstration

DROP, REPLACE, SWAP = 0.10, 0.10, 0.05
_WORD = re.compile(r"[^\W\d_]{2,}")


def with_rewordings(rows: Sequence[Demonstration], copies: int, seed: int) -> list[Demonstration]:
    """The demonstrations, each followed by `copies` reworded ones."""
    random = Random(seed)  # noqa: S311
    spare = sorted({word for row in rows for word in _plain_words(row)})
    return [each for row in rows for each in (row, *_copies(row, copies, spare, random))]


def _copies(row: Demonstration, copies: int, spare: Sequence[str], random: Random) -> Iterator[Demonstration]:
    for _ in range(copies):
        query = reworded(row.query, _quoted(row), spare, random)
        messages = [
            said.model_copy(update={"content": query}) if said.role == "user" and said.content == row.query else said
            for said in row.messages
        ]
        yield row.model_copy(update={"messages": messages, "query": query})


def reworded(query: str, quoted: str, spare: Sequence[str], random: Random) -> str:
    """`query` with words that do not occur in `quoted` dropped, replaced by one of `spare`, or swapped."""
    words = query.split(" ")
    kept: list[str] = []
    for word in words:
        found = _WORD.search(word)
        chance = random.random()
        if found is None or found[0] in quoted or chance > DROP + REPLACE:
            kept.append(word)
        elif chance > DROP and spare:
            kept.append(word.replace(found[0], random.choice(spare)))
    for index in range(len(kept) - 1):
        if random.random() < SWAP and all(_is_free(word, quoted) for word in kept[index : index + 2]):
            kept[index], kept[index + 1] = kept[index + 1], kept[index]
    return " ".join(kept) or query


def _is_free(word: str, quoted: str) -> bool:
    return _WORD.fullmatch(word) is not None and word not in quoted


def _plain_words(row: Demonstration) -> list[str]:
    quoted = _quoted(row)
    return [word for word in _WORD.findall(row.query) if word not in quoted]


def _quoted(row: Demonstration) -> str:
    return " ".join(said.content for said in row.messages if said.role == "assistant")
