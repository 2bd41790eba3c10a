"""Family `atlas`: figures of countries from the CIA World Factbook.

L1: search -> reader -> units -> calculator (4 steps). L2: search | search -> reader -> calculator (4 steps,
2 wide). L3: two capitals -> two countries -> two figures -> one ratio (8 steps, 5 deep, 2 wide).

Which figures may be asked for is in assets/tasks/atlas.json, made by `python -m scripts.build_atlas_facts`:
only those for which the search puts the right passage first and a strict reading of it is clear.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from assets import asset
from orchestrator.plan import Step, Turn
from trainer.tasks.suite import Suite, split_of
from trainer.tasks.verifier import Verifier, near_tie, to_digits
from trainer.tasks.wordings import matched, templates

FACTS_FILE = "tasks/atlas.json"


@dataclass(frozen=True, slots=True)
class Figure:
    """A numeric field: what a query calls it, the words that find it, and its unit of measure."""

    label: str
    words: str
    unit: str


FIGURES = {
    figure.label: figure
    for figure in (
        Figure("total area", "Geography Area total", "square kilometer"),
        Figure("land area", "Geography Area land", "square kilometer"),
        Figure("water area", "Geography Area water", "square kilometer"),
        Figure("irrigated land", "Geography Irrigated land", "square kilometer"),
        Figure("coastline", "Geography Coastline", "kilometer"),
        Figure("land boundary", "Geography Land boundaries total", "kilometer"),
        Figure("mean elevation", "Geography Elevation mean elevation", "meter"),
        Figure("railway length", "Transportation Railways total", "kilometer"),
        Figure("electricity consumption", "Energy Electricity consumption", "kilowatt hour"),
        Figure("population", "People and Society Population total", ""),
        Figure("median age", "People and Society Median age total", "year"),
        Figure("life expectancy at birth", "People and Society Life expectancy at birth total population", "year"),
        Figure("GDP (official exchange rate)", "Economy GDP (official exchange rate)", "US dollar"),
    )
}
# Metres, square metres or joules in a unit. The acre is the US survey acre, as in the units worker's library.
SIZES = {
    "square kilometer": 1e6, "acre": 4046.872609874252, "hectare": 1e4, "square mile": 2589988.110336,
    "kilometer": 1e3, "mile": 1609.344, "nautical mile": 1852.0, "meter": 1.0, "foot": 0.3048, "yard": 0.9144,
    "kilowatt hour": 3.6e6, "gigajoule": 1e9,
}  # fmt: skip
TARGETS = {
    "square kilometer": ("acre", "hectare", "square mile"),
    "kilometer": ("mile", "nautical mile"),
    "meter": ("foot", "yard"),
    "kilowatt hour": ("gigajoule",),
}
MIN_RATIO = 0.01  # below, three decimals say next to nothing and "0" is too often right
PLURALS = {"foot": "feet", **{unit: f"{unit}s" for unit in SIZES if unit != "foot"}}
SINGULARS = {plural: unit for unit, plural in PLURALS.items()}
_LABELS = {label.lower(): label for label in FIGURES}

_NAME = r"[^?]{2,60}?"
GAPS = {
    "figure": "|".join(map(re.escape, FIGURES)),
    "country": _NAME,
    "other": _NAME,
    "unit": "|".join(sorted(SINGULARS, key=len, reverse=True)),
}
TEMPLATES = {
    level: templates(texts, GAPS)
    for level, texts in {
        1: (
            "[Give|Tell me|State] the {figure} of {country} in {unit}, [as the atlas has it|from the atlas], [rounded "
            "to|to] one decimal.",
            "{country}'s {figure} in {unit}, [by|according to] the atlas: [what is it|how much is it] to one decimal?",
            "The atlas [lists|gives|has] the {figure} of {country}. [Convert it to|Express it in|Turn it into] {unit} "
            "and round to one decimal.",
            "In {unit}, [how large is|what is] the {figure} of {country} [in|by] the atlas? [Round to one decimal.|One "
            "decimal, please.]",
            "According to the atlas, what is the {figure} of {country}, in {unit}? Round to one decimal.",
            "How many {unit} is the {figure} of {country}, according to the atlas? Round to one decimal.",
            "Look up the {figure} of {country} in the atlas and give it in {unit}, rounded to one decimal.",
        ),
        2: (
            "Divide the {figure} of {country} by that of {other}, [both from the atlas|using the atlas|as the atlas "
            "gives them], and round to three decimals.",
            "What is {country}'s {figure} as a multiple of {other}'s, [by|according to] the atlas? [Round to|Give] "
            "three decimals.",
            "The atlas has the {figure} of {country} and of {other}. [Give|Compute|State] the first [divided by|over] "
            "the second, to three decimals.",
            "[Against|Relative to] {other}, how large is the {figure} of {country} [by|in] the atlas? [Give|State] "
            "the quotient to three decimals.",
            "[Put|Set] the {figure} of {country} [over|against] that of {other}: what is the quotient, [by|according "
            "to] the atlas, to three decimals?",
            "According to the atlas, what is the {figure} of {country} divided by that of {other}? "
            "Round to three decimals.",
            "How many times the {figure} of {other} is that of {country}, according to the atlas? "
            "Round to three decimals.",
            "Compare {country} with {other}: by the atlas, what is the ratio of the first's {figure} to the second's, "
            "to three decimals?",
        ),
        3: (
            "{country} and {other} are capitals. [By|According to] the atlas, [divide|take] the {figure} of the first "
            "one's country [by|over] that of the second one's, to three decimals.",
            "What is the {figure} of the country [with|that has] the capital {country}, divided by that of the country "
            "[with|that has] the capital {other}? [Use|Take] the atlas and round to three decimals.",
            "Two countries are governed from {country} and {other}. [In|By] the atlas, how many times the second's "
            "{figure} does the first have? [Round to|Give] three decimals.",
            "The country of which {country} is the capital is [set|measured] against the one of which {other} is. "
            "[By|In] the atlas, what is the quotient of their {figure}, first by second, to three decimals?",
            "Take the country whose capital is {country} and the one whose capital is {other}. According to the "
            "atlas, what is the first's {figure} divided by the second's? Round to three decimals.",
            "One country has the capital {country}, another {other}. According to the atlas, how many times "
            "the second's {figure} is the first's? Round to three decimals.",
            "From the capitals {country} and {other}, find their countries. By the atlas, what is the ratio of the "
            "first country's {figure} to the second's, to three decimals?",
        ),
    }.items()
}


@dataclass(frozen=True, slots=True)
class AtlasQuery:
    """Everything an atlas query says. At level 3 the places are capitals, else countries."""

    level: int
    template: int
    figure: str
    places: tuple[str, ...]
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What may be asked: figure -> country -> value, and country -> capital."""

    values: dict[str, dict[str, float]]
    capitals: dict[str, str]


