"""Demonstrations with made-up names and numbers, so that a small model learns to quote.

A plan quotes names and numbers of its query. Where training shows few different ones (some hundred companies
and countries), a small model learns them by heart and fails on every other. A variant of a demonstration puts
made-up words in the place of what its turns quote, in the query and in every turn alike. It is no trajectory
of the pool any more, and is marked so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

from trainer.demonstrations.transcripts import Demonstration

WORD = re.compile(r"[^\W\d_][\w'’-]*|\d+")
RARE = 0.02  # what more than this share of the demonstrations quotes is the task's language, no name
# What names are made of; common parts stand several times. The rare ones matter as much: a token that training does
# not show is one that the model unlearns to write, and the next country's name begins with it.
# ruff: noqa: SIM905  readable as texts
ONSETS = (
    "b c d f g h j k l m n p r s t v w y z b d g k l m n r s t "
    "bh bl br ch cl cr dj dh dr fl fr gh gl gr gu kh kl kr kw ky ll mb my nd ng nj ny ph pl pr qu rh rw sc sh sk sl sm "
    "sn sp st sv sw sz th tj tl tr ts tw tz vl vr wh wr x zh zw"
).split()
VOWELS = (
    "a e i o u " * 4 + "a i y aa ai ao au aw ay ea ee ei eo eu ia ie io iu oa oe oi oo ou oy ua ue ui uo é ô"
).split()
CODAS = [""] * 70 + (
    "n n r s l m t d k n r b c ch ck ct f ft g h ht ld lk lt mp nd ng nk ns nt p rd rg rk rl rm rn rs rt rz sk ss st "
    "sw th ts v w x z"
).split()
ENDINGS = (
    "ia ia land stan istan burg ville ica os as is an en on um ania onia eria alia anda ola ova istan ea ya".split()
)


def make_variants(rows: Sequence[Demonstration], count: int, seed: int) -> list[Demonstration]:
    """`count` variants of every demonstration that quotes something rare."""
    random = Random(f"made-up:{seed}")  # noqa: S311
    quoted = [find_quoted_words(row) for row in rows]
    seen = Counter(word for words in quoted for word in words)
    made = []
    for row, words in zip(rows, quoted, strict=True):
        rare = [word for word in words if seen[word] <= max(1, RARE * len(rows))]
        for _ in range(count if rare else 0):
            made.append(_replace_words(row, {word: make_similar_word(word, random) for word in rare}))
    return made


def find_quoted_words(row: Demonstration) -> list[str]:
    """The names and the numbers from three digits on that both the query and a turn hold, in order."""
    turns = [message.content for message in row.messages if message.role == "assistant"]
    written = {word for turn in turns for word in WORD.findall(turn)}
    words = dict.fromkeys(WORD.findall(row.query))
    return [word for word in words if word in written and len(word) > 2 and (word[0].isupper() or word.isdigit())]


def make_similar_word(word: str, random: Random) -> str:
    """Something else of the same sort: a number, a code of capitals or a name."""
    if word.isdigit():
        return str(random.randrange(10 ** random.randint(2, 5)))
    if word.isupper():
        return "".join(random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=len(word)))
    return make_name(random)


def make_name(random: Random) -> str:
    """A name that no atlas knows, like Borvelia or Rwysk."""
    parts = [_make_syllable(random) for _ in range(random.randint(1, 3))]
    parts += [random.choice(ENDINGS)] if len(parts) == 1 or random.random() < 0.35 else []
    return "".join(parts).capitalize()


def _make_syllable(random: Random) -> str:
    onset = random.choice(ONSETS) if random.random() < 0.9 else ""
    return onset + random.choice(VOWELS) + random.choice(CODAS)


def _replace_words(row: Demonstration, names: Mapping[str, str]) -> Demonstration:
    def replace(text: str) -> str:
        return WORD.sub(lambda match: names.get(match[0], match[0]), text)

    messages = [message.model_copy(update={"content": replace(message.content)}) for message in row.messages]
    return Demonstration(messages=messages, query=replace(row.query), episode=row.episode, source="made up")
