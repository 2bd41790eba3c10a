"""A bundle: every file of one repository, before anything is sent, and what stays at home with the reason.

A file is in a bundle because somebody named it, never because it lay in a folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pool_registry.atomic_write import draft_folder
from studio.publish.request import PublishError

LISTING = "podium_files.json"  # what a repository of ours holds; a later publish removes what it no longer names
CHUNK = 8_000_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: its path in the repository, its content (or the file that holds it), and what it is."""

    path: str
    content: bytes | Path
    about: str

    @property
    def size(self) -> int:
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size

    def chunks(self, overlap: int = 0) -> Iterator[bytes]:
        """The content in pieces; each begins with the last `overlap` bytes of the one before."""
        if isinstance(self.content, bytes):
            yield self.content
            return
        with self.content.open("rb") as file:
            kept = b""
            while piece := file.read(CHUNK):
                yield kept + piece
                kept = (kept + piece)[-overlap:] if overlap else b""

    @property
    def sha256(self) -> str:
        digest = hashlib.sha256()
        for piece in self.chunks():
            digest.update(piece)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Bundle:
    """A repository to be. `left_out` is (what, why)."""

    kind: Literal["model", "space"]
    entries: tuple[Entry, ...]
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.entries)

    def text(self, path: str) -> str:
        """The content of a text file. Raises KeyError when there is none."""
        for entry in self.entries:
            if entry.path == path:
                return b"".join(entry.chunks()).decode()
        raise KeyError(path)

    def write(self, folder: Path) -> None:
        """Put every file below `folder`."""
        for entry in self.entries:
            target = folder / entry.path
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(entry.content, bytes):
                target.write_bytes(entry.content)
            else:
                shutil.copyfile(entry.content, target)


def bundle(kind: Literal["model", "space"], entries: Iterable[Entry], left_out: Iterable[tuple[str, str]]) -> Bundle:
    """The bundle with its listing, in alphabetical order. Raises PublishError for a path that is no plain one."""
    files = sorted(entries, key=lambda entry: entry.path)
    for entry in files:
        _check_path(entry)
    listing = {"podium_files": 1, "kind": kind, "files": [entry.path for entry in files] + [LISTING]}
    files.append(Entry(LISTING, as_json(listing), "What Podium put here, so that an update can tidy up"))
    return Bundle(kind, tuple(files), tuple(left_out))


def as_json(document: Any) -> bytes:
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def write_folder(bundles: Iterable[Bundle], out: Path) -> None:
    """Write bundles to OUT/model and OUT/space, all or nothing; what an earlier dry run left there is replaced.

    Raises PublishError when `out` holds anything else.
    """
    out = out.expanduser().absolute()
    if out.exists() and not _is_ours(out):
        raise PublishError(f"{out} is there already and was not made by a dry run; choose another folder with --out")
    try:
        with draft_folder(out, replace=True) as draft:
            for each in bundles:
                each.write(draft / each.kind)
    except OSError as error:
        raise PublishError(f"{out} cannot be written ({error.strerror}); choose another folder with --out") from error


def _is_ours(out: Path) -> bool:
    """An empty folder, or one that holds nothing but the repositories of an earlier dry run."""
    inside = list(out.iterdir()) if out.is_dir() else [out]
    return all(each.name in ("model", "space") and (each / LISTING).is_file() for each in inside)


def _check_path(entry: Entry) -> None:
    parts = entry.path.split("/")
    if any(part in ("", ".", "..") for part in parts) or entry.path != os.path.normpath(entry.path):
        raise PublishError(f"{entry.path!r} is no path for a repository")
    if isinstance(entry.content, Path) and (entry.content.is_symlink() or not entry.content.is_file()):
        raise PublishError(f"{entry.content} is not a plain file, so it is not published; put the file itself there")