class Atlas(Suite[AtlasQuery]):
    name = "atlas"
    description = "Figures of countries from the CIA World Factbook, converted and compared."
    workers = ("atlas_search", "reader", "units", "calculator")

    def draw(self, level: int, split: str, random: Random) -> AtlasQuery:
        labels = [label for label, figure in FIGURES.items() if level > 1 or figure.unit in TARGETS]
        label = random.choice(labels)
        capitals = facts().capitals
        countries = [
            country
            for country in facts().values[label]
            if split_of(country) == split and (level < 3 or country in capitals)
        ]
        places = random.sample(countries, 1 if level == 1 else 2)
        if facts().values[label][places[0]] < MIN_RATIO * facts().values[label][places[-1]]:
            places.reverse()
        return AtlasQuery(
            level=level,
            template=TEMPLATES[level].draw(split, random),
            figure=label,
            places=tuple(capitals[country] if level == 3 else country for country in places),
            unit=random.choice(TARGETS[FIGURES[label].unit]) if level == 1 else "",
        )

    def write(self, parameters: AtlasQuery) -> str:
        p = parameters
        return TEMPLATES[p.level][p.template].fill(
            figure=p.figure,
            country=p.places[0],
            other=p.places[-1],
            unit=PLURALS.get(p.unit, ""),
        )

    def read(self, query: str) -> AtlasQuery | None:
        found = matched(TEMPLATES, query)
        if found is None:
            return None
        level, number, said = found
        places = tuple(said[key].strip() for key in ("country", "other") if key in said)
        unit = SINGULARS[said["unit"].lower()] if "unit" in said else ""
        return AtlasQuery(level, number, _LABELS[said["figure"].lower()], places, unit)

    def level_of(self, parameters: AtlasQuery) -> int:
        return parameters.level

    def new_words(self, parameters: AtlasQuery) -> bool:
        return TEMPLATES[parameters.level].held_out(parameters.template)

    def solve(self, parameters: AtlasQuery) -> tuple[Verifier, Turn] | None:
        p = parameters
        known = _capitals_folded() if p.level == 3 else _countries_folded()
        countries = [known.get(_folded(place), "") for place in p.places]
        values = [facts().values[p.figure].get(country, 0.0) for country in countries]  # 0 is no figure here
        if not all(values) or (p.level == 1 and p.unit not in TARGETS.get(FIGURES[p.figure].unit, ())):
            return None
        factor = SIZES[FIGURES[p.figure].unit] / SIZES[p.unit] if p.level == 1 else 1 / values[1]
        value, digits = values[0] * factor, 1 if p.level == 1 else 3
        if near_tie(value, digits):
            return None
        places = [facts().capitals[country] for country in countries] if p.level == 3 else countries
        return to_digits(value, digits), _plan(replace(p, places=tuple(places)))


