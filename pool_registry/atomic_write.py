"""Write a file or a folder so that readers, and a restart after a crash, see all of it or nothing.

The content is written beside its place under a hidden name of this process and thread, flushed to disk, and renamed.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a whole file; text becomes UTF-8."""
    with draft_file(path) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def draft_file(path: Path) -> Iterator[Path]:
    """Yield a free name beside `path` to write to. It becomes `path` when the body succeeds, else it is removed."""
    draft = _draft_name(path)
    draft.unlink(missing_ok=True)
    try:
        yield draft
        flush_to_disk(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    flush_to_disk(path.parent)


@contextmanager
def draft_folder(folder: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield an empty folder to fill. It becomes `folder` when the body succeeds, else it is removed.

    Raises OSError when `folder` has content by then and `replace` is false.
    """
    draft = _draft_name(folder)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        yield draft
        for path in (draft, *draft.rglob("*")):
            flush_to_disk(path)
        if replace and folder.exists():
            _exchange(draft, folder)
        else:
            draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    flush_to_disk(folder.parent)


def _exchange(draft: Path, folder: Path) -> None:
    """Put a draft in the place of a folder, which is there as it was where that fails."""
    aside = draft.with_name(f".{folder.name}.{secrets.token_hex(4)}.old")
    folder.rename(aside)
    try:
        draft.rename(folder)
    except OSError:
        aside.rename(folder)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def make_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """Return `folder`, filled by `make` unless it is there already. Where several processes fill it, the first one
    wins."""
    if folder.exists():
        return folder
    try:
        with draft_folder(folder) as draft:
            make(draft)
    except OSError:
        if not folder.exists():  # otherwise another process was faster
            raise
    return folder


@contextmanager
def lock_file(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock that no other thread or process holds, for files that are read, changed and written. `path` is made,
    and stays: who waits for the lock has it open. Raises BlockingIOError where somebody holds it and `wait` is false.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:  # a file of somebody else that has this name stays as it is
        fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def flush_to_disk(path: Path) -> None:
    """Make the content of a file, or the names in a folder, survive a power failure."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _draft_name(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.draft")
