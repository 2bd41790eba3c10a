"""Family `atlas`: figures of countries from the CIA World Factbook.

L1: search -> reader -> units -> calculator (4 steps). L2: search | search -> reader -> calculator (4 steps,
2 wide). L3: two capitals -> two countries -> two figures -> one ratio (8 steps, 5 deep, 2 wide).

Which figures may be asked for is in data/tasks/atlas.json, made by
`python -m podium_lessons.scripts.build_atlas_facts`: only those for which the search puts the right passage first and
a strict reading of it is clear.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from orchestrator.plan import Step, Turn
from podium_lessons.families.steps import CONVERSION, calculate, read_passages
from podium_lessons.lesson_data import FOLDER, FamilyData, load_lesson_data
from podium_lessons.template_suite import TemplateSuite
from trainer.tasks.suite import assign_split
from trainer.tasks.task_data import TaskData
from trainer.tasks.verifier import Verifier, is_near_tie, make_rounded_verifier

FACTS_FILE = FOLDER / "tasks/atlas.json"


class AtlasFigure(TaskData):
    """A numeric field: what a query calls it, the words that find it, and its unit of measure."""

    label: str
    words: str
    unit: str


class AtlasData(FamilyData):
    """The texts of the queries and the figures that they ask for."""

    figures: tuple[AtlasFigure, ...]


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
PLACE = r"[^?]{2,60}?"  # a name in a query


@dataclass(frozen=True, slots=True)
class AtlasQuery:
    """Everything an atlas query says. At level 3 the places are capitals, else countries."""

    level: int
    template: int
    figure: str
    places: tuple[str, ...]
    unit: str = ""


@dataclass(frozen=True, slots=True)
class AtlasFacts:
    """What may be asked: figure -> country -> value, and country -> capital."""

    values: dict[str, dict[str, float]]
    capitals: dict[str, str]


class Atlas(TemplateSuite[AtlasQuery]):
    name = "atlas"
    description = "Figures of countries from the CIA World Factbook, converted and compared."
    workers = ("atlas_search", "reader", "units", "calculator")

    def load_data(self) -> AtlasData:
        return _load_data()

    @property
    def gap_patterns(self) -> Mapping[str, str]:
        return {
            "figure": "|".join(map(re.escape, load_figures())),
            "country": PLACE,
            "other": PLACE,
            "unit": "|".join(sorted(SINGULARS, key=len, reverse=True)),
        }

    def draw(self, level: int, split: str, random: Random) -> AtlasQuery:
        labels = [label for label, figure in load_figures().items() if level > 1 or figure.unit in TARGETS]
        label = random.choice(labels)
        capitals = load_facts().capitals
        countries = [
            country
            for country in load_facts().values[label]
            if assign_split(country) == split and (level < 3 or country in capitals)
        ]
        places = random.sample(countries, 1 if level == 1 else 2)
        if load_facts().values[label][places[0]] < MIN_RATIO * load_facts().values[label][places[-1]]:
            places.reverse()
        return AtlasQuery(
            level=level,
            template=self.wordings[level, ""].draw(split, random),
            figure=label,
            places=tuple(capitals[country] if level == 3 else country for country in places),
            unit=random.choice(TARGETS[load_figures()[label].unit]) if level == 1 else "",
        )

    def write(self, parameters: AtlasQuery) -> str:
        p = parameters
        return self.template_of(p).fill(
            figure=p.figure,
            country=p.places[0],
            other=p.places[-1],
            unit=PLURALS.get(p.unit, ""),
        )

    def read(self, query: str) -> AtlasQuery | None:
        match = self.match(query)
        if match is None:
            return None
        (level, _), number, gaps = match
        places = tuple(gaps[key].strip() for key in ("country", "other") if key in gaps)
        unit = SINGULARS[gaps["unit"].lower()] if "unit" in gaps else ""
        labels = {label.lower(): label for label in load_figures()}
        return AtlasQuery(level, number, labels[gaps["figure"].lower()], places, unit)

    def solve(self, parameters: AtlasQuery) -> tuple[Verifier, Turn] | None:
        p = parameters
        names = _index_capitals() if p.level == 3 else _index_countries()
        countries = [names.get(_fold(place), "") for place in p.places]
        values = [load_facts().values[p.figure].get(country, 0.0) for country in countries]  # 0 is no figure here
        if not all(values) or (p.level == 1 and p.unit not in TARGETS.get(load_figures()[p.figure].unit, ())):
            return None
        factor = SIZES[load_figures()[p.figure].unit] / SIZES[p.unit] if p.level == 1 else 1 / values[1]
        value, digits = values[0] * factor, 1 if p.level == 1 else 3
        if is_near_tie(value, digits):
            return None
        places = [load_facts().capitals[country] for country in countries] if p.level == 3 else countries
        return make_rounded_verifier(value, digits), _make_plan(replace(p, places=tuple(places)))


def _make_plan(p: AtlasQuery) -> Turn:
    """The reference plan; `p.places` are spelled as the atlas spells them."""
    words = load_figures()[p.figure].words
    if p.level == 1:
        arguments = {"value": "$2", "from_unit": load_figures()[p.figure].unit, "to_unit": p.unit}
        steps = [
            _search(1, f"{p.places[0]} {words}"),
            read_passages(2, "the number in the passage", [1]),
            Step(3, "units", arguments, (2,), need=CONVERSION),
            calculate(4, "round($3, 1)", [3]),
        ]
    elif p.level == 2:
        steps = [
            _search(1, f"{p.places[0]} {words}"),
            _search(2, f"{p.places[1]} {words}"),
            read_passages(3, "the number in each passage", [1, 2]),
            calculate(4, "round($3[0]/$3[1], 3)", [3]),
        ]
    else:
        steps = [
            _search(1, f"Government Capital name {p.places[0]}"),
            _search(2, f"Government Capital name {p.places[1]}"),
            read_passages(3, "the country in the passage", [1]),
            read_passages(4, "the country in the passage", [2]),
            _search(5, f"$3 {words}", [3]),
            _search(6, f"$4 {words}", [4]),
            read_passages(7, "the number in each passage", [5, 6]),
            calculate(8, "round($7[0]/$7[1], 3)", [7]),
        ]
    return Turn(tuple(steps), f"${len(steps)}")


def _search(step: int, query: str, access: Sequence[int] = ()) -> Step:
    return Step(step, "atlas_search", {"query": query}, tuple(access), need="find a passage about a country")


@cache
def _load_data() -> AtlasData:
    return load_lesson_data("atlas", AtlasData)


@cache
def load_figures() -> dict[str, AtlasFigure]:
    """What may be asked for, by label."""
    return {figure.label: figure for figure in _load_data().figures}


@cache
def load_facts() -> AtlasFacts:
    """The shipped facts."""
    document = json.loads(FACTS_FILE.read_text(encoding="utf-8"))
    return AtlasFacts(document["values"], document["capitals"])


@cache
def _index_countries() -> dict[str, str]:
    return {_fold(country): country for values in load_facts().values.values() for country in values}


@cache
def _index_capitals() -> dict[str, str]:
    return {_fold(capital): country for country, capital in load_facts().capitals.items()}


def _fold(name: str) -> str:
    """A name without what people leave out or add: case, accents, a leading article."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).removeprefix("the ")
