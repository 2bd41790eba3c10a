"""Words for practice tasks: what a call asks for, from the worker's description and the call's arguments.

"Returns the price of one item in euros." with {"item": "tea"} asks for "the price of tea in euros". An agent can put
the queries into better words (rewrite.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random

import yaml
from pydantic import Field

from assets import asset
from pool_registry.actions import JsonValue, as_text
from pool_registry.strict_model import FrozenModel
from trainer.tasks.practice.clauses import ask_directly, count_things, is_clause
from trainer.tasks.practice.slots import choose_half, put_in_slots

MAX_CHARS = 2000  # of a description and of a parameter's name
_SENTENCE = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)\s+(?=[A-Z])")
_ASIDE = re.compile(
    r"\s*\([^)]{0,300}\)| like [\w-]+ (?:or|and) [\w-]+\.?$|\s*[:;].*|\s*,? (?:e\.g\.|such as\b|for example\b).*"
)
_PATH_NAME = re.compile(r"\.(\w+)")
_CODE_NAME = re.compile(r"[a-z]+\d+", re.IGNORECASE)
_PARAGRAPH = re.compile(r"\n\s*\n")
_PLURAL = re.compile(r"the (?:(?!(?:of|on|in|at|for|with) )[\w-]+ )*[\w-]*[^s\W]s (?:of|on|in|at|for|with) ")
_SECOND_WISH = re.compile(
    r" and (?:list|return|show|give|get|report)s? .*?(?= (?:between|for|of|in|on|from|with|by)\b|$)"
)
_RANGE = re.compile(r"\bbetween (?:two|the|these|both) [\w-]+")
_REPEATED = re.compile(r"( (?:in|on|for) \S+)\1(?!\S)")
_SEARCH_BY = re.compile(r"^(?:search|find|look ?up|filter|query)(?:es|s)? by ", re.IGNORECASE)
_BY = re.compile(r"\bby\b")
_MOMENT = re.compile(r"\b(?:current|currently|now|today|today's|latest|live|real-time)\b", re.IGNORECASE)
_NAME = re.compile(r"[A-Z][^\W\d]+(?:[ .'-]+[^\W\d]+)*")  # of a person perhaps: nobody asks what an author is
_IS = re.compile(r"\b([Ww]hat)(?: is|'s)\b")
_SHARED_END = re.compile(r" (?:of|for|in|at|on) \S.*$")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
SHARE_COUNTED, SHARE_DIRECT = 0.8, 0.75  # of the queries that may be put so
_ARTICLE = r"(?:an?|one|the|some|this|that|any|each|every|its)\s+(?:given\s+)?"


class PracticeWords(FrozenModel):
    """assets/tasks/practice_words.yaml: frames of queries, and the words that begin descriptions."""

    noun: tuple[str, ...] = Field(min_length=1)
    clause: tuple[str, ...] = Field(min_length=1)
    indirect: tuple[str, ...] = Field(min_length=1)
    verb: tuple[str, ...] = Field(min_length=1)
    pair: tuple[str, ...] = Field(min_length=1)
    sum: tuple[str, ...] = Field(min_length=1)
    difference: tuple[str, ...] = Field(min_length=1)
    sequence: tuple[str, ...] = Field(min_length=1)
    returning: tuple[str, ...]
    doing: Mapping[str, str]
    envelopes: tuple[str, ...]
    determiners: tuple[str, ...]
    counted: tuple[str, ...]
    links: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Phrase:
    """What is asked for: a thing ("the price of tea") or, where `is_action`, what to do ("convert 5 km to miles").
    `values` are the arguments that the words hold; `is_number`: the answer is a number, `is_name`: it is a name."""

    text: str
    is_action: bool = False
    values: tuple[str, ...] = field(default=(), compare=False)
    is_number: bool = field(default=False, compare=False)
    is_name: bool = field(default=False, compare=False)

    def answered_by(self, value: JsonValue) -> Phrase:
        """The phrase with what kind of answer it has."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return replace(self, is_number=is_number, is_name=isinstance(value, str) and bool(_NAME.fullmatch(value)))


@cache
def load_words() -> PracticeWords:
    return PracticeWords.model_validate(yaml.safe_load(asset("tasks/practice_words.yaml").read_text(encoding="utf-8")))


def describe_call(description: str, arguments: Mapping[str, JsonValue]) -> Phrase:
    """What a call of a worker with this description asks for. An argument that is text may be a phrase itself."""
    phrase = _strip_head(_first_sentence(description))
    text, placed = _put_in_range(phrase.text, arguments)
    rest = []
    for name, value in arguments.items():
        if name in placed:
            continue
        replaced = _put_in(text, name, _count(name, as_text(value)))
        if replaced is None:
            rest.append((name, as_text(value)))
        text = replaced or text
    text, rest = put_in_slots(text, rest)
    values = tuple(map(as_text, arguments.values()))
    return Phrase(_REPEATED.sub(r"\1", f"{text}{_append(text, rest)}"), phrase.is_action, values)


