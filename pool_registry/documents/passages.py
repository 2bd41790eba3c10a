"""Documents as passages with their sources: txt, md, pdf, csv, jsonl, in one file or a folder.

Hidden files are skipped and links are never followed. A file that cannot be read is skipped with a reason;
what is too much as a whole is refused.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pool_registry.actions import as_text, clean_text
from pool_registry.documents.extract_text import pdf_pages
from pool_registry.errors import WorkerFault

MAX_FILES = 2_000
MAX_FILE_BYTES = 50_000_000
MAX_BYTES = 200_000_000
MAX_PASSAGES = 200_000
PASSAGE_CHARS = 1_200  # about; a paragraph is never cut unless it is twice as long
MAX_ROW_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Passage:
    """One passage: `source` names the file and the page, line or row; words of `title` weigh more in a search."""

    source: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class DocumentFiles:
    """The files below a path, in order, and those that are skipped, with the reason."""

    root: Path
    files: tuple[Path, ...]
    skipped: tuple[tuple[str, str], ...] = ()

    def name(self, file: Path) -> str:
        return file.name if file == self.root else file.relative_to(self.root).as_posix()


@dataclass(slots=True)
class Collection:
    """The passages that were read, and the files that were skipped."""

    passages: list[Passage] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def find_documents(path: str) -> DocumentFiles:
    """List the documents at `path`, a file or a folder with its subfolders. Raises WorkerFault."""
    root = Path(path).expanduser()
    if root.is_file():
        if root.suffix.lower() not in READERS:
            raise WorkerFault("documents_unreadable", f"{root.name}: {_UNKNOWN}")
        return DocumentFiles(root, (root,))
    if not root.is_dir():
        raise WorkerFault("documents_missing", f"there is no file or folder {root}")
    files, skipped, size = list[Path](), list[tuple[str, str]](), 0
    for file in _walk(root):
        name = file.relative_to(root).as_posix()
        reason = _reason_to_skip(file)
        if reason:
            skipped.append((name, reason))
            continue
        files.append(file)
        size += file.stat().st_size
        if len(files) > MAX_FILES:
            raise WorkerFault("documents_too_large", f"{root} holds more than {MAX_FILES:,} files; choose a subfolder")
        if size > MAX_BYTES:
            raise WorkerFault("documents_too_large", f"{root} holds more than {MAX_BYTES:,} bytes; choose a subfolder")
    return DocumentFiles(root, tuple(sorted(files)), tuple(sorted(skipped)))


def _walk(root: Path) -> Iterator[Path]:
    """Yield every file that is not hidden nor in a hidden folder, without following links to folders."""
    for folder, inner, names in os.walk(root, followlinks=False):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        yield from (Path(folder) / name for name in sorted(names) if not name.startswith("."))


_UNKNOWN = "only .txt, .md, .pdf, .csv and .jsonl are read"


def _reason_to_skip(file: Path) -> str:
    if file.is_symlink():
        return "a link"
    if not file.is_file():
        return "not a file"
    if file.suffix.lower() not in READERS:
        return _UNKNOWN
    if file.stat().st_size > MAX_FILE_BYTES:
        return f"larger than {MAX_FILE_BYTES:,} bytes"
    return ""


def read_passages(files: DocumentFiles) -> Collection:
    """Read the passages of all files. Raises WorkerFault when there are none, or too many."""
    collection = Collection(skipped=list(files.skipped))
    for file in files.files:
        name = files.name(file)
        try:
            passages = [
                passage for passage in READERS[file.suffix.lower()](name, file.read_bytes()) if passage.text.strip()
            ]
        except OSError as error:
            collection.skipped.append((name, f"cannot be read: {error.strerror or error}"))
        except WorkerFault as fault:
            collection.skipped.append((name, str(fault)))
        else:
            collection.passages.extend(passages)
            if not passages:
                collection.skipped.append((name, "holds no text"))
        if len(collection.passages) > MAX_PASSAGES:
            sentence = f"the documents have more than {MAX_PASSAGES:,} passages; choose fewer"
            raise WorkerFault("documents_too_large", sentence)
    if not collection.passages:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in collection.skipped[:5]) or "it is empty"
        raise WorkerFault("documents_empty", f"{files.root.name} holds nothing to search ({reasons})")
    return collection


def _decode(raw: bytes) -> str:
    """Decode UTF-8, UTF-16 (with its mark) or else Windows-1252, common in old files. Raises WorkerFault."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return clean_text(raw.decode("utf-16", "replace"))
    if b"\0" in raw:
        raise WorkerFault("documents_unreadable", "is not text")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace")


