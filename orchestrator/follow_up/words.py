"""The words of a follow-up question, as a person types them: what only joins it to the question before, its
preposition, and what stands for something in the answer before ("the second one", "that").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from orchestrator.engine.events import EarlierRun
from orchestrator.follow_up.languages import Language, Phrases
from orchestrator.presentation.units import UNITS
from orchestrator.presentation.values import read_printed
from pool_registry.text import one_line

MAX_FRAGMENT_WORDS = 6  # more words without a word that asks are a request of their own
LEAST_QUESTION_WORDS = 3
MAX_ITEM_CHARS = 80
MAX_ITEMS = 50
_SIGNS = " ?.!,:;¿¡"
_BETWEEN = re.compile(r"\n+(?:- )?|; |, (?:and )?| and ")
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
_CODE = re.compile("[A-Z]{3}")


@dataclass(frozen=True, slots=True)
class Fragment:
    """What a follow-up puts in the place of something: its words, with the preposition ("" without) and the article
    before them. `is_time`: a time, such as "tomorrow"."""

    words: str
    preposition: str = ""
    article: str = ""
    is_time: bool = False

    @property
    def phrase(self) -> str:
        """As it was typed, with both."""
        return " ".join(filter(None, (self.preposition, self.article, self.words)))

    @property
    def can_be_added(self) -> bool:
        """Whether it can stand behind a question that says nothing of the kind yet: "in pounds", "tomorrow"."""
        return bool(self.preposition) or self.is_time


@dataclass(frozen=True, slots=True)
class Resolved:
    """A follow-up with what stood for something in an answer replaced by that. `quotes` says that an answer was used,
    `problem` why it could not be."""

    text: str
    quotes: bool = False
    problem: str = ""


def asks_by_itself(text: str, language: Language) -> bool:
    """Whether a follow-up is a whole question or request: "How far is it to Oslo?", but not "and for Oslo?"."""
    words = _drop_leading(text.split(), language.conjunctions)
    rest = _drop_leading(words, language.openers)
    swaps = _count_leading(words, language.swaps) > 0 or _count_leading(rest, language.prepositions) > 0
    asks = _count_leading(words, language.asking) > 0 and len(words) >= LEAST_QUESTION_WORDS
    return (asks and not swaps) or len(text.split()) > MAX_FRAGMENT_WORDS


def find_pointer(text: str, language: Language) -> str:
    """A word that stands for somebody or something that was named before; "" without one."""
    match = _compile_words(language.pointers).search(text)
    return match[0] if match else ""


def strip_joining(text: str, language: Language) -> str:
    """A follow-up without the words that only join it to what was before, for a whole question: "and", "ok, so"."""
    plain = " ".join(_drop_leading(text.split(), language.conjunctions))
    return plain[:1].upper() + plain[1:]


def read_fragment(text: str, language: Language | None) -> Fragment:
    """The words that a follow-up puts in the place of others; all of them where its language is not known."""
    words = one_line(text).strip(_SIGNS).split()
    if language is None:
        return Fragment(" ".join(words))
    words = _drop_leading(words, language.conjunctions + language.swaps + language.openers)
    while len(words) > 1 and (count := _count_leading(words[::-1], language.closing)):
        words = words[:-count]
    words = _strip_signs(words)
    place = _count_leading(words[:-1], language.prepositions)
    end = place + _count_leading(words[place:-1], language.articles)
    rest = words[end:]
    is_time = bool(rest) and _count_leading(rest, language.times) == len(rest)
    return Fragment(" ".join(rest), " ".join(words[:place]).casefold(), " ".join(words[place:end]), is_time)


def _strip_signs(words: Sequence[str]) -> list[str]:
    return " ".join(words).strip(_SIGNS).split()


def find_phrase(question: str, preposition: str, language: Language) -> str:
    """What follows a preposition in a question, up to the next preposition; "" where it has none."""
    words = question.split()
    places = [place for place, word in enumerate(words) if preposition and word.casefold() == preposition]
    if not places:
        return ""
    phrase: list[str] = []
    for word in words[places[0] + 1 : places[0] + 5]:
        if _count_leading([word], language.prepositions):
            break
        phrase.append(word)
        if word[-1] in _SIGNS:
            break
    return " ".join(_drop_leading(_strip_signs(phrase), language.articles))


def resolve_references(text: str, before: Sequence[EarlierRun], language: Language) -> Resolved:
    """Replace what stands for something in the answer of a run before; the latest run is the last."""
    ordinal = _compile_ordinal(language).search(text)
    if ordinal is not None:
        return _resolve_ordinal(text, ordinal, before, language)
    quantity = _compile_quantity(language).search(text)
    latest = read_value(before[-1].answer) if before else ""
    if quantity is None or not _NUMBER.match(latest) or not _may_be_unit(quantity["unit"], language):
        return Resolved(text)
    return Resolved(f"{text[: quantity.start()]}{latest}{text[quantity.end() :]}", quotes=True)


def _may_be_unit(word: str | None, language: Language) -> bool:
    """Units and currencies: a number can be "in pounds", and something else "in stock"."""
    if word is None:
        return True
    name = word.strip(_SIGNS)
    return name.casefold() in UNITS or (name.casefold(),) in language.units or bool(_CODE.fullmatch(name))


def _resolve_ordinal(text: str, ordinal: re.Match[str], before: Sequence[EarlierRun], language: Language) -> Resolved:
    word = (ordinal["place"].casefold(),)
    items = next((items for run in reversed(before) if len(items := list_items(run)) > 1), [])
    if not items:
        return Resolved(text, problem=f"no answer before is a list that “{ordinal[0]}” could be of")
    place = len(items) - 1 if word in language.last else language.ordinals.index(word)
    if place >= len(items):
        return Resolved(text, problem=f"the list before has {len(items)} entries, too few for “{ordinal[0]}”")
    return Resolved(f"{text[: ordinal.start()]}{items[place]}{text[ordinal.end() :]}", quotes=True)


def list_items(run: EarlierRun) -> list[str]:
    """The entries of a run's answer that is a list, or names several in words ("Ada, Bo and Cy"); none of another."""
    value = read_printed(run.value)
    if isinstance(value, dict):
        lists = [item for item in value.values() if isinstance(item, list)]
        value = lists[0] if len(lists) == 1 else value
    if isinstance(value, list):
        return [_name_item(item) for item in value[:MAX_ITEMS]]
    body = run.answer.partition(":\n")[2] or run.answer.rpartition(": ")[2]
    parts = [part.strip(" .") for part in _BETWEEN.split(body.removeprefix("- "))][:MAX_ITEMS]
    is_list = len(parts) > 1 and all(0 < len(part) <= MAX_ITEM_CHARS for part in parts)
    return parts if is_list else []


