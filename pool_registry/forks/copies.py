"""Copies of the files and folders that workers may change, below one folder that mirrors where they stand.

The copy of /home/me/shop/orders.db is FOLDER/home/me/shop/orders.db, so what code finds relative to itself is found.
SQLite databases are copied by SQLite, so that a copy is whole also while somebody writes.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from pool_registry.errors import CannotFork

SQLITE_HEADER = b"SQLite format 3\0"
LOGS = ("-wal", "-shm", "-journal")  # of SQLite; what they hold is in the copy
MAX_BYTES = 200_000_000  # of all that one what-if copies
MAX_FILES = 20_000


class Copies:
    """The copies below `folder`: `roots` are the originals, each with its copy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scratch = folder.with_name("scratch")
        self.roots: dict[Path, Path] = {}
        self._bytes = self._files = 0

    def find(self, path: Path) -> Path | None:
        """Where the copy of a path stands; None where nothing that holds it was copied."""
        path = path.resolve()
        return self._mirror(path) if any(path.is_relative_to(root) for root in self.roots) else None

    def add(self, path: Path) -> Path:
        """Copy a file or folder, unless that is done; returns its copy. Raises CannotFork."""
        path = path.resolve()
        copy = self.find(path)
        if copy is not None:
            return copy
        if self.folder.resolve().is_relative_to(path):
            raise CannotFork(f"{path} holds Podium's own data folder, so it cannot be copied for a what-if")
        self._count(path)
        copy = self._mirror(path)
        try:
            copy.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, copy, symlinks=True, dirs_exist_ok=True, copy_function=copy_file, ignore=_skip)
            else:
                copy_file(str(path), str(copy))
        except (OSError, shutil.Error, sqlite3.Error) as error:
            raise CannotFork(f"{path} cannot be copied: {_first_reason(error)}") from error
        self.roots[path] = copy
        return copy

    def _mirror(self, path: Path) -> Path:
        return self.folder / path.relative_to(path.anchor)

    def _count(self, path: Path) -> None:
        """Add a path to what is copied. Raises CannotFork beyond the limits."""
        inside = (Path(at) / name for at, _, names in os.walk(path) for name in names)
        for place in inside if path.is_dir() else [path]:
            self._files += 1
            self._bytes += place.lstat().st_size
            if self._files > MAX_FILES or self._bytes > MAX_BYTES:
                limit = f"{MAX_FILES:,} files or {MAX_BYTES // 1_000_000} MB"
                raise CannotFork(f"{path} holds too much to be copied for a what-if (more than {limit} in all)")


class MadeCopies:
    """The copies that there are; no other is made."""

    def __init__(self, copies: Copies) -> None:
        self.folder, self.scratch, self.find = copies.folder, copies.scratch, copies.find

    def add(self, path: Path) -> Path:
        """Where the copy of a path stands. Raises CannotFork where there is none."""
        copy = self.find(path)
        if copy is None:
            raise CannotFork(f"{path} is not copied")
        return copy


def is_sqlite(path: Path) -> bool:
    """Whether a file is a SQLite database."""
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE_HEADER)) == SQLITE_HEADER
    except OSError:
        return False


def copy_file(source: str, target: str) -> str:
    """Copy one file; a SQLite database as it stands after its last commit."""
    if Path(source).is_symlink() or not is_sqlite(Path(source)):
        return shutil.copy2(source, target, follow_symlinks=False)
    with (
        closing(sqlite3.connect(f"file:{quote(source)}?mode=ro", uri=True, timeout=5)) as original,
        closing(sqlite3.connect(target)) as copy,
    ):
        original.backup(copy)
    return target


def _skip(folder: str, names: list[str]) -> set[str]:
    """SQLite's logs, and what is no file, such as a socket."""
    present = set(names)
    logs = {name for name in names for end in LOGS if name.endswith(end) and name.removesuffix(end) in present}
    return logs | {name for name in names if not _can_be_copied(Path(folder, name))}


def _can_be_copied(place: Path) -> bool:
    return place.is_symlink() or place.is_file() or place.is_dir()


def _first_reason(error: Exception) -> str:
    """The reason of the first failure of a folder's copy, or of the error itself."""
    first = error.args[0][0][2] if isinstance(error, shutil.Error) and error.args and error.args[0] else error
    return str(first)
