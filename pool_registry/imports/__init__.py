"""Importers: list what a source (an MCP server, an OpenAPI document, a Python file) offers as workers.

An importer only reads. Nothing is added to a pool until a person has chosen from the offers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pool_registry.worker import WorkerSpec

MAX_NAME_CHARS = 48  # as in worker.NAME_PATTERN
MAX_STEM_CHARS = 40  # what is left of a name before its number


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

    def choose(self, suggestion: str, prefix: str = "") -> str:
        """Return a name close to `suggestion`, after `prefix` if there is one."""
        name = _write_name(suggestion, prefix)
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


def _write_name(suggestion: str, prefix: str) -> str:
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", suggestion)  # getWeather -> get_Weather
    plain = re.sub(r"[^a-z0-9_-]+", "_", split.lower()).strip("_-")
    name = "_".join(part for part in (prefix, plain or "tool") if part)
    if not name[0].isascii() or not name[0].isalpha():
        name = f"tool_{name}"
    return name[:MAX_NAME_CHARS].rstrip("_-")
