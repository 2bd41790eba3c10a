"""How people type: small letters, a slip of the finger, a word before and one after."""

from __future__ import annotations

import re
from random import Random

from trainer.tasks.everyday.everyday_data import load_everyday
from trainer.tasks.everyday.questions.question import EverydayQuestion

_GAP = re.compile(r"(\{\w+\})")
_WORD = re.compile(r"[a-z]{5,}")


def write_query(question: EverydayQuestion, random: Random) -> str:
    """The question's text with its gaps filled, in somebody's way of typing. What stands in gaps is never misspelt."""
    text = question.text
    kind = random.random()
    if kind < 0.22:
        text = _write_small(text)
    elif kind < 0.28:
        text = _slip(text, random)
    query = text.format(**question.gaps)
    if question.small_letters and random.random() < 0.08:
        query = query.lower()
    if random.random() < 0.2:
        query = query.rstrip(".?")
    if random.random() < 0.08:
        query = random.choice(load_everyday().openings) + query
    if random.random() < 0.06 and query[-1] not in ".?":
        query += random.choice(load_everyday().endings)
    return query


def _write_small(text: str) -> str:
    """The text in small letters, but for what stands in its gaps."""
    return "".join(piece if place % 2 else piece.lower() for place, piece in enumerate(_GAP.split(text)))


def _slip(text: str, random: Random) -> str:
    """The text with two neighbouring letters of a word swapped, or one left out."""
    pieces = _GAP.split(text)
    words = [(place, word) for place in range(0, len(pieces), 2) for word in _WORD.finditer(pieces[place])]
    if not words:
        return text
    place, word = random.choice(words)
    at = word.start() + random.randrange(1, len(word.group()) - 2)
    piece = pieces[place]
    swapped = piece[at + 1] + piece[at] if random.random() < 0.5 else piece[at]
    pieces[place] = piece[:at] + swapped + piece[at + 2 :]
    return "".join(pieces)
