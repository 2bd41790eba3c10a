"""A database on a bad disk."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def damage_middle(database: Path) -> None:
    """Overwrite all but the first two pages of a SQLite file that no program has open."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    with database.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xa5" * (database.stat().st_size - 8192))
