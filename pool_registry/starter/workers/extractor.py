"""Kind `extractor`: a reader made of rules. It stands in for an LLM and says so on its card.

It reads what its step may see, and nothing else. Shown more passages than the request speaks of, it
does not guess: over-sharing is an error here, as it is a distraction to a model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from pool_registry.actions import JsonValue, as_text
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.worker import Call, NoConfig, Reply, Worker, one_string

FORMS = (
    "the number in the passage",
    "the number in each passage",
    "the country in the passage",
    "the country in each passage",
    "the text",
)
SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
MAX_CHARS = 200  # of an instruction; anything longer is none of FORMS
MAX_DIGITS = 40
_FIGURE = re.compile(
    r"(?P<sign>(?:(?<=UTC)|(?<![\w.)]))[-−])?[$€£]?(?P<digits>\d[\d,]*(?:\.\d+)?)"
    r"(?:\s*(?P<scale>thousand|million|billion|trillion)\b)?",
    re.IGNORECASE,
)
_TOTAL = re.compile(r"\btotal\s*:\s*", re.IGNORECASE)
_NUMBER = re.compile(r"\b(?:numbers?|figures?|values?)\b")
_COUNTRY = re.compile(r"\bcountr(?:y|ies)\b")
_TEXT = re.compile(r"\btexts?\b")
_EACH = re.compile(r"\b(?:each|every|all)\b")


class Extractor(Worker[NoConfig]):
    label = "Extractor"
    summary = "Rules that pull a number or a name out of passages. Stands in for an LLM reader."
    icon = "M5 4h9l5 5v11H5z M14 4v5h5 M8 13h8 M8 16h5"
    template = None  # its task family needs it; a person would not add it
    cacheable = True
    sample = {"instruction": FORMS[0]}
    parameters = one_string("instruction", f"One of: {'; '.join(FORMS)}.")
    sample_seen = "Mexico Geography Irrigated land: 60,620 sq km (2012)"

    async def call(self, call: Call) -> Reply:
        read, per_passage = parse_instruction(call.text("instruction"))
        passages = [as_text(seen.observation.value) for seen in call.visible if seen.observation.ok]
        if not passages:
            raise WorkerFault("nothing_to_read", "no passage is visible; put the search step into access")
        if per_passage:
            return Reply([read(passage) for passage in passages])
        if len(passages) > 1:
            sentence = f"{len(passages)} passages are visible; show one, or ask for each passage"
            raise WorkerFault("ambiguous", sentence)
        return Reply(read(passages[0]))


def parse_instruction(instruction: str) -> tuple[Callable[[str], JsonValue], bool]:
    """Return what to read, and whether in each passage. Raises BadCall listing the forms."""
    words = instruction.lower()
    if len(words) <= MAX_CHARS:
        for pattern, read in _READERS:
            if pattern.search(words):
                return read, _EACH.search(words) is not None
    raise BadCall("write one of: " + "; ".join(FORMS))


def number(passage: str) -> float | int:
    """Return the figure after "total:", or else the first one, of a passage ("Title: text")."""
    words = text(passage)
    total = _TOTAL.search(words)
    match = (_FIGURE.match(words, total.end()) if total else None) or _FIGURE.search(words)
    if match is None or len(match["digits"]) > MAX_DIGITS:
        raise WorkerFault("not_found", f"there is no number in: {words[:120]}")
    value = float(match["digits"].replace(",", "")) * SCALES.get((match["scale"] or "").lower(), 1.0)
    value = round(math.copysign(value, -1.0 if match["sign"] else 1.0), 6)
    return int(value) if value.is_integer() else value


def country(passage: str) -> str:
    """Return the country in a passage's title: "Mexico — Geography — Irrigated land: ..."."""
    title, dash, _ = passage.partition(" — ")
    if not dash or len(title) > 80:
        raise WorkerFault("not_found", f"the passage does not name its country: {passage[:120]}")
    return title.strip()


def text(passage: str) -> str:
    """Return a passage without its title."""
    return passage.partition(": ")[2] or passage


_READERS: tuple[tuple[re.Pattern[str], Callable[[str], JsonValue]], ...] = (
    (_NUMBER, number),
    (_COUNTRY, country),
    (_TEXT, text),
)
