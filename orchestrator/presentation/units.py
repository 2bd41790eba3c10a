"""Units of measure as workers declare them: in the name of a field or worker, by a parameter, or in a description.

A unit counts only where it stands as one: "distance_km", "Distance in kilometers", "Price (EUR)"; not in
"sales_last_30_days" or "price per kg". A number whose unit nobody declares stays without one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pool_registry.actions import JsonValue

MAX_UNIT_CHARS = 24
_TARGETS = ("to", "target")  # how parameters begin that choose the unit of the result: to_unit, target_currency

# Symbols of one letter, and those that are words too, are left out ("m", "in", "min", "TRY").
_SYMBOLS = """
km cm mm kg mg ml ha kW kWh MW MWh Hz kHz MHz GHz kB MB GB TB ms km/h m/s mph mbar hPa kPa °C °F % m² km² m³ kcal kJ ppm
bpm EUR USD GBP JPY CHF CNY INR SEK NOK DKK PLN CZK CAD AUD NZD BRL MXN ZAR KRW SGD HKD
"""
_WORDS = """
milliseconds seconds minutes hours days weeks months years centimeters centimetres meters metres miles grams pounds
ounces tonnes liters litres gallons euros dollars
"""
_OTHERS = {
    "kmh": "km/h", "kph": "km/h", "celsius": "°C", "fahrenheit": "°F", "percent": "%", "pct": "%", "kilometers": "km",
    "kilometres": "km", "kilometer": "km", "kilograms": "kg", "kilogram": "kg", "millimeters": "mm",
    "kilocalories": "kcal", "foot": "feet", "feet": "feet",
}  # fmt: skip
PLURALS = frozenset(_WORDS.split())  # "1 day", "2 days"
UNITS: Mapping[str, str] = {
    **{symbol.casefold(): symbol for symbol in _SYMBOLS.split()},
    **{name: word for word in PLURALS for name in (word, word.removesuffix("s"))},
    **_OTHERS,
}
_DECLARABLE = [name for name in UNITS if name in PLURALS or name not in {word.removesuffix("s") for word in PLURALS}]
_NAMES = "|".join(sorted(map(re.escape, _DECLARABLE), key=len, reverse=True))
_MENTION = re.compile(rf"(?<![\w/])(?:{_NAMES})(?![\w/²³])", re.IGNORECASE)
_DECLARED = re.compile(rf"(?:\bin |[(\[])({_NAMES})(?![\w/²³]| per\b)", re.IGNORECASE)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")


def split_words(name: str) -> list[str]:
    """The words of an identifier: "deliveryDays" is "delivery days"; any other text is one word."""
    parts = _PART.findall(name) if re.fullmatch(r"[^\W\d]\w*", name) else []
    return [part if part.isupper() and len(part) > 1 else part.lower() for part in parts] or [name]


def split_unit(name: str) -> tuple[str, str]:
    """The words of an identifier without the unit at its end, and that: "distance_km" is ("distance", "km")."""
    words = split_words(name)
    unit = "" if any(word.isdigit() or word == "per" for word in words) else UNITS.get(words[-1].casefold(), "")
    is_plural = words[-1].casefold() not in UNITS or words[-1].casefold() in _DECLARABLE  # "birth_year" is no quantity
    return (" ".join(words[:-1]), unit) if unit and is_plural else (" ".join(words), "")


def find_described_unit(description: str) -> str:
    """The unit that the description of one quantity declares: "Distance in km". "" where it mentions several."""
    declared = _DECLARED.search(description)
    mentioned = {UNITS[match[0].casefold()] for match in _MENTION.finditer(description)}
    unit = UNITS[declared[1].casefold()] if declared else ""
    return unit if mentioned == {unit} else ""


def find_chosen_unit(arguments: Mapping[str, JsonValue]) -> str:
    """The unit that a call asks for by a parameter such as `to_unit`."""
    for name, value in arguments.items():
        if isinstance(value, str) and is_target(name) and 0 < len(value) <= MAX_UNIT_CHARS:
            return UNITS.get(value.casefold(), value)
    return ""


def is_target(name: str) -> bool:
    """Whether a parameter chooses the unit of the result."""
    words = split_words(name)
    return words[0] in _TARGETS and words[-1] in ("unit", "units", "currency")
