"""A bundle: every file of one repository before anything is sent, and what is left out, with the reason.

A file is in a bundle because code names it, never because it happens to lie in a folder.
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
from pool_registry.errors import writing_to
from studio.publish.request import PublishError

LISTING = "podium_files.json"  # the files of our repository; a later publish deletes those that it no longer lists
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
        """Yield the content in pieces. Each begins with the last `overlap` bytes of the one before."""
        if isinstance(self.content, bytes):
            yield self.content
            return
        with self.content.open("rb") as file:
            tail = b""
            while piece := file.read(CHUNK):
                yield tail + piece
                tail = (tail + piece)[-overlap:] if overlap else b""

    @property
    def sha256(self) -> str:
        digest = hashlib.sha256()
        for piece in self.chunks():
            digest.update(piece)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files of one repository. `left_out` lists (what, why)."""

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
        """Write every file below `folder`."""
        for entry in self.entries:
            target = folder / entry.path
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(entry.content, bytes):
                target.write_bytes(entry.content)
            else:
                shutil.copyfile(entry.content, target)


def make_bundle(
    kind: Literal["model", "space"], entries: Iterable[Entry], left_out: Iterable[tuple[str, str]]
) -> Bundle:
    """Sort the files and add their listing. Raises PublishError for an unsafe path."""
    files = sorted(entries, key=lambda entry: entry.path)
    for entry in files:
        _check_path(entry)
    listing = {"podium_files": 1, "kind": kind, "files": [entry.path for entry in files] + [LISTING]}
    files.append(Entry(LISTING, json_bytes(listing), "What Podium put here, so that an update can tidy up"))
    return Bundle(kind, tuple(files), tuple(left_out))


def json_bytes(document: Any) -> bytes:
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def write_folder(bundles: Iterable[Bundle], out: Path) -> None:
    """Write bundles to OUT/model and OUT/space, all or nothing. The output of an earlier dry run is replaced.

    Raises PublishError when `out` holds anything else, and UnwritablePath.
    """
    out = out.expanduser().absolute()
    if out.exists() and not _is_ours(out):
        raise PublishError(f"{out} exists already and was not made by a dry run; choose another folder with --out")
    with writing_to(out), draft_folder(out, replace=True) as draft:
        for bundle in bundles:
            bundle.write(draft / bundle.kind)


def _is_ours(out: Path) -> bool:
    """An empty folder, or one that holds nothing but the repositories of an earlier dry run."""
    paths = list(out.iterdir()) if out.is_dir() else [out]
    return all(path.name in ("model", "space") and (path / LISTING).is_file() for path in paths)


def _check_path(entry: Entry) -> None:
    parts = entry.path.split("/")
    if any(part in ("", ".", "..") for part in parts) or entry.path != os.path.normpath(entry.path):
        raise PublishError(f"{entry.path!r} is not a valid path in a repository")
    if isinstance(entry.content, Path) and (entry.content.is_symlink() or not entry.content.is_file()):
        raise PublishError(f"{entry.content} is not a plain file, so it is not published; put the file itself there")
