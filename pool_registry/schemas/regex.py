"""Regular expressions that people write, matched with a time limit."""

from __future__ import annotations

import math
import re

import regex

MAX_PATTERN_CHARS = 1000
MAX_REPEATS = 10_000  # `regex` writes counted repeats out when it compiles: nested ones can ask for gigabytes
MATCH_S = 0.25
_REPEAT = re.compile(r"\{([0-9]*)(?:,([0-9]*))?\}")


def pattern_problem(pattern: str) -> str | None:
    """Explain why a pattern cannot be used; None when it can."""
    if len(pattern) > MAX_PATTERN_CHARS:
        return f"the pattern has {len(pattern):,} characters; {MAX_PATTERN_CHARS:,} are allowed"
    if math.prod(max(1, *(int(count or 0) for count in pair)) for pair in _REPEAT.findall(pattern)) > MAX_REPEATS:
        return f"the counted repeats of the pattern multiply to more than {MAX_REPEATS:,}; use * or + instead"
    try:
        regex.compile(pattern)
    except (regex.error, ValueError, OverflowError, RecursionError) as error:
        return f"the pattern is no regular expression: {error}"
    return None


def matches_whole(pattern: str, text: str) -> bool:
    """Whether `pattern` matches all of `text`.

    Raises TimeoutError when that takes more than MATCH_S seconds, MemoryError when it takes too much memory.
    """
    return regex.compile(pattern).fullmatch(text, timeout=MATCH_S) is not None
