"""Puts arguments in the place of words that stand for them where these are not called like the parameter: "a book" for
`title`, "two numbers" for `a` and `b`, "so many kilometres" for `km`, "kilometres" in "convert kilometres to miles"."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Pairs = Sequence[tuple[str, str]]  # names of parameters with their values as text
_THING = r"(?:an?|one|some|any|(?:an?|the) (?:given|specified)|this) (?!(?:list|number|to|of|in|on|and|or|for)\b)"
_SLOT = re.compile(rf"\b{_THING}(?P<thing>\w[\w-]*)\b", re.IGNORECASE)
_PAIR = re.compile(r"\b(?:(?:the )?two|both) (?:\w+ )?\w+s\b")
_BETWEEN = re.compile(r"\bbetween $")
_SO_MANY = re.compile(r"\b(?:so many|(?:a |the )?(?:given )?number of) (?P<unit>[a-z]+s)\b", re.IGNORECASE)
_CONVERT = re.compile(r"^(convert) (?:an? )?(.+?) (?:in)?to ", re.IGNORECASE)
_FIGURE = re.compile(r"-?\d+(?:\.\d+)?")
_AMOUNT = re.compile(
    r"(?<![\w.])(-?\d+(?:\.\d+)?) in (euros|dollars|pounds|kilometres|kilometers|metres|meters|miles|km)\b"
)
_HALVES = re.compile(r"^(?P<one>(?:the )?[\w -]+?) and (?P<other>(?:the )?[\w -]+?)(?P<rest> (?:of|for|in|at|on) .+)$")
UNITS = {"kg": "kg", "g": "g", "m": "m", "cm": "cm", "mm": "mm", "km": "km", "eur": "euros", "euros": "euros"}


def put_in_slots(text: str, rest: Pairs) -> tuple[str, list[tuple[str, str]]]:
    """The text with arguments in their places, and those that found none."""
    rest = list(rest)
    for place in (_put_pair, _put_measures, _put_number, _put_thing):
        text, rest = place(text, rest)
    return _AMOUNT.sub(r"\1 \2", text), rest


def _put_pair(text: str, rest: list[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
    """Two values in the place of words for both."""
    slot = _PAIR.search(text)
    if slot is None or len(rest) != 2:
        return text, rest
    return f"{text[: slot.start()]}{rest[0][1]} and {rest[1][1]}{text[slot.end() :]}", []


def _put_measures(text: str, rest: list[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
    """Values with their unit behind the word for each: "weight" for `weight_kg`."""
    left = []
    for name, value in rest:
        word, _, unit = name.rpartition("_")
        pattern = re.compile(rf"(?<!a )\b{re.escape(word.replace('_', ' '))}\b") if word and unit in UNITS else None
        if pattern is not None and pattern.search(text) and _FIGURE.fullmatch(value):
            text = pattern.sub(f"a {word.replace('_', ' ')} of {value} {UNITS[unit]}", text, count=1)
        else:
            left.append((name, value))
    return text, left


def _put_number(text: str, rest: list[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
    """One number before what it counts."""
    if len(rest) != 1:
        return text, rest
    value = rest[0][1]
    if slot := _CONVERT.match(text):
        thing = f"{value} {slot[2]}" if _FIGURE.fullmatch(value) else value
        return f"{slot[1]} {thing} to {text[slot.end() :]}", []
    slot = _SO_MANY.search(text)
    if slot is None or not _FIGURE.fullmatch(value):
        return text, rest
    unit = slot["unit"].removesuffix("s") if value == "1" else slot["unit"]
    return f"{text[: slot.start()]}{value} {unit}{text[slot.end() :]}", []


def _put_thing(text: str, rest: list[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
    """One value in the place of the only thing that has an indefinite article."""
    slots = list(_SLOT.finditer(text))
    if len(rest) != 1 or len(slots) != 1 or _CONVERT.match(text):
        return text, rest
    return f"{text[: slots[0].start()]}{rest[0][1]}{text[slots[0].end() :]}", []


def choose_half(text: str, is_meant: Callable[[str], bool]) -> str:
    """Of "the phone number and the address of Colora" the half that is meant, "the address of Colora"; the text where
    it has no two halves, or both or none is meant."""
    halves = _HALVES.match(text)
    if halves is None:
        return text
    meant = [half for half in (halves["one"], halves["other"]) if is_meant(half)]
    if len(meant) != 1:
        return text
    thing = meant[0] if meant[0].startswith("the ") else f"the {meant[0]}"
    return f"{thing}{halves['rest']}"
