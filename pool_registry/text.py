"""Shorten text for error messages, tables and prompts."""

from __future__ import annotations


def one_line(text: str) -> str:
    """Return `text` with every run of white space replaced by one space."""
    return " ".join(text.split())


def shorten(text: str, max_chars: int, mark: str = " …") -> str:
    """Return `text`, cut so that it has at most `max_chars` characters with `mark` at its end."""
    return text if len(text) <= max_chars else text[: max_chars - len(mark)] + mark


def excerpt(text: str, max_chars: int) -> str:
    """Return the first `max_chars` characters of `text`, and its full length when it is longer."""
    return text if len(text) <= max_chars else f"{text[:max_chars]} … ({len(text):,} characters in all)"
