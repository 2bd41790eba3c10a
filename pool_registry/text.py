"""Shorten text for error messages, tables and prompts."""

from __future__ import annotations

import re
from collections.abc import Sequence

# They turn the order of what is read, or hide text that a model reads all the same: overrides and embeddings of
# direction, isolates, and tags, save those of a flag.
_HIDDEN = re.compile("[\u202a-\u202e\u2066-\u2069]|(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0000-\U000e007f]+")


def show_hidden(text: str) -> str:
    """Write characters that hide or turn text as what they are, such as \u2039U+202E\u203a."""
    return _HIDDEN.sub(lambda match: "".join(f"\u2039U+{ord(letter):04X}\u203a" for letter in match.group()), text)


def one_line(text: str) -> str:
    """Return `text` with every run of white space replaced by one space."""
    return " ".join(text.split())


def count_of(number: int, noun: str) -> str:
    """The number with its noun: "1 table", "1,200 tables"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shorten(text: str, max_chars: int, mark: str = " …") -> str:
    """Return `text`, cut so that it has at most `max_chars` characters with `mark` at its end."""
    return text if len(text) <= max_chars else text[: max_chars - len(mark)] + mark


def excerpt(text: str, max_chars: int) -> str:
    """Return the first `max_chars` characters of `text`, and its full length when it is longer."""
    return text if len(text) <= max_chars else f"{text[:max_chars]} … ({len(text):,} characters in all)"


def divide_room(sizes: Sequence[int], room: int, least: int = 0) -> list[int]:
    """Divide `room` among texts of these sizes: none gets more than its size, what short ones leave goes to the long
    ones, and each gets at least `least` or its size."""
    shares = [0] * len(sizes)
    left = room
    ascending = sorted(range(len(sizes)), key=lambda place: sizes[place])
    for done, place in enumerate(ascending):
        share = max(0, left) // (len(sizes) - done)
        shares[place] = min(sizes[place], max(share, least))
        left -= shares[place]
    return shares
