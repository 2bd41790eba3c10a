"""The words of a command line, as a POSIX shell makes them. The module shlex does the same in a time that grows with
the square of the longest word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

_ESCAPED = re.compile(r"\\([\"\\])")  # all that a \ stands before within double quotation marks


def list_words(line: str, operators: str = "") -> Iterator[str]:
    """Yield the words of a line without their quotation marks; characters of `operators` in a row are a word of their
    own. Raises ValueError where a quotation mark does not close, and where the line ends with a backslash."""
    pieces = _compile_pieces(operators)
    parts: list[str] = []  # of the word so far
    place = 0
    while place < len(line):
        piece = pieces.match(line, place)
        if piece is None:
            raise ValueError("No escaped character" if line[place] == "\\" else "No closing quotation")
        place, kind, content = piece.end(), piece.lastgroup, piece[piece.lastgroup or 0]
        if kind in ("space", "operator"):
            if parts:
                yield "".join(parts)
            if kind == "operator":
                yield content
            parts = []
        else:
            parts.append(_ESCAPED.sub(r"\1", content) if kind == "double" else content)
    if parts:
        yield "".join(parts)


@cache
def _compile_pieces(operators: str) -> re.Pattern[str]:
    chars = re.escape(operators)
    return re.compile(
        rf"""(?P<space>[ \t\r\n]+)|(?P<operator>{f"[{chars}]+" if chars else "(?!)"})"""
        rf"""|(?P<plain>[^ \t\r\n'"\\{chars}]+)|\\(?P<escaped>.)"""
        r"|'(?P<single>[^']*)'"
        r'|"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"',
        re.DOTALL,
    )
