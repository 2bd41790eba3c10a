"""What keeps a made query from being one that a person would type: marks of descriptions and of forms left in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

MAX_WORDS = 30
# Each sign with the sentence that says why a query that has it is left out.
SIGNS: Mapping[str, re.Pattern[str]] = {
    "an example of the description is left in it": re.compile(
        r"\be\.g\.|\bi\.e\.|\betc\b|\bsuch as\b|\bfor example\b|\b(?:for|of) (\S+) like ", re.IGNORECASE
    ),
    "words stand for a value": re.compile(
        r"\b(?:two|three|these|both) (?:numbers|values|amounts|dates|places|texts|strings)\b|\bso many\b"
        r"|\ba (?:given )?number of\b|\bthe given\b|\ba given\b|\bspecified\b",
        re.IGNORECASE,
    ),
    "arguments stand in it as in a form": re.compile(r"\([^()]*\)|[{}<>|`]|\w_\w|\b\w+=\S"),
    "a word is missing or repeated": re.compile(
        r"\b(?!(?:had|that|\d+)\b)(\w+) \1\b|\b(?:(?:for|of|in|at|to) (?:how|what|where|when|who)|(?:the|a|of) which)\b"
        r"|\bthe (?:how|what|where|when|who)\b"
        r"|\b(?:of|for|in|the) (?:of|for|in)\b|\bthe (?:a|an|the)\b",
        re.IGNORECASE,
    ),
    "a result has no name": re.compile(r"\b(?:for|of|by|with) the result\b", re.IGNORECASE),
    "two wishes are run together": re.compile(r"[.?!] \S"),
}
_SHORTENED = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|St|Prof|No)\. ")


def find_problem(query: str, workers: Collection[str] = (), values: Collection[str] = ()) -> str:
    """Why a query would not be typed by a person; "" where nothing speaks against it. What stands in `values`, names
    and figures of the data, is a person's own and not looked at."""
    text = _SHORTENED.sub("X ", query)
    for value in sorted(filter(None, values), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "X", text)
    text = re.sub(r"\bX(?: X)+\b", "X", text)
    for problem, sign in SIGNS.items():
        if sign.search(text):
            return problem
    if any(name in text for name in workers if "_" in name or "-" in name):
        return "it names a worker"
    if text.count('"') % 2 or text.count("(") != text.count(")"):
        return "a quotation or a bracket is not closed"
    return f"it has more than {MAX_WORDS} words" if len(text.split()) > MAX_WORDS else ""
