"""The installed distributions behind imported names, pinned to the version that runs here."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions, version


def pin_imports(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The pinned distributions behind imported names, and the names that no distribution provides."""
    foreign = [name for name in names if name not in sys.stdlib_module_names]
    unknown = [name for name in foreign if not _distributions().get(name)]
    return sorted({pin for name in foreign for pin in list_pins(name)}, key=str.lower), unknown


def list_pins(name: str) -> Iterator[str]:
    """The pinned distributions that provide an imported name."""
    for distribution in sorted(set(_distributions().get(name, []))):
        yield pin_version(distribution)


def pin_version(distribution: str) -> str:
    """Return `name==version` of what is installed, without a local label such as +cpu."""
    return f"{distribution}=={version(distribution).partition('+')[0]}"


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()
