"""How a follow-up question can be understood: as questions that stand alone.

A follow-up that asks by itself stays. "And for Oslo?" replaces the part of the earlier question that it fits best, or,
with a preposition that nothing there has, is put behind it: "in pounds". Where two parts fit alike, both questions are
offered; where none does, a sentence says so. "The second one" is an entry of an earlier answer, "that" its number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.engine.episode import Episode
from orchestrator.engine.events import EarlierRun
from orchestrator.follow_up.languages import Language, find_language
from orchestrator.follow_up.slots import MIN_KIND, SAME_PREPOSITION, Slot, fill, list_slots, score_slots
from orchestrator.follow_up.words import (
    Fragment,
    Resolved,
    asks_by_itself,
    find_phrase,
    find_pointer,
    read_fragment,
    resolve_references,
    strip_joining,
)
from pool_registry.actions import NO_USAGE, Usage
from pool_registry.calls.live_worker import LiveWorker
from pool_registry.text import shorten

MARGIN = 0.2  # by which the best place is better than the next, or a person chooses
MAX_READINGS = 3
MAX_QUOTED_CHARS = 80


@dataclass(frozen=True, slots=True)
class Reading:
    """A question that stands alone; `quotes` says that it holds a part of an earlier answer, `is_whole` that it was
    typed as it is."""

    question: str
    quotes: bool = False
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Understanding:
    """The questions that a follow-up may mean, the likeliest first; several are for a person to choose from. Without
    any, `problem` is a sentence that says why. `agent` is who read it, with what that used; "" where rules did."""

    readings: tuple[Reading, ...] = ()
    problem: str = ""
    agent: str = ""
    usage: Usage = NO_USAGE


def list_readings(
    origin: Episode, text: str, before: Sequence[EarlierRun], workers: Mapping[str, LiveWorker]
) -> Understanding:
    """Understand a follow-up of the run `origin`, the last of those `before`. Blocks for the sentence model: call it
    from a thread."""
    language = find_language((origin.query, text))
    resolved = resolve_references(text, before, language) if language else Resolved(text)
    if resolved.problem:
        return Understanding(problem=resolved.problem)
    if language and (pointer := find_pointer(resolved.text, language)):
        return Understanding(problem=f"no rule says what {_quote(pointer)} stands for")
    if language and asks_by_itself(resolved.text, language):
        question = strip_joining(resolved.text, language)
        return Understanding((Reading(question, resolved.quotes, is_whole=not resolved.quotes),))
    fragment = read_fragment(resolved.text, language)
    questions = _list_questions(origin, fragment, workers, language) if fragment.words else []
    if not questions:
        phrase, question = _quote(fragment.phrase or text), _quote(origin.query)
        return Understanding(problem=f"nothing in {question} can stand for {phrase}")
    return Understanding(tuple(Reading(question, resolved.quotes) for question in questions))


def _list_questions(
    origin: Episode, fragment: Fragment, workers: Mapping[str, LiveWorker], language: Language | None
) -> list[str]:
    question = origin.query
    slots = list_slots(origin, question, workers)
    phrase = find_phrase(question, fragment.preposition, language) if language else ""
    if phrase and not any(phrase.casefold() in slot.text.casefold() for slot in slots):
        slots = [slot for slot in slots if slot.text.casefold() not in phrase.casefold()]
        slots.append(Slot(phrase))
    scores = score_slots(question, slots, fragment, language)
    best = max(scores, default=0.0)
    order = sorted(range(len(slots)), key=lambda place: -scores[place])
    fitting = [slots[place] for place in order if scores[place] > max(best - MARGIN, 0.0)]
    questions = [fill(question, slot, fragment, language) for slot in fitting]
    if fragment.can_be_added and best < MIN_KIND + SAME_PREPOSITION:
        questions.append(_add(question, fragment))
    return [text for text in dict.fromkeys(questions) if text != question][:MAX_READINGS]


def _add(question: str, fragment: Fragment) -> str:
    plain = question.rstrip()
    end = plain[len(plain.rstrip("?.! ")) :].strip()
    return f"{plain.rstrip('?.! ')} {fragment.phrase}{end}"


def _quote(text: str) -> str:
    return f"“{shorten(text, MAX_QUOTED_CHARS)}”"
