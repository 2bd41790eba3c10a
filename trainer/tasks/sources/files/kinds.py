"""Tells a file of tasks from any other: what a person uploads as tasks may be a picture, an archive or a program."""

from __future__ import annotations

import re

from trainer.errors import UnusableTasks

ACCEPTED = (
    'give lines such as {"query": "What is 6 * 7?", "answer": 42}, a JSON list of such objects, or a table with the '
    "columns query and answer (CSV, with tabs, or Parquet)"
)
# How files of other kinds begin.
SIGNATURES = (
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
)
PARQUET = b"PAR1"
CONTROL = r"[\x00-\x08\x0e-\x1f]"  # what no text holds; tabs, line and page breaks are text
# U+FFFD stands in UTF-8 where a program read other bytes as text.
_FOREIGN = re.compile(CONTROL.encode() + b"|\xef\xbf\xbd")
BINARY_SHARE = 0.02  # of bytes that are no text: a text with fewer is one that was damaged


def refuse_other_kinds(data: bytes, name: str) -> None:
    """Raise UnusableTasks where bytes are neither text nor Parquet, saying what they seem to be."""
    if kind := name_kind(data):
        raise UnusableTasks(f"{name} holds no tasks: it seems to be {kind}; {ACCEPTED}")


def name_kind(data: bytes) -> str:
    """What bytes seem to be that are no text; "" for text. Also of bytes that were read as UTF-8 and written again."""
    for signature, kind in SIGNATURES:
        if data.startswith((signature, signature.decode("utf-8", "replace").encode())):
            return kind
    is_binary = b"\x00" in data or len(_FOREIGN.findall(data)) > BINARY_SHARE * max(len(data), 1)
    return "binary data" if is_binary else ""
