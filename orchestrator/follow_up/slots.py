"""The places of a run's question that a follow-up may fill: the arguments of its steps that stand in the question, and
how well other words fit there, by type, enum, form and likeness.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from orchestrator.engine.episode import Episode
from orchestrator.follow_up.languages import Language
from orchestrator.follow_up.words import Fragment, match_any
from orchestrator.retrieval.choose_workers import content_words
from orchestrator.retrieval.likeness import compare_texts
from pool_registry.actions import JsonValue, as_text
from pool_registry.calls.live_worker import LiveWorker

MAX_SLOTS = 40  # of a question; each takes part in one comparison of texts
MAX_ARGUMENT_CHARS = 80  # of an argument whose words are looked up one by one: longer ones are programs
LEAST_INFLECTED = 3  # letters
SURE = 1.0
SAME_FORM = 0.4
SAME_PREPOSITION = 0.5
MIN_KIND = 0.35  # of likeness and form, without the preposition: "tomorrow" is no city
_WORD = re.compile(r"[^\W_](?:[\w.:/@-]*[^\W_])?")
_NUMBER = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?%?")


@dataclass(frozen=True, slots=True)
class Slot:
    """Words of a question that other words may replace. `rule` is the JSON Schema of the argument that they are, {} for
    a part of one; `about` says what it is."""

    text: str
    about: str = ""
    rule: Mapping[str, JsonValue] = field(default_factory=dict)

    def find(self, question: str, language: Language | None) -> re.Match[str] | None:
        """Where it stands in the question, with the article and the word before it."""
        articles = match_any(language.articles if language else ())
        before = rf"(?:\b(?P<word>\w+)\s+)??(?:\b(?P<article>{articles})\s+)?"
        return re.search(rf"{before}(?P<text>{_match_word(self.text)})", question, re.IGNORECASE)


def _match_word(text: str) -> str:
    """A word with the endings of a plural or a case, where it is not too short for them."""
    ending = r"[^\W\d_]{0,2}" if len(text) >= LEAST_INFLECTED and text[-1].isalpha() else ""
    return rf"(?<!\w){re.escape(text)}{ending}(?!\w)"


def list_slots(episode: Episode, question: str, workers: Mapping[str, LiveWorker]) -> list[Slot]:
    """The arguments of a run that stand in `question`, whole or in part; of those inside each other the longest."""
    slots: dict[str, Slot] = {}
    for run in episode.steps.values():
        worker = workers.get(run.step.worker)
        rules = worker.parameters.get("properties") if worker is not None else None
        for name, value in (run.arguments or run.step.arguments).items():
            rule = rules.get(name) if isinstance(rules, dict) else None
            for slot in _read_argument(name, value, rule if isinstance(rule, dict) else {}, question):
                if slot.text.casefold() not in slots and len(slots) < MAX_SLOTS:
                    slots[slot.text.casefold()] = slot
    return _drop_inner(slots.values())


def _read_argument(name: str, value: JsonValue, rule: Mapping[str, JsonValue], question: str) -> Iterator[Slot]:
    about = f"{name.replace('_', ' ')} {rule.get('description') or ''}".strip()
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, bool | dict | list) or item is None:
            continue
        text = as_text(item).strip()
        if text and re.search(_match_word(text), question, re.IGNORECASE):
            yield Slot(text, about, rule if item is value else {})
        elif isinstance(item, str) and len(text) <= MAX_ARGUMENT_CHARS:
            yield from (Slot(part, about) for part in _list_parts(text, question))


def _list_parts(text: str, question: str) -> Iterator[str]:
    """The content words of an argument that stand in the question, those beside each other as one."""
    content = {word.casefold() for word in _WORD.findall(text) if content_words(word) or word.isdigit()}
    part = ""
    for match in re.finditer(rf"{_WORD.pattern}|\s+|[^\s\w]+", question):
        if match[0].casefold() in content or (part and match[0].isspace()):
            part += match[0]
        elif part:
            yield part.strip()
            part = ""
    if part:
        yield part.strip()


def _drop_inner(slots: Iterable[Slot]) -> list[Slot]:
    slots = list(slots)
    return [
        slot
        for slot in slots
        if not any(
            other is not slot and re.search(_match_word(slot.text), other.text, re.IGNORECASE) for other in slots
        )
    ]


def fill(question: str, slot: Slot, fragment: Fragment, language: Language | None) -> str:
    """The question with the fragment in the place of the slot, wherever it stands. An article of the fragment takes
    the place of one."""
    match = slot.find(question, language)
    pattern = _match_word(slot.text)
    words = fragment.words
    if match is not None and match["article"] and fragment.article:
        pattern, words = rf"(?<!\w){match['article']}\s+{pattern}", f"{fragment.article} {words}"
    return re.sub(pattern, lambda _: words, question, flags=re.IGNORECASE)


def score_slots(question: str, slots: Sequence[Slot], fragment: Fragment, language: Language | None) -> list[float]:
    """How well a fragment fits into the slots, from 0, where it cannot stand there, to 1.5; in a language that is not
    known by its form alone. Blocks for the sentence model: call it from a thread."""
    kinds = [_judge_kind(slot, fragment.words) for slot in slots]
    unsure = [slot for slot, kind in zip(slots, kinds, strict=True) if kind is None]
    measured = [] if language is None or _needs_no_likeness(unsure, fragment, language) else unsure
    scores = _measure_likeness(measured, fragment.words)
    likeness = dict(zip((slot.text for slot in measured), scores, strict=True))
    places = [slot.find(question, language) for slot in slots]
    before = [(place["word"] or "").casefold() if place else "" for place in places]
    return [
        _add_up(fragment, _judge_likeness(slot, fragment, likeness, language) if kind is None else kind, word)
        for slot, kind, word in zip(slots, kinds, before, strict=True)
    ]


def _needs_no_likeness(unsure: Sequence[Slot], fragment: Fragment, language: Language) -> bool:
    """Whether a fragment can go to one slot alone, and has its form: the sentence model takes seconds to load."""
    return len(unsure) == 1 and not fragment.can_be_added and _has_same_form(unsure[0].text, fragment.words, language)


def _judge_likeness(slot: Slot, fragment: Fragment, likeness: Mapping[str, float], language: Language | None) -> float:
    return likeness.get(slot.text, 0.0) + SAME_FORM * _has_same_form(slot.text, fragment.words, language)


def _add_up(fragment: Fragment, kind: float, word: str) -> float:
    """A fragment's kind, and more where the word before a slot is its preposition."""
    return 0.0 if kind < MIN_KIND else min(kind, SURE) + SAME_PREPOSITION * (word == fragment.preposition != "")


