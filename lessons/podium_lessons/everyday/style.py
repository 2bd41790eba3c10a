"""How people type: small letters, a slip of the finger, a small number as a word, a word before and one after."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random

from podium_lessons.casual.spell import spell_number
from podium_lessons.everyday.everyday_data import load_style
from podium_lessons.everyday.questions.question import EverydayQuestion

_GAP = re.compile(r"(\{\w+\})")
_WORD = re.compile(r"[a-z]{5,}")
_LONE_GAP = re.compile(r"(?<!\S)\{(\w+)\}(?= [a-z])")  # "{a} apples", and neither "${a}" nor "{a}%" nor "3 * {a}"
WORDS_SHARE = 0.25  # of the questions write such numbers as words
LARGEST_WORD = 20


def write_query(question: EverydayQuestion, random: Random) -> str:
    """The question's text with its gaps filled, in somebody's way of typing. What stands in gaps is never misspelt."""
    text = question.text
    kind = random.random()
    if kind < 0.22:
        text = _write_small(text)
    elif kind < 0.28:
        text = _slip(text, random)
    gaps = _spell_small_numbers(text, question.gaps) if random.random() < WORDS_SHARE else question.gaps
    query = text.format(**gaps)
    if question.small_letters and random.random() < 0.08:
        query = query.lower()
    if random.random() < 0.2:
        query = query.rstrip(".?")
    if random.random() < 0.08:
        query = random.choice(load_style().openings) + query
    if random.random() < 0.06 and query[-1] not in ".?":
        query += random.choice(load_style().endings)
    return query


def _spell_small_numbers(text: str, gaps: Mapping[str, str]) -> dict[str, str]:
    """The gaps, small numbers before a word as words: "three apples"."""
    lone = set(_LONE_GAP.findall(text))
    return {
        gap: spell_number(int(value)) if gap in lone and value.isdigit() and int(value) <= LARGEST_WORD else value
        for gap, value in gaps.items()
    }


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
