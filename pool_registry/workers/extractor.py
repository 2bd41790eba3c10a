"""Kind `extractor`: a reader made of rules. It stands in for an LLM and says so on its card.

It reads what its step may see, and nothing else. Shown more passages than the request speaks of, it
does not guess: over-sharing is an error here, as it is a distraction to a model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pool_registry.actions import JsonValue, as_text
from pool_registry.errors import BadCall, WorkerFault
from pool_registry.worker import Call, NoConfig, Reply, Worker, one_string

FORMS = (
    "the number in the passage",
    "the number in each passage",
    "the country in the passage",
    "the country in each passage",
)
SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_FIGURE = re.compile(
    r"(?P<sign>-)?\$?(?P<digits>\d[\d,]*(?:\.\d+)?)(?:\s*(?P<scale>thousand|million|billion|trillion)\b)?"
)
_REQUEST = re.compile(
    r"\b(?P<what>number|figure|value|country)\b.*?\b(?P<which>each|every|all|the)\b.*\bpassages?\b"
)


class Extractor(Worker[NoConfig]):
    sample = {"instruction": FORMS[0]}

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return one_string("instruction", f"One of: {'; '.join(FORMS)}.")

    async def call(self, call: Call) -> Reply:
        request = _REQUEST.search(call.text("instruction").lower())
        if request is None:
            raise BadCall("write one of: " + "; ".join(FORMS))
        passages = [as_text(seen.observation.value) for seen in call.visible if seen.observation.ok]
        if not passages:
            raise WorkerFault("nothing_to_read", "no passage is visible; put the search step into access")
        read: Callable[[str], JsonValue] = country if request["what"] == "country" else number
        if request["which"] in ("each", "every", "all"):
            return Reply([read(passage) for passage in passages])
        if len(passages) > 1:
            raise WorkerFault(
                "ambiguous",
                f"{len(passages)} passages are visible; show one, or ask for each passage",
            )
        return Reply(read(passages[0]))


def number(passage: str) -> float | int:
    """The first figure of a passage's text ("Title: text"), with its scale word applied."""
    text = passage.partition(": ")[2] or passage
    found = _FIGURE.search(text)
    if found is None:
        raise WorkerFault("not_found", f"there is no number in: {text[:120]}")
    value = float(found["digits"].replace(",", "")) * SCALES.get(found["scale"] or "", 1.0)
    value = -value if found["sign"] else value
    value = round(value, 6)
    return int(value) if value.is_integer() else value


def country(passage: str) -> str:
    """The country in a passage's title: "Mexico — Geography — Irrigated land: ..."."""
    title, dash, _ = passage.partition(" — ")
    if not dash or len(title) > 80:
        raise WorkerFault("not_found", f"the passage does not name its country: {passage[:120]}")
    return title.strip()
