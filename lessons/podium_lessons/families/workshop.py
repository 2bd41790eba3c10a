"""Family `workshop`: how much of a compound a solution takes. Held out: no orchestrator learns from it.

L1: elements -> calculator (2 steps). L2: elements | units -> calculator -> units (4 steps, 3 deep).
L3: elements | elements | units -> calculator -> units -> calculator (6 steps, 4 deep, 3 wide).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from orchestrator.plan import Step, Turn
from podium_lessons.families.steps import CONVERSION, calculate
from podium_lessons.lesson_data import FamilyData, load_lesson_data
from podium_lessons.template_suite import TemplateSuite
from trainer.tasks.suite import assign_split
from trainer.tasks.verifier import Verifier, is_near_tie, make_rounded_verifier

LITERS = {"gallons": 3.785411784, "quarts": 0.946352946, "pints": 0.473176473, "cups": 0.2365882365}
GRAMS = {"ounce": 28.349523125, "pound": 453.59237, "grain": 0.06479891}
PLURALS = {f"{unit}s": unit for unit in GRAMS}
_FORMULA, _NUMBER = r"[A-Za-z0-9()+]{2,24}", r"\d{1,4}(?:\.\d{1,3})?"
GAPS = {
    **dict.fromkeys(("formula", "other"), _FORMULA),
    **dict.fromkeys(("amount", "second", "volume", "price"), _NUMBER),
    "volume_unit": "|".join(LITERS),
    "unit": "|".join((*PLURALS, *GRAMS)),
}
FORMULAS, AMOUNTS = ("formula", "other"), ("amount", "second")


class WorkshopData(FamilyData):
    """The texts of the queries, and the formulas with spaces between them."""

    compounds: str


@dataclass(frozen=True, slots=True)
class WorkshopQuery:
    """Everything a workshop query says; numbers are kept as they are written."""

    level: int
    template: int
    formulas: tuple[str, ...]
    amounts: tuple[str, ...]  # mol at level 1, else mol/L of each formula
    volume: str = ""
    volume_unit: str = ""
    unit: str = ""  # of the mass asked for, or that the price is for
    price: str = ""


class Workshop(TemplateSuite[WorkshopQuery]):
    name = "workshop"
    description = "Masses and prices of the compounds that a solution takes."
    workers = ("elements", "units", "calculator")
    held_out = True
    gap_patterns = GAPS

    def load_data(self) -> WorkshopData:
        return _load_data()

    def draw(self, level: int, split: str, random: Random) -> WorkshopQuery:
        count = 2 if level == 3 else 1
        return WorkshopQuery(
            level=level,
            template=self.wordings[level, ""].draw(split, random),
            formulas=tuple(random.sample([name for name in load_compounds() if assign_split(name) == split], count)),
            amounts=tuple(_format_number(random.randint(1, 99) / 10) for _ in range(count)),
            volume=_format_number(random.randint(2, 400) / 10) if level > 1 else "",
            volume_unit=random.choice(list(LITERS)) if level > 1 else "",
            unit={1: "", 2: random.choice(list(PLURALS)), 3: random.choice(["ounce", "pound"])}[level],
            price=_format_number(random.randint(11, 999) / 100) if level == 3 else "",
        )

    def write(self, parameters: WorkshopQuery) -> str:
        p = parameters
        return self.template_of(p).fill(
            formula=p.formulas[0],
            other=p.formulas[-1],
            amount=p.amounts[0],
            second=p.amounts[-1],
            volume=p.volume,
            volume_unit=p.volume_unit,
            unit=p.unit,
            price=p.price,
        )

    def read(self, query: str) -> WorkshopQuery | None:
        match = self.match(query)
        if match is None:
            return None
        (level, _), number, gaps = match
        return WorkshopQuery(
            level=level,
            template=number,
            formulas=tuple(gaps[gap] for gap in FORMULAS if gap in gaps),
            amounts=tuple(gaps[gap] for gap in AMOUNTS if gap in gaps),
            volume=gaps.get("volume", ""),
            volume_unit=gaps.get("volume_unit", "").lower(),
            unit=gaps.get("unit", "").lower(),
            price=gaps.get("price", ""),
        )

    def solve(self, parameters: WorkshopQuery) -> tuple[Verifier, Turn] | None:
        p = parameters
        formulas = [_index_formulas().get(formula.lower(), "") for formula in p.formulas]
        if not all(formulas) or (p.unit and p.unit not in (PLURALS if p.level == 2 else GRAMS)):
            return None
        masses = zip(map(compute_molar_mass, formulas), map(float, p.amounts), strict=True)
        value = sum(mass * amount for mass, amount in masses)
        if p.level > 1:
            value *= float(p.volume) * LITERS[p.volume_unit] / GRAMS[PLURALS.get(p.unit, p.unit)]
        if p.level == 3:
            value *= float(p.price)
        return None if is_near_tie(value, 2) else (make_rounded_verifier(value, 2), _make_plan(p, formulas))


def _make_plan(p: WorkshopQuery, formulas: Sequence[str]) -> Turn:
    requests = [f"molar mass of {formula}" for formula in formulas]
    masses = [
        Step(k, "elements", {"request": request}, need="molar mass of a compound")
        for k, request in enumerate(requests, start=1)
    ]
    if p.level == 1:
        return Turn((*masses, calculate(2, f"round($1 * {p.amounts[0]}, 2)", [1])), "$2")
    volume = _convert(len(masses) + 1, _parse_number(p.volume), p.volume_unit, "liter")
    if p.level == 2:
        mass = calculate(3, f"$1 * {p.amounts[0]} * $2", [1, 2])
        return Turn((*masses, volume, mass, _convert(4, "$3", "gram", p.unit, [3])), "$4")
    mass = calculate(4, f"($1 * {p.amounts[0]} + $2 * {p.amounts[1]}) * $3", [1, 2, 3])
    priced = calculate(6, f"round($5 * {p.price}, 2)", [5])
    return Turn((*masses, volume, mass, _convert(5, "$4", "gram", p.unit, [4]), priced), "$6")


def _convert(step: int, value: str | float, from_unit: str, to_unit: str, access: Sequence[int] = ()) -> Step:
    arguments = {"value": value, "from_unit": from_unit, "to_unit": to_unit}
    return Step(step, "units", arguments, tuple(access), need=CONVERSION)


def _format_number(number: float) -> str:
    return f"{number:g}"


def _parse_number(text: str) -> float:
    """A number that JSON writes as the query does: 2 and not 2.0."""
    value = float(text)
    return int(value) if value.is_integer() else value


@cache
def _load_data() -> WorkshopData:
    return load_lesson_data("workshop", WorkshopData)


@cache
def load_compounds() -> tuple[str, ...]:
    """The formulas that queries ask for."""
    return tuple(_load_data().compounds.split())


@cache
def compute_molar_mass(formula: str) -> float:
    """Compute grams per mole by our own reading of a formula; only the elements' masses are the library's."""
    total = 0.0
    for part in formula.split("+"):
        match = re.fullmatch(r"(\d*)(.+)", part)
        assert match is not None, "a part of a formula is never empty"
        total += int(match[1] or 1) * _compute_part_mass(match[2])
    return total


def _compute_part_mass(part: str) -> float:
    import periodictable

    total = 0.0
    for inner, count, symbol, times in re.findall(r"\(([A-Za-z0-9]+)\)(\d*)|([A-Z][a-z]?)(\d*)", part):
        if inner:
            total += int(count or 1) * _compute_part_mass(inner)
        else:
            total += int(times or 1) * float(getattr(periodictable, symbol).mass)
    return total


@cache
def _index_formulas() -> dict[str, str]:
    """A formula in small letters -> as it is written; no two formulas differ in case alone."""
    return {formula.lower(): formula for formula in load_compounds()}
