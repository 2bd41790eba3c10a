"""Importers: list what a source (an MCP server, an OpenAPI document, a Python file) offers as workers.

An importer only reads. Nothing is added to a pool until a person has chosen from the offers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pool_registry.imports.latin_text import to_latin
from pool_registry.worker import WorkerSpec

MAX_NAME_CHARS = 48  # as in worker.NAME_PATTERN
MAX_STEM_CHARS = 40  # what is left of a name before its number
MAX_WORDS = 4  # of a title or a description, where a name is made of them
MIN_PREFIX_CHARS = 3
COMMON_WORDS = ("mcp", "server", "servers")


@dataclass(frozen=True, slots=True)
class Offer:
    """A worker that a source offers, ready to add or with the reason why it cannot be added."""

    spec: WorkerSpec  # its name is valid, and unique among the offers
    problem: str = ""  # why it cannot be added (the page then shows it greyed), "" when ready


class FreeNames:
    """Chooses valid names for workers, one after another: each is used by no other one, nor `taken` before."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}  # the last ending of names that begin alike

    def choose(self, suggestion: str, prefix: str = "", instead: Sequence[str] = ()) -> str:
        """Return a name close to `suggestion`, after `prefix` if there is one; close to the first of `instead` that has
        words in Latin letters, where the suggestion has none."""
        name = _write_name(suggestion, prefix, instead)
        stem = name[:MAX_STEM_CHARS]
        number, unique = self._numbers.get(stem, 1), name
        while unique in self._taken:
            number += 1
            ending = f"_{number}"
            unique = name[: MAX_NAME_CHARS - len(ending)] + ending
        self._numbers[stem] = number
        self._taken.add(unique)
        return unique


def worker_name(suggestion: str, taken: Iterable[str] = (), prefix: str = "") -> str:
    """Return a valid worker name close to `suggestion`, after `prefix` if there is one, and not in `taken`. For many
    names see `FreeNames`.

    >>> worker_name("Get.Weather", prefix="home")
    'home_get_weather'
    """
    return FreeNames(taken).choose(suggestion, prefix)


def _write_name(suggestion: str, prefix: str, instead: Sequence[str] = ()) -> str:
    plain = _to_words(suggestion) or next(filter(None, map(_to_few_words, instead)), "") or "tool"
    room = MAX_NAME_CHARS - len(plain) - 1
    name = "_".join(part for part in (shorten_prefix(prefix, room), plain) if part)
    if not name[0].isascii() or not name[0].isalpha():
        name = f"tool_{name}"
    return name[:MAX_NAME_CHARS].rstrip("_-")


def _to_words(text: str) -> str:
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", to_latin(text))  # getWeather -> get_Weather
    return re.sub(r"[^a-z0-9_-]+", "_", split.lower()).strip("_-")


def _to_few_words(text: str) -> str:
    """The first words of a title or a description; "" for figures alone."""
    words = re.findall(r"[A-Za-z][A-Za-z0-9]+", to_latin(text))
    return "_".join(words[:MAX_WORDS]).lower()


def shorten_prefix(prefix: str, room: int) -> str:
    """A prefix of at most `room` characters: without the words that every server's name has, then without its last
    ones; "" where hardly anything is left.

    >>> shorten_prefix("mcp-server-sequential-thinking", 24)
    'sequential-thinking'
    """
    if len(prefix) <= room:
        return prefix
    words = re.findall(r"[^_-]+", prefix)
    words = [word for word in words if word not in COMMON_WORDS] or words
    del words[max(1, room) :]  # more never fit
    while len(words) > 1 and len("-".join(words)) > room:
        words.pop()
    return "-".join(words)[:room] if room >= MIN_PREFIX_CHARS else ""
