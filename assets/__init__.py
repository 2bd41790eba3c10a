"""Data that ships with Podium: fonts, styles and scripts of the page, starter data."""

from pathlib import Path

FOLDER = Path(__file__).parent


def asset(name: str) -> Path:
    """The path of a shipped file, for example `asset("web/run/graph.js")`."""
    return FOLDER / name
