"""Words for practice tasks: what a call asks for, from the worker's description and the call's arguments.

"Returns the price of one item in euros." with {"item": "tea"} asks for "the price of tea in euros". An agent can put
the queries into better words (rewrite.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from random import Random

import yaml
from pydantic import Field

from assets import asset
from pool_registry.actions import JsonValue, as_text
from pool_registry.strict_model import FrozenModel

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_ASIDE = re.compile(r"\s*\([^)]*\)|\s*[:;].*|\s*,? (?:e\.g\.|such as|for example)\b.*")
_ARTICLE = r"(?:an?|one|the|some|this|that|any|each|every|its)\s+(?:given\s+)?"


class PracticeWords(FrozenModel):
    """assets/tasks/practice_words.yaml: frames of queries, and the words that begin descriptions."""

    noun: tuple[str, ...] = Field(min_length=1)
    verb: tuple[str, ...] = Field(min_length=1)
    pair: tuple[str, ...] = Field(min_length=1)
    sum: tuple[str, ...] = Field(min_length=1)
    difference: tuple[str, ...] = Field(min_length=1)
    sequence: tuple[str, ...] = Field(min_length=1)
    returning: tuple[str, ...]
    doing: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Phrase:
    """What is asked for: a thing ("the price of tea") or, where `is_action`, what to do ("convert 5 km to miles")."""

    text: str
    is_action: bool = False


@cache
def load_words() -> PracticeWords:
    return PracticeWords.model_validate(yaml.safe_load(asset("tasks/practice_words.yaml").read_text(encoding="utf-8")))


def describe_call(description: str, arguments: Mapping[str, JsonValue]) -> Phrase:
    """What a call of a worker with this description asks for. An argument that is text may be a phrase itself."""
    sentence = _ASIDE.sub("", _SENTENCE.split(" ".join(description.split()), maxsplit=1)[0]).rstrip(".!? ")
    phrase = _strip_head(sentence)
    text, rest = phrase.text, []
    for name, value in arguments.items():
        replaced = _put_in(text, name, as_text(value))
        if replaced is None:
            rest.append((name, as_text(value)))
        text = replaced or text
    return Phrase(f"{text}{_append(rest)}", phrase.is_action)


def _strip_head(sentence: str) -> Phrase:
    """The sentence as a thing or an action: "Returns the price" is about "the price", "Converts ..." is an action."""
    words = load_words()
    lowered = sentence.casefold()
    for head in sorted(words.returning, key=len, reverse=True):
        if lowered.startswith(f"{head} "):
            return Phrase(_begin_small(sentence[len(head) + 1 :]))
    first, _, rest = sentence.partition(" ")
    action = words.doing.get(first.casefold())
    if action is not None or first.casefold() in words.doing.values():
        return Phrase(f"{action or first.casefold()} {rest}", True)
    return Phrase(_begin_small(sentence))


def _begin_small(text: str) -> str:
    """The text with a small first letter, unless its first word is an abbreviation or a name with a figure."""
    first = text.split(" ", 1)[0]
    return text if len(first) > 1 and (first.isupper() or any(letter.isdigit() for letter in first)) else _lower(text)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _put_in(text: str, name: str, value: str) -> str | None:
    """The text with a value in the place of the words that stand for it: "an item" for the parameter `item`."""
    words = re.escape(name.replace("_", " ")).replace(r"\ ", "[ _-]")
    pattern = re.compile(rf"\b{_ARTICLE}{words}\b", re.IGNORECASE)
    return pattern.sub(lambda _: value, text, count=1) if pattern.search(text) else None


def _append(rest: list[tuple[str, str]]) -> str:
    """The arguments that have no place in the words."""
    if len(rest) == 1:
        return f" for {rest[0][1]}"
    pairs = [f"{name.replace('_', ' ')} {value}" for name, value in rest]
    return f" ({', '.join(pairs)})" if pairs else ""


def ask_for(phrase: Phrase, random: Random) -> str:
    """A query for one thing."""
    words = load_words()
    return _fill(random.choice(words.verb if phrase.is_action else words.noun), phrase.text)


def ask_for_both(first: Phrase, second: Phrase, random: Random) -> str:
    """A query for two things that have nothing to do with each other."""
    if first.is_action or second.is_action:
        opening = ask_for(first, random)
        return f"{opening}{'' if opening[-1:] in '.?!' else '.'} {_capitalize(ask_for(second, random))}"
    return _fill(random.choice(load_words().pair), first.text, second.text)


def join_phrases(operation: str, first: Phrase, second: Phrase, random: Random) -> str:
    """A query for the sum or the difference of two numbers."""
    frames = load_words().sum if operation == "sum" else load_words().difference
    return _fill(random.choice(frames), first.text, second.text)


def ask_in_turn(first: Phrase, second: Phrase, random: Random) -> str:
    """A query for two actions, the second of which works on what the first gives."""
    return _fill(random.choice(load_words().sequence), first.text, second.text)


def _fill(frame: str, first: str, second: str = "") -> str:
    values = {"x": first, "y": second, "X": _capitalize(first), "Y": _capitalize(second)}
    return re.sub(r"\{(\w)\}", lambda match: values[match[1]], frame)


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
