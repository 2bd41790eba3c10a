"""Other words for what a tool does and what it takes. People do not know its description: requests that repeat it would
teach a reader that anything else cannot be done."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from podium_lessons.catalog.catalog_data import CatalogTool, ParameterData

VERBS = {
    "retrieve": ("get", "find", "look up", "fetch", "pull up", "show me", "tell me", "check", "list"),
    "get": ("get", "find", "look up", "fetch", "see", "show me"),
    "calculate": ("work out", "compute", "figure out", "determine", "calculate", "find"),
    "compute": ("work out", "calculate", "figure out"),
    "estimate": ("estimate", "guess", "work out", "tell me roughly"),
    "create": ("create", "make", "set up", "start", "add"),
    "generate": ("make", "produce", "create", "generate"),
    "check": ("check", "look at", "see", "verify"),
    "analyze": ("analyze", "look into", "study", "examine"),
    "update": ("update", "change", "edit"),
    "track": ("track", "follow", "monitor"),
    "search": ("search", "look for", "find"),
    "cancel": ("cancel", "call off", "drop"),
    "delete": ("delete", "remove", "get rid of"),
    "send": ("send", "submit", "pass on"),
    "book": ("book", "reserve", "get me"),
    "detect": ("detect", "find", "spot"),
    "identify": ("identify", "find out", "recognize"),
    "request": ("request", "ask for"),
    "convert": ("convert", "turn", "change"),
    "predict": ("predict", "forecast", "guess"),
}
NOUN_VERBS = frozenset({"retrieve", "get", "calculate", "estimate", "find", "fetch", "check", "determine", "compute"})
KNOWN_VERBS = frozenset({*VERBS, *NOUN_VERBS, *(like for verbs in VERBS.values() for like in verbs)})
VAGUE_OUTPUTS = frozenset(
    {"status", "result", "results", "message", "data", "info", "information", "success", "unit", "description", "name",
     "title", "response", "output", "url", "source"}
)  # fmt: skip
_ARTICLE = re.compile(r"(?:the|a|an|information|details|all|any)\b", re.IGNORECASE)
_REST = re.compile(r"\s(?:of|for|based on|in|from|by|with|to|on|using|related to|about|at|and)\s.*")
_HINT = re.compile(r"^(?:specify )?(?:the|an?)\s+|^specify\s+", re.IGNORECASE)
_HINT_REST = re.compile(r"\s*(?:\(|,|\.|;| (?:for|from|to) which| to be| that | where | of the | in | you ).*")
_LABELS = {"id": "ID", "url": "URL"}
MAX_LABEL_WORDS = 4


@dataclass(frozen=True, slots=True)
class Wording:
    """What a tool does, as a request to do it ("look up the grip level") and as a thing ("the grip level"); the latter
    "" where the work yields nothing that could be named."""

    do: str
    thing: str


def word_tool(tool: CatalogTool, random: Random) -> Wording:
    """One of the ways to say what a tool does: its description, its name, the field that it returns, or the head of the
    description, with this verb or a like one."""
    verb, _, rest = tool.description.partition(" ")
    verb = verb.lower()
    verb = verb.removesuffix("s") if verb.endswith("s") and not verb.endswith("ss") else verb
    kind = random.choices(("description", "name", "output", "head"), (20, 35, 25, 20))[0]
    outputs = [name for name in tool.outputs if name not in VAGUE_OUTPUTS]
    if kind == "output" and outputs and verb in NOUN_VERBS:
        rest = write_label(outputs[0])
    elif kind == "name":
        rest = _strip_verb(write_label(tool.name), verb) or rest
    elif kind == "head":
        rest = _REST.sub("", rest)
    verbs = VERBS.get(verb, (verb,))
    spoken = random.choice(verbs) if kind != "description" or random.random() < 0.5 else verb
    thing = rest if _ARTICLE.match(rest) else f"the {rest}"
    return Wording(f"{spoken} {rest if random.random() < 0.3 else thing}", thing if verb in NOUN_VERBS else "")


def word_parameter(name: str, parameter: ParameterData, random: Random) -> str:
    """What people call a parameter: as it is named, or as its hint begins ("type of vehicle")."""
    label = write_label(name)
    if random.random() < 0.7:
        return label
    spoken = _HINT_REST.sub("", _HINT.sub("", parameter.hint)).strip()
    return spoken if 0 < len(spoken.split()) <= MAX_LABEL_WORDS else label


def write_label(name: str) -> str:
    """The name of a parameter or field in words: "patient ID"."""
    return " ".join(_LABELS.get(word, word) for word in name.split("_"))


def _strip_verb(words: str, verb: str) -> str:
    first, _, rest = words.partition(" ")
    return rest if first in {verb, *KNOWN_VERBS} else words
