"""The words of a follow-up question, as a person types them in English: what only joins it to the question before, its
preposition, and what stands for something in the answer before ("the second one", "that").
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.engine.events import EarlierRun
from orchestrator.presentation.units import UNITS
from pool_registry.actions import JsonValue
from pool_registry.text import one_line

MAX_FRAGMENT_WORDS = 6  # more words without a word that asks are a request of their own
MAX_ITEM_CHARS = 80
MAX_ITEMS = 50
_PREPOSITIONS = "in into on at for from to of with by as after before since until per about".split()  # noqa: SIM905
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()  # noqa: SIM905
_LEAD = re.compile(
    r"(?:(?:and|but|or|so|then|ok|okay|yes|no|now|also|same|please|(?:what|how) about|what if it (?:is|was|were)|what"
    r"|how much|how many|which|the same|instead)\b[,:]?\s*)+(?=\S)",
    re.IGNORECASE,
)
_TAIL = re.compile(r"(?:[\s,]+(?:then|instead|please|too|though))*[\s?.!]*$", re.IGNORECASE)
_ASKS = re.compile(
    r"(?:(?:and|but|or|so|then|ok|okay|now|please)\b[,:]?\s*)*(?!(?:what|how) about\b|what if it\b)"
    r"(?:what|which|who|whose|whom|where|when|why|how|is|are|was|were|do|does|did|can|could|will|would|should|has|have)"
    r"(?:'s|s)?\s+(?!(?:in|into|on|at|for|from|to|with|by|per)\b|(?:much|many)\s+(?:in|for|on|at|from|to)\b)\S+\s+\S+",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"today|tonight|tomorrow|yesterday|(?:next|last|this) (?:week|month|year|\w+day)|(?:mon|tues|wednes|thurs|fri|satur"
    r"|sun)day",
    re.IGNORECASE,
)
_ENTRY = rf"\bthe (?P<place>{'|'.join(_ORDINALS)}|last)"
_ORDINAL = re.compile(rf"{_ENTRY}(?: one\b|(?=\s*[?.!,]|\s*$))", re.IGNORECASE)
_QUANTITY = re.compile(
    r"\b(?:that|this|it)(?=\s+(?:times|plus|minus|divided by|multiplied by|squared|rounded)\b"
    r"|\s+(?:in|into|as|to)\s+(?P<unit>[^\W\d]\S*?)[?.!]*$)",
    re.IGNORECASE,
)
# Not "it", "that" and "this", which stand for nothing in "Is it cold in Oslo?" and "this week".
_POINTER = re.compile(
    r"\b(?:its|he|she|him|his|hers?|they|them|theirs?|those|these|(?:that|this|which|the other) ones?)\b", re.IGNORECASE
)
_ARTICLE = re.compile(r"(?:a|an|the)\s+", re.IGNORECASE)
_BETWEEN = re.compile(r"\n+(?:- )?|; |, (?:and )?| and ")
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Fragment:
    """What a follow-up puts in the place of something: its words, with the preposition ("" without) and the article
    before them."""

    words: str
    preposition: str = ""
    article: str = ""

    @property
    def phrase(self) -> str:
        """As it was typed, with both."""
        return " ".join(filter(None, (self.preposition, self.article, self.words)))

    @property
    def can_be_added(self) -> bool:
        """Whether it can stand behind a question that says nothing of the kind yet: "in pounds", "tomorrow"."""
        return bool(self.preposition) or _TIME.fullmatch(self.words) is not None


@dataclass(frozen=True, slots=True)
class Resolved:
    """A follow-up with what stood for something in an answer replaced by that. `quotes` says that an answer was used,
    `problem` why it could not be."""

    text: str
    quotes: bool = False
    problem: str = ""


def asks_by_itself(text: str) -> bool:
    """Whether a follow-up is a whole question or request: "How far is it to Oslo?", but not "and for Oslo?"."""
    return _ASKS.match(text) is not None or len(text.split()) > MAX_FRAGMENT_WORDS


def find_pointer(text: str) -> str:
    """A word that stands for somebody or something that was named before; "" without one."""
    match = _POINTER.search(text)
    return match[0] if match else ""


def strip_joining(text: str) -> str:
    """A follow-up without the words that only join it to what was before, for a whole question: "and", "ok, so"."""
    plain = re.sub(r"^(?:(?:and|but|or|so|then|ok|okay|now)\b[,:]?\s*)+(?=\S)", "", one_line(text), flags=re.IGNORECASE)
    return plain[:1].upper() + plain[1:]


def read_fragment(text: str) -> Fragment:
    """The words that a follow-up puts in the place of others."""
    rest = _TAIL.sub("", one_line(text))
    rest = _LEAD.sub("", rest, count=1) if _LEAD.match(rest) else rest
    first, _, words = rest.partition(" ")
    preposition = first.casefold() if first.casefold() in _PREPOSITIONS and words.strip() else ""
    rest = words.strip() if preposition else rest
    article = _ARTICLE.match(rest)
    if article is None or not rest[article.end() :]:
        return Fragment(rest, preposition)
    return Fragment(rest[article.end() :], preposition, article[0].strip())


def find_phrase(question: str, preposition: str) -> str:
    """What follows a preposition in a question, up to the next preposition; "" where it has none."""
    ends = "|".join(_PREPOSITIONS)
    match = re.search(rf"\b{preposition}\s+((?:(?!(?:{ends})\b)[^\s?,;]+\s*){{1,4}})", question, re.IGNORECASE)
    return _ARTICLE.sub("", match[1].strip(" .!"), count=1) if match and preposition else ""


def resolve_references(text: str, before: Sequence[EarlierRun]) -> Resolved:
    """Replace what stands for something in the answer of a run before; the latest run is the last."""
    ordinal = _ORDINAL.search(text)
    if ordinal is not None:
        return _resolve_ordinal(text, ordinal, before)
    quantity = _QUANTITY.search(text)
    latest = read_value(before[-1].answer) if before else ""
    if quantity is None or not _NUMBER.match(latest) or not _may_be_unit(quantity["unit"]):
        return Resolved(text)
    return Resolved(f"{text[: quantity.start()]}{latest}{text[quantity.end() :]}", quotes=True)


def _may_be_unit(word: str | None) -> bool:
    """Units and currencies: a number can be "in pounds", and something else "in stock"."""
    return word is None or word.casefold() in UNITS or bool(re.fullmatch("[A-Z]{3}|[a-z]+s|yen|percent", word))


def _resolve_ordinal(text: str, ordinal: re.Match[str], before: Sequence[EarlierRun]) -> Resolved:
    word = ordinal["place"].casefold()
    items = next((items for run in reversed(before) if len(items := list_items(run)) > 1), [])
    if not items:
        return Resolved(text, problem=f"no answer before is a list that “{ordinal[0]}” could be of")
    place = len(items) - 1 if word == "last" else _ORDINALS.index(word)
    if place >= len(items):
        return Resolved(text, problem=f"the list before has {len(items)} entries, too few for “{ordinal[0]}”")
    return Resolved(f"{text[: ordinal.start()]}{items[place]}{text[ordinal.end() :]}", quotes=True)


def list_items(run: EarlierRun) -> list[str]:
    """The entries of a run's answer that is a list, or names several in words ("Ada, Bo and Cy"); none of another."""
    value = _parse(run.value)
    if isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, list)]
        value = lists[0] if len(lists) == 1 else value
    if isinstance(value, list):
        return [_name_item(item) for item in value[:MAX_ITEMS]]
    body = run.answer.partition(":\n")[2] or run.answer.rpartition(": ")[2]
    parts = [part.strip(" .") for part in _BETWEEN.split(body.removeprefix("- "))][:MAX_ITEMS]
    is_list = len(parts) > 1 and all(0 < len(part) <= MAX_ITEM_CHARS for part in parts)
    return parts if is_list else []


def _parse(value: JsonValue) -> JsonValue:
    """What a text holds as JSON, as many tools return it; else the value itself."""
    if not isinstance(value, str) or value.strip()[:1] not in ("{", "["):
        return value
    try:
        parsed: JsonValue = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return parsed


def _name_item(item: JsonValue) -> str:
    """An entry in words: of an object its first text, which names it as a rule."""
    if isinstance(item, dict):
        return next((value for value in item.values() if isinstance(value, str) and value), json.dumps(item))
    return item if isinstance(item, str) else json.dumps(item)


def read_value(answer: str) -> str:
    """The value at the end of an answer of one line: "Price (rye loaf): 4.2 EUR" has 4.2 EUR."""
    value = answer.rpartition(": ")[2].strip().removeprefix("≈ ")
    return value if "\n" not in value and len(value) <= MAX_ITEM_CHARS else ""