def _plan(p: AtlasQuery) -> Turn:
    """The reference plan; `p.places` are spelled as the atlas spells them."""
    words = FIGURES[p.figure].words
    if p.level == 1:
        arguments = {"value": "$2", "from_unit": FIGURES[p.figure].unit, "to_unit": p.unit}
        steps = [
            _search(1, f"{p.places[0]} {words}"),
            _read(2, "the number in the passage", [1]),
            Step(3, "units", arguments, (2,)),
            _calculate(4, "round($3, 1)", [3]),
        ]
    elif p.level == 2:
        steps = [
            _search(1, f"{p.places[0]} {words}"),
            _search(2, f"{p.places[1]} {words}"),
            _read(3, "the number in each passage", [1, 2]),
            _calculate(4, "round($3[0]/$3[1], 3)", [3]),
        ]
    else:
        steps = [
            _search(1, f"Government Capital name {p.places[0]}"),
            _search(2, f"Government Capital name {p.places[1]}"),
            _read(3, "the country in the passage", [1]),
            _read(4, "the country in the passage", [2]),
            _search(5, f"$3 {words}", [3]),
            _search(6, f"$4 {words}", [4]),
            _read(7, "the number in each passage", [5, 6]),
            _calculate(8, "round($7[0]/$7[1], 3)", [7]),
        ]
    return Turn(tuple(steps), f"${len(steps)}")


def _search(step: int, query: str, access: Sequence[int] = ()) -> Step:
    return Step(step, "atlas_search", {"query": query}, tuple(access))


def _read(step: int, instruction: str, access: Sequence[int]) -> Step:
    return Step(step, "reader", {"instruction": instruction}, tuple(access))


def _calculate(step: int, expression: str, access: Sequence[int]) -> Step:
    return Step(step, "calculator", {"expression": expression}, tuple(access))


@cache
def facts() -> Facts:
    """The shipped facts."""
    document = json.loads(asset(FACTS_FILE).read_text(encoding="utf-8"))
    return Facts(document["values"], document["capitals"])


@cache
def _countries_folded() -> dict[str, str]:
    return {_folded(country): country for values in facts().values.values() for country in values}


@cache
def _capitals_folded() -> dict[str, str]:
    return {_folded(capital): country for country, capital in facts().capitals.items()}


def _folded(name: str) -> str:
    """A name without what people leave out or add: case, accents, a leading article."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).removeprefix("the ")