def _name_item(item: object) -> str:
    """An entry in words: of an object its first text, which names it as a rule."""
    if isinstance(item, dict):
        return next((value for value in item.values() if isinstance(value, str) and value), json.dumps(item))
    return item if isinstance(item, str) else json.dumps(item)


def read_value(answer: str) -> str:
    """The value at the end of an answer of one line: "Price (rye loaf): 4.2 EUR" has 4.2 EUR."""
    value = answer.rpartition(": ")[2].strip().removeprefix("≈ ")
    return value if "\n" not in value and len(value) <= MAX_ITEM_CHARS else ""


def _drop_leading(words: Sequence[str], phrases: Phrases) -> list[str]:
    """The words without the phrases that they begin with, one after another; at least one word stays."""
    start = 0
    while start < len(words) - 1 and (count := _count_leading(words[start : start + 8], phrases)):
        if start + count >= len(words):
            break
        start += count
    return list(words[start:])


def _count_leading(words: Sequence[str], phrases: Phrases) -> int:
    """How many words the longest phrase has that they begin with; 0 without one."""
    plain = tuple(word.casefold().strip(_SIGNS) for word in words[:8])
    return max((len(phrase) for phrase in phrases if plain[: len(phrase)] == phrase), default=0)


def match_any(phrases: Iterable[Sequence[str]]) -> str:
    """A pattern for the phrases; it matches nothing where there are none."""
    return "|".join(r"\s+".join(map(re.escape, phrase)) for phrase in phrases) or r"(?!)"


@cache
def _compile_words(phrases: Phrases) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{match_any(phrases)})\b", re.IGNORECASE)


@cache
def _compile_ordinal(language: Language) -> re.Pattern[str]:
    """ "the second one", and "the second" at the end of a sentence or before a comma; `place` is the ordinal."""
    endings = f"(?:{'|'.join(language.endings)})?" if language.endings else ""
    place = rf"(?P<place>{match_any(language.ordinals + language.last)}){endings}\b"
    behind = rf"(?: (?:{match_any(language.entries)})\b|(?=[{re.escape(_SIGNS[1:])}]|$))"
    return re.compile(rf"\b(?:{match_any(language.definite)}) {place}{behind}", re.IGNORECASE)


@cache
def _compile_quantity(language: Language) -> re.Pattern[str]:
    """ "that times", and "that in pounds" at the end, whose last word is `unit`."""
    sums = rf"(?= (?:{match_any(language.operations)})\b)"
    unit = rf"(?= (?:{match_any(language.conversions)}) (?P<unit>[^\W\d]\S*)$)"
    return re.compile(rf"\b(?:{match_any(language.quantities)})(?:{sums}|{unit})", re.IGNORECASE)
