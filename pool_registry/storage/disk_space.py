"""A disk that is full: how it is told from other errors, and what a person is to do.

Libraries say it in many ways: an OSError, a code of SQLite, a text in an exception of their own, or nothing but a
write that failed. Where the cause is not named, the room that is left decides.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from pool_registry.storage.database import read_sqlite_code

FULL_BYTES = 1 << 20  # with less nothing can be saved: SQLite's log alone takes more
LEAST_TO_FREE = 64 << 20
FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT)
FULL_TEXTS = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT), "database or disk is full")


def is_full(folder: Path) -> bool:
    """Whether the disk of a folder has no room left; not where that cannot be asked."""
    try:
        return shutil.disk_usage(folder).free < FULL_BYTES
    except OSError:
        return False


def is_disk_full(error: BaseException, folder: Path) -> bool:
    """Whether an error means that the disk of `folder` is full."""
    return any(_names_full(one) for one in list_causes(error)) or is_full(folder)


def explain_full_disk(error: Exception, folder: Path) -> str | None:
    """The sentence for a write that failed because the disk is full; None for any other error."""
    if not isinstance(error, OSError | SQLAlchemyError) or not is_disk_full(error, folder):
        return None
    return f"{describe_full(folder)}. Nothing that was saved is lost"


def list_causes(error: BaseException) -> Iterator[BaseException]:
    """An error, what is in its group, and what they were raised from."""
    yield error
    inner = list(error.exceptions) if isinstance(error, BaseExceptionGroup) else []
    cause = error.__cause__ or error.__context__
    for one in [*inner, *([cause] if cause is not None else [])]:
        yield from list_causes(one)


def describe_full(folder: Path, needed: int = 0) -> str:
    """What is wrong and what to do: free `needed` bytes, or move the data folder."""
    megabytes = -(-max(needed, LEAST_TO_FREE) // 1_000_000)
    return (
        f"the disk is full: free {megabytes:,} MB on the disk of {folder}, or move the data folder to a larger one "
        "(PODIUM_HOME)"
    )


def _names_full(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno in FULL_ERRORS:
        return True
    return read_sqlite_code(error) == sqlite3.SQLITE_FULL or any(text in str(error) for text in FULL_TEXTS)