def _judge_kind(slot: Slot, words: str) -> float | None:
    """Whether words can be such an argument: 0 never, SURE certainly, None where their likeness must say it."""
    is_number, was_number = _is_number(words), _is_number(slot.text)
    if is_number or was_number:
        return SURE if is_number and was_number else 0.0
    values, pattern = slot.rule.get("enum"), slot.rule.get("pattern")
    if isinstance(values, list) and words.casefold() in {as_text(value).casefold() for value in values}:
        return SURE
    if isinstance(pattern, str):
        return SURE if _fits_pattern(pattern, words) else 0.0
    return None


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _fits_pattern(pattern: str, words: str) -> bool:
    """JSON Schema's patterns are searched for; one that Python cannot read refuses nothing."""
    try:
        return re.search(pattern, words) is not None
    except re.error:
        return True


def _measure_likeness(slots: Sequence[Slot], words: str) -> list[float]:
    """The likeness of words to each slot: to its text, or to what it is about."""
    if not slots:
        return []
    texts = [slot.text for slot in slots] + [slot.about or slot.text for slot in slots]
    scores = compare_texts([words], texts).scores[0]
    return [max(scores[place], scores[place + len(slots)]) for place in range(len(slots))]


def _has_same_form(text: str, other: str, language: Language | None) -> bool:
    """Whether both have the form of a name, a code or a date; words in small letters have none, nor have those with a
    capital where all nouns have one."""
    form = _read_form(text)
    says_something = form.replace("Aa", "") if language and language.capital_nouns else form
    return form == _read_form(other) and re.search("[A9]", says_something) is not None


def _read_form(text: str) -> str:
    form = re.sub(r"\d+", "9", text)
    form = re.sub(
        r"[^\W\d_]+", lambda match: "A" if match[0].isupper() and len(match[0]) > 1 else _form_word(match[0]), form
    )
    return " ".join(word for word, _ in groupby(form.split(" ")))


def _form_word(word: str) -> str:
    return "Aa" if word[0].isupper() else "a"
