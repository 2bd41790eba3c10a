"""Regular expressions that people write, matched with a time limit."""

from __future__ import annotations

import math
import re

import regex

MAX_PATTERN_CHARS = 1000
MAX_REPEATS = 10_000  # `regex` writes counted repeats out when it compiles: nested ones can ask for gigabytes
MATCH_S = 0.25
# What the larger kinds of a pattern take in place of one letter, by measurement.
_WIDE = {"": 1, "w": 5, "p": 100}
_WIDE_AROUND = {"": 4, "w": 100, "p": 400}  # where the pattern looks around or back
_PROPERTY, _WORD, _AROUND = re.compile(r"\\[pP]"), re.compile(r"\\[wW]"), re.compile(r"\(\?<?[=!>]|\\[1-9k]")
_REPEAT = re.compile(r"\{([0-9]*)(?:,([0-9]*))?\}")


def pattern_problem(pattern: str) -> str | None:
    """Explain why a pattern cannot be used; None when it can."""
    if len(pattern) > MAX_PATTERN_CHARS:
        return f"the pattern has {len(pattern):,} characters; {MAX_PATTERN_CHARS:,} are allowed"
    if _multiply_repeats(pattern) > MAX_REPEATS:
        return f"the counted repeats of the pattern multiply to more than {MAX_REPEATS:,}; use * or + instead"
    try:
        regex.compile(pattern)
    except (regex.error, ValueError, OverflowError, RecursionError) as error:
        return f"the pattern is no regular expression: {error}"
    return None


def weigh_pattern(pattern: str) -> int:
    """About how many characters a pattern has with its counted repeats written out, each as much work as a letter."""
    groups, singles = 1, len(pattern)
    for match in _REPEAT.finditer(pattern):
        count = max(1, *(int(count[:9] or 0) for count in match.groups(default="")))
        if pattern[match.start() - 1 : match.start()] == ")":
            groups *= count  # groups may stand in groups
        else:
            singles += count
    wide = _WIDE_AROUND if _AROUND.search(pattern) else _WIDE
    return singles * groups * wide["p" if _PROPERTY.search(pattern) else "w" if _WORD.search(pattern) else ""]


def _multiply_repeats(pattern: str) -> int:
    return math.prod(max(1, *(int(count[:9] or 0) for count in pair)) for pair in _REPEAT.findall(pattern))


def matches_whole(pattern: str, text: str) -> bool:
    """Whether `pattern` matches all of `text`.

    Raises TimeoutError when that takes more than MATCH_S seconds, MemoryError when it takes too much memory.
    """
    return regex.compile(pattern).fullmatch(text, timeout=MATCH_S) is not None
