"""What numbers measure, by the words of descriptions, so that no price is fed where kilometres go."""

from __future__ import annotations

import re

# The words of each measure. A number of one is not fed to a parameter of another.
MEASURES = {
    "money": r"euros?|eur|dollars?|usd|pounds?|gbp|price|cost|fee|fare|amount",
    "distance": r"km|kilomet(?:re|er)s?|miles?|met(?:re|er)s?|distance",
    "temperature": r"celsius|fahrenheit|temperature|degrees",
    "weight": r"kg|kilograms?|grams?|weight|tonnes?",
    "time": r"minutes?|hours?|seconds?|days?",
    "volume": r"lit(?:re|er)s?|gallons?|millilit(?:re|er)s?",
}


def list_measures(text: str) -> set[str]:
    """The measures that a text names."""
    words = text.replace("_", " ")
    return {name for name, pattern in MEASURES.items() if re.search(rf"\b(?:{pattern})\b", words, re.IGNORECASE)}


def list_output_measures(description: str) -> set[str]:
    """What the number measures that a worker of this description returns: "Fare in euros for a trip ..." is money."""
    head = re.split(r" (?:of|for|from|between) ", description, maxsplit=1)[0]
    return list_measures(head) or list_measures(description)


def list_input_measures(parameter: str, description: str) -> set[str]:
    """What a parameter of a worker of this description takes."""
    return list_measures(parameter) or list_measures(description)
