"""Importers: list what a source (an MCP server, an OpenAPI document, a Python file) offers as workers.

An importer only reads. Nothing is added to a pool until a person has chosen from the offers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pool_registry.worker import WorkerSpec

MAX_NAME_CHARS = 48  # as in worker.NAME_PATTERN


@dataclass(frozen=True, slots=True)
class Offer:
    """A worker that a source offers, ready to add or with the reason why it cannot be added."""

    spec: WorkerSpec  # its name is valid, and unique among the offers
    problem: str = ""  # why it cannot be added (the page then shows it greyed), "" when ready


def worker_name(suggestion: str, taken: Iterable[str] = (), prefix: str = "") -> str:
    """Return a valid worker name close to `suggestion`, after `prefix` if there is one, and not in `taken`.

    >>> worker_name("Get.Weather", prefix="home")
    'home_get_weather'
    """
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", suggestion)  # getWeather -> get_Weather
    plain = re.sub(r"[^a-z0-9_-]+", "_", split.lower()).strip("_-")
    parts = [part for part in (prefix, plain or "tool") if part]
    name = "_".join(parts)
    if not name[0].isascii() or not name[0].isalpha():
        name = f"tool_{name}"
    name = name[:MAX_NAME_CHARS].rstrip("_-")
    used, number, unique = set(taken), 1, name
    while unique in used:
        number += 1
        ending = f"_{number}"
        unique = name[: MAX_NAME_CHARS - len(ending)] + ending
    return unique