def drop_switched_off(description: str, parameters: Mapping[str, Mapping[str, JsonValue]]) -> str:
    """The description without what holds only where an optional switch is on: "on/after (inclusive) or strictly after"
    means "strictly after" where `inclusive` is false by default."""
    text = description
    for name, rule in parameters.items():
        if rule.get("type") == "boolean" and rule.get("default") is False:
            text = re.sub(rf"\S+ \({re.escape(name)}\) or ", "", text)
    return text


def describe_field(phrase: Phrase, path: str) -> Phrase:
    """What asks for one field of what a call returns: "the population of the country with code DE". Where the words
    name the field already, they stay, without a second wish ("and list the holidays")."""
    names = _list_names(path)
    if not names:
        return phrase
    alone = choose_half(_SECOND_WISH.sub("", phrase.text), lambda half: _names_field(half, names[-1]))
    if _names_field(alone, names[-1]):
        return replace(phrase, text=alone)
    parents = [name for name in names[:-1] if name not in load_words().envelopes][-1:]
    words = " ".join([names[-1], "name"] if parents == ["name"] else [*parents, names[-1]])
    text = f"{phrase.text} and give the {words}" if phrase.is_action else f"the {words} of {phrase.text}"
    return replace(phrase, text=text)


def list_offered_paths(description: str, fields: Mapping[str, Sequence[JsonValue]]) -> set[str]:
    """The paths of the fields that a person asks for, of what the calls of a worker return: where the description
    names some, those alone ("Returns the next business day"), else all that a person would ask for."""
    sentence = _first_sentence(description)
    named = {path for path in fields if path and _names_field(sentence, _list_names(path)[-1])}
    if named:
        return named | ({""} & fields.keys())
    return {path for path, values in fields.items() if not path or not _is_unasked(path, values)}


def _is_unasked(path: str, values: Sequence[JsonValue]) -> bool:
    """Whether nobody asks for a field: it is true or false, or named by a code such as `cca2`."""
    return bool(_CODE_NAME.fullmatch(_list_names(path)[-1])) or all(isinstance(value, bool) for value in values)


def changes_with_time(description: str) -> bool:
    """Whether a description says that the answers are those of the moment: a task's answer would be wrong tomorrow."""
    return bool(_MOMENT.search(_first_sentence(description)))


def _first_sentence(description: str) -> str:
    """What a description says first, without asides."""
    opening = _PARAGRAPH.split(description.strip(), maxsplit=1)[0]
    return _ASIDE.sub("", _SENTENCE.split(" ".join(opening.split()), maxsplit=1)[0]).rstrip(".!? ")


def _list_names(path: str) -> list[str]:
    """The names in a path, in words."""
    return [_to_words(name) for name in _PATH_NAME.findall(path)]


def _to_words(name: str) -> str:
    """A field's name in words: `business_days`, `businessDays` and `business-days` are "business days"."""
    spaced = _HUMP.sub(" ", name.replace("_", " "))
    return " ".join(word if word.isupper() else word.lower() for word in spaced.split())


def _names_field(text: str, words: str) -> bool:
    """Whether a text has all the words of a field's name, in the plural or not."""
    stems = {word.rstrip("s") for word in re.findall(r"\w+", text.casefold())}
    return all(word.casefold().rstrip("s") in stems for word in words.split())


def _strip_head(sentence: str) -> Phrase:
    """The sentence as a thing or an action: "Returns the price" is about "the price", "Converts ..." is an action."""
    words = load_words()
    sentence = _SEARCH_BY.sub("Find the entry by ", sentence)
    lowered = sentence.casefold()
    for head in sorted(words.returning, key=len, reverse=True):
        if lowered.startswith(f"{head} "):
            return Phrase(_add_article(_begin_small(sentence[len(head) + 1 :])))
    first, _, rest = sentence.partition(" ")
    action = words.doing.get(first.casefold())
    if action is not None or first.casefold() in words.doing.values():
        return Phrase(f"{action or first.casefold()} {rest}", True)
    return Phrase(_add_article(_begin_small(sentence)))


def _add_article(text: str) -> str:
    """What is returned as a thing: "country by code" is "the country by code"."""
    first, _, rest = text.partition(" ")
    if first in ("a", "an") and _BY.search(rest):
        return f"the {rest}"
    has_none = first.casefold() in load_words().determiners or first[:1].isupper() or not first.isalpha()
    return text if has_none or is_clause(text) else f"the {text}"