def _prose(name: str, raw: bytes) -> Iterator[Passage]:
    """Yield paragraphs, joined to passages of about PASSAGE_CHARS, each under its heading."""
    title, begun, lines = Path(name).stem, 1, list[str]()
    for number, line in enumerate(_decode(raw).splitlines(), start=1):
        heading = re.match(r"#{1,6}\s+(.*)", line) if name.lower().endswith(".md") else None
        size = sum(map(len, lines))
        if heading or (size > PASSAGE_CHARS and not line.strip()) or size > 2 * PASSAGE_CHARS:
            yield from _pieces(f"{name}, line {begun}", title, "\n".join(lines))
            lines, begun = [], number
        title = heading.group(1).strip() if heading else title
        if lines or line.strip():
            lines.append(line)
        else:
            begun = number + 1
    yield from _pieces(f"{name}, line {begun}", title, "\n".join(lines))


def _pieces(source: str, title: str, text: str) -> Iterator[Passage]:
    """Split `text` at white space where it is too long for one passage."""
    text = text.strip()
    while len(text) > 2 * PASSAGE_CHARS:
        spaces = [text.rfind(mark, PASSAGE_CHARS, 2 * PASSAGE_CHARS) for mark in " \n"]
        at = max(spaces) if max(spaces) > 0 else 2 * PASSAGE_CHARS
        yield Passage(source, title, text[:at].strip())
        text = text[at:].strip()
    if text:
        yield Passage(source, title, text)


def _pdf(name: str, raw: bytes) -> Iterator[Passage]:
    whole, pages = pdf_pages(raw)
    title = clean_text(whole.title) or Path(name).stem
    for number, page in enumerate(pages, start=1):
        yield from _pieces(f"{name}, page {number}", title, clean_text(page))


def _csv(name: str, raw: bytes) -> Iterator[Passage]:
    text = _decode(raw)
    try:
        dialect: type[csv.Dialect] = csv.Sniffer().sniff(text[:20_000], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    try:
        rows = csv.reader(io.StringIO(text), dialect)
        head = [cell.strip() for cell in next(rows, [])]
        for number, row in enumerate(rows, start=2):
            cells = [f"{label}: {cell.strip()}" for label, cell in zip(head, row, strict=False) if cell.strip()]
            yield Passage(f"{name}, row {number}", Path(name).stem, clean_text("; ".join(cells))[:MAX_ROW_CHARS])
    except csv.Error as error:
        raise WorkerFault("documents_unreadable", f"is no CSV: {error}") from error


def _jsonl(name: str, raw: bytes) -> Iterator[Passage]:
    for number, line in enumerate(_decode(raw).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise WorkerFault("documents_unreadable", f"line {number} is no JSON: {error}") from error
        title = Path(name).stem
        if isinstance(entry, dict):
            title = str(entry.pop("title", None) or title)
            plain = isinstance(entry.get("text"), str)
            entry = entry["text"] if plain else "; ".join(f"{key}: {as_text(value)}" for key, value in entry.items())
        yield from _pieces(f"{name}, line {number}", clean_text(title), clean_text(as_text(entry)))


READERS: dict[str, Callable[[str, bytes], Iterator[Passage]]] = {
    ".txt": _prose,
    ".md": _prose,
    ".pdf": _pdf,
    ".csv": _csv,
    ".jsonl": _jsonl,
}
