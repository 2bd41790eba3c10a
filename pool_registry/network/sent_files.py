"""Files that a call sends: those of one folder, which a person has named, and nothing outside it."""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Any

from pool_registry.errors import BadCall, WorkerFault

MAX_PATH_CHARS = 4096  # Linux takes no longer path
MAX_FILE_BYTES = 32 * 2**20
MAX_SHOWN = 20  # names of files in a message
_UNKNOWN_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class SentFile:
    name: str
    content: bytes
    media_type: str


def read_file(folder: str, name: Any, media_types: str, argument: str) -> SentFile:
    """Read the file `name`, a path within `folder`, for an argument that takes `media_types`, joined by commas, or any
    where there are none. Raises BadCall for a name that is no file there, WorkerFault where there is no folder."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise BadCall(f"{argument}: write the path of a file in the worker's folder of files")
    file = _find(open_folder(folder), name, argument)
    media_type = _choose_type(file.name, media_types, argument)
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise WorkerFault("file_unreadable", f"{name[:200]} cannot be read: {error.strerror}") from error
    if len(content) > MAX_FILE_BYTES:
        raise BadCall(f"{argument}: {name[:200]} is larger than {MAX_FILE_BYTES // 2**20} MiB, the most that is sent")
    return SentFile(file.name, content, media_type)


def open_folder(folder: str) -> Path:
    """Return the folder, with links followed. Raises WorkerFault where there is none."""
    if not folder:
        raise WorkerFault("files_missing", "this worker has no folder of files; name one in its field `files`")
    root = Path(folder[:MAX_PATH_CHARS]).expanduser().resolve()
    if len(folder) > MAX_PATH_CHARS or not root.is_dir():
        raise WorkerFault(
            "files_missing", f"there is no folder {folder[:200]}; set `files` to the folder of your files"
        )
    return root


def list_files(root: Path) -> Iterator[str]:
    """Yield the paths of the files that may be sent, folder by folder: not those that are hidden."""
    for folder, inner, names in os.walk(root, followlinks=False):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        yield from ((Path(folder) / name).relative_to(root).as_posix() for name in sorted(names) if name[0] != ".")


def _find(root: Path, name: str, argument: str) -> Path:
    """The file `name`, links followed. Raises BadCall unless it lies in `root` and is not hidden."""
    try:
        file = (root / name).resolve()
        is_within = file.is_relative_to(root) and not any(part[0] == "." for part in file.relative_to(root).parts)
        if is_within and file.is_file():
            return file
    except (OSError, RuntimeError) as error:  # a name that is too long, or links in a circle
        raise BadCall(f"{argument}: {name[:200]!r} is no path of a file") from error
    shown = ", ".join(islice(list_files(root), MAX_SHOWN)) or "no file"
    raise BadCall(f"{argument}: there is no file {name[:200]!r} in the worker's folder of files, which holds {shown}")


def _choose_type(file_name: str, media_types: str, argument: str) -> str:
    """The type that a file is sent as: its own, by its ending. Raises BadCall where another is taken."""
    own, packing = mimetypes.guess_type(file_name)
    own = f"application/{packing}" if packing else own
    accepted = [kind.strip() for kind in media_types.split(",") if kind.strip()]
    if not accepted:
        return own or _UNKNOWN_TYPE
    for kind in accepted:
        if own and fnmatch(_simplify(own), _simplify(kind)):
            return own if "*" in kind else kind
    for kind in accepted:
        if _simplify(kind) in (_UNKNOWN_TYPE, "*/*"):
            return _UNKNOWN_TYPE  # which says only that these are bytes
    if own is None and len(accepted) == 1 and "*" not in accepted[0]:
        return accepted[0]
    raise BadCall(f"{argument}: {file_name[:120]} is {own or 'of an unknown type'}; this takes {' or '.join(accepted)}")


def _simplify(kind: str) -> str:
    """A type in the form in which its usual spellings are equal: image/jpg is image/jpeg, audio/x-wav audio/wav."""
    plain = kind.partition(";")[0].strip().lower()
    return plain.replace("/x-", "/").replace("/jpg", "/jpeg").replace("audio/mp3", "audio/mpeg")
