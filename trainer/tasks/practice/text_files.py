"""Tells a file of text from any other: what a person uploads as tasks may be a spreadsheet, a picture or an archive."""

from __future__ import annotations

import re
from pathlib import Path

from trainer.errors import UnusableTasks

ACCEPTED = (
    'give lines such as {"query": "What is 6 * 7?", "answer": 42}, a JSON list of such objects, or a table with the '
    "columns query and answer (CSV, or with tabs), as text in UTF-8"
)
# How files of other kinds begin.
SIGNATURES = (
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"PK\x03\x04", "a zip archive or a spreadsheet (.xlsx, .ods)"),
    (b"\xd0\xcf\x11\xe0", "an old Office file (.xls, .doc)"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture (PNG)"),
    (b"\xff\xd8\xff", "a picture (JPEG)"),
    (b"GIF8", "a picture (GIF)"),
    (b"RIFF", "a picture or a sound (WebP, WAV)"),
    (b"SQLite format 3", "an SQLite database"),
    (b"GGUF", "a model (GGUF)"),
    (b"\x7fELF", "a program"),
    (b"\x80\x04", "a Python pickle"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
)
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")  # what no text holds; tabs, line and page breaks are text
FOREIGN = re.compile(r"[\x00-\x08\x0e-\x1f\ufffd]")
BINARY_SHARE = 0.02  # of characters that are no text: a text with fewer is one that was damaged
HEAD_BYTES = 65_536


def read_text_file(file: Path) -> str:
    """The text of a file. Raises UnusableTasks saying what it seems to be instead."""
    data = _read(file)
    refuse_binary(data, str(file))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnusableTasks(f"{file} is not text in UTF-8 (line {line}): save it as UTF-8") from error
    check_text(text, str(file))
    return text


def check_text(text: str, name: str) -> None:
    """Raise UnusableTasks for what was no text before it was pasted or uploaded as such. A program that reads a file as
    text puts U+FFFD in the place of what it cannot read."""
    refuse_binary(text.encode("utf-8", "replace"), name)
    if "\ufffd" in text:
        raise UnusableTasks(
            f"{name} is not text in UTF-8 (line {_find_line(text, text.index(chr(0xFFFD)))}): save it so"
        )
    if match := CONTROL.search(text):
        line = _find_line(text, match.start())
        raise UnusableTasks(f"{name} holds the control character {match.group()!r} on line {line}: take it out")


def refuse_other_files(file: Path) -> None:
    """Raise UnusableTasks where the beginning of a file is that of another kind than text."""
    refuse_binary(_read(file, HEAD_BYTES), str(file))


def refuse_binary(data: bytes, name: str) -> None:
    """Raise UnusableTasks where bytes are no text, saying what they seem to be."""
    if kind := name_kind(data):
        raise UnusableTasks(f"{name} holds no tasks: it seems to be {kind}; {ACCEPTED}")


def name_kind(data: bytes) -> str:
    """What bytes seem to be that are no text; "" for text. Also of bytes that were read as UTF-8 and written again."""
    for signature, kind in SIGNATURES:
        if data.startswith((signature, signature.decode("utf-8", "replace").encode())):
            return kind
    text = data.decode("utf-8", "replace")
    is_binary = "\x00" in text or len(FOREIGN.findall(text)) > BINARY_SHARE * max(len(text), 1)
    return "binary data" if is_binary else ""


def _find_line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _read(file: Path, most: int = -1) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(most)
    except OSError as error:
        raise UnusableTasks(f"{file} cannot be read: {error.strerror}; give the path of a file of tasks") from error
