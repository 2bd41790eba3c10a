"""Packages that add rows to the extension tables and are no part of Podium: what to say where one is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownPackage:
    """A distribution, how it is installed, and the names of the rows that it adds, by entry point group."""

    name: str
    install: str
    rows: Mapping[str, frozenset[str]]


KNOWN_PACKAGES = (
    KnownPackage(
        "podium-lessons",
        "pip install ./lessons, in a checkout of Podium",
        {
            "podium.tasks": frozenset(
                "ledger atlas forge itinerary workshop dossier casual worlds projects everyday".split()  # noqa: SIM905
            ),
            "podium.workers": frozenset(("world", "everyday", "project")),
        },
    ),
)


def find_package(group: str, name: str) -> KnownPackage | None:
    """The package that is known to add the row `name` of a table, or None."""
    return next((package for package in KNOWN_PACKAGES if name in package.rows.get(group, ())), None)


def explain_missing(group: str, name: str) -> str:
    """Say which package adds the row `name` of a table and how it is installed, as the end of a sentence about that
    row; "" where no known package does."""
    package = find_package(group, name)
    if package is None:
        return ""
    return f"comes with the package {package.name}, which is not installed. Install it with: {package.install}"