def _begin_small(text: str) -> str:
    """The text with a small first letter, unless its first word is an abbreviation or a name with a figure."""
    first = text.split(" ", 1)[0]
    return text if len(first) > 1 and (first.isupper() or any(letter.isdigit() for letter in first)) else _lower(text)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _put_in(text: str, name: str, value: str) -> str | None:
    """The text with a value in the place of the words that stand for it: "an item" for the parameter `item`."""
    if max(len(text), len(name)) > MAX_CHARS:
        return None
    words = re.escape(name.replace("_", " ")).replace(r"\ ", "[ _-]")
    identified = re.search(rf"\bby (?:{_ARTICLE})?((?:[\w-]+ ){{0,3}}{words}(?: [\w-]+){{0,2}})$", text, re.IGNORECASE)
    if identified:
        return f"{text[: identified.start()]}with {identified[1]} {value}"
    pattern = re.compile(rf"\b{_ARTICLE}`?{words}`?(?!\w)|`{words}`", re.IGNORECASE)
    return pattern.sub(lambda _: value, text, count=1) if pattern.search(text) else None


def _put_in_range(text: str, arguments: Mapping[str, JsonValue]) -> tuple[str, set[str]]:
    """The text with the ends of a range in the place of the words for it, and the names of the arguments that are its
    ends: "between two dates" is "from ... to ..."."""
    ends = {_find_link(name).split(" ")[0]: name for name in arguments}
    if not ({"from", "to"} <= ends.keys() and _RANGE.search(text)):
        return text, set()
    low, high = ends["from"], ends["to"]
    written = f"from {as_text(arguments[low])} to {as_text(arguments[high])}"
    return _RANGE.sub(lambda _: written, text, count=1), {low, high}


def _count(name: str, value: str) -> str:
    """A number that says nothing alone with its name: month 3."""
    return f"{name} {value}" if name in load_words().counted and value.isdigit() else value


def _find_link(name: str) -> str:
    """The words that join an argument of this name to a request, "in {v}" for a country; "" where none are known."""
    words = name.replace("_", " ").casefold()
    links = load_words().links
    return next((link for end, link in links.items() if words == end or words.endswith(f" {end}")), "")


def _append(text: str, rest: Sequence[tuple[str, str]]) -> str:
    """The arguments that have no place in the words of a text, but for those that it names already: one country for a
    call and for what it is fed with."""
    rest = [
        (name, value) for name, value in rest if not re.search(rf"\b(?:in|for|with code) {re.escape(value)}\b", text)
    ]
    links = [_find_link(name).replace("{v}", value) for name, value in rest]
    others = [pair for pair, link in zip(rest, links, strict=True) if not link]
    if len(others) == 1:
        links.insert(0, f"for {others[0][1]}")
    pairs = [f"{name.replace('_', ' ')} {value}" for name, value in others]
    named = f" ({', '.join(pairs)})" if len(pairs) > 1 else ""
    return "".join(f" {words}" for words in links if words) + named


def ask_for(phrase: Phrase, random: Random) -> str:
    """A query for one thing."""
    words = load_words()
    if phrase.is_action:
        return _fill(random.choice(words.verb), phrase.text)
    counted = count_things(phrase.text, phrase.values) if phrase.is_number else ""
    is_counted = counted and (random.random() < SHARE_COUNTED or "number of" not in phrase.text)
    clause = phrase.text if is_clause(phrase.text) else counted if is_counted else ""
    if clause:
        question = ask_directly(clause, phrase.values)
        frames = words.clause if question and random.random() < SHARE_DIRECT else words.indirect
        return _fill(random.choice(frames), question if frames is words.clause else clause)
    frame = random.choice([frame for frame in words.noun if not (phrase.is_name and _IS.search(frame))])
    if _PLURAL.match(phrase.text):
        frame = _IS.sub(r"\1 are", frame)
    return _fill(frame, phrase.text)


def ask_for_both(first: Phrase, second: Phrase, random: Random) -> str:
    """A query for two things about the same subject."""
    if first.is_action or second.is_action:
        opening = ask_for(first, random)
        return f"{opening}{'' if opening[-1:] in '.?!' else '.'} {_capitalize(ask_for(second, random))}"
    one = first.text
    if (end := _SHARED_END.search(one)) and second.text.endswith(end[0]):
        one = one.removesuffix(end[0])  # "the price and the aisle of tea"
    return _fill(random.choice(load_words().pair), one, second.text)


def share_end(first: Phrase, second: Phrase) -> bool:
    """Whether two things end alike, so that one sentence can ask for both: "of tea"."""
    end = _SHARED_END.search(first.text)
    return end is not None and second.text.endswith(end[0])


def join_phrases(operation: str, first: Phrase, second: Phrase, random: Random) -> str:
    """A query for the sum or the difference of two numbers."""
    frames = load_words().sum if operation == "sum" else load_words().difference
    return _fill(random.choice(frames), first.text, second.text)


def ask_in_turn(first: Phrase, second: Phrase, random: Random) -> str:
    """A query for two actions, the second of which works on what the first gives."""
    return _fill(random.choice(load_words().sequence), first.text, second.text)


def _fill(frame: str, first: str, second: str = "") -> str:
    short = first.removeprefix("the ")
    values = {"x": first, "y": second, "X": _capitalize(first), "Y": _capitalize(second)}
    values |= {"k": short, "K": _capitalize(short)}
    return re.sub(r"\{(\w)\}", lambda match: values[match[1]], frame)


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
